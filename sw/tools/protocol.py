# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md against what it talks about: tests, constants, wire.yaml.

- Every MUST stands in a rule with an identifier of its own, and every rule has a row in docs/protocol_tests.md that
  names tests which exist, or are marked as planned; how many are planned is stated there and must be right.
  What no test can see is said with its reason, beside the tests of the rest.
- Every design rule (R1 .. R11, W1 .. W11) is told with what breaks without it, and listed with its rules.
- Every constant in the table has the value that the sources have, and every constant of the sources is in the table.
- The pieces of all pages that are made from wire.yaml are as wire.yaml is now.

    build/venv/bin/python sw/tools/protocol.py [--fix]

With --fix pieces and lists are made anew, and tests that exist by now are no longer called planned.
"""
import argparse
import glob
import os
import pathlib
import re
import sys

import runtests

ROOT = runtests.ROOT
sys.path.insert(0, os.path.join(ROOT, "sw/wire"))
import gen  # noqa: E402  (found by the path above)
import pages  # noqa: E402

GROUPS = ("FRAME", "CONN", "TX", "RX", "ACK", "PATH", "FENCE", "MSG", "CREDIT", "ERR", "CC", "SEC")
DESIGN = [f"{letter}{n}" for letter in "RW" for n in range(1, 12)]
ITEM = re.compile(r"^- \*\*(W-[A-Z]+-\d{3})\*\* (.*(?:\n  .*)*)", re.M)
UNSEEN = re.compile(r"not from outside: [^`]+")  # what no test of a body can see, and why
COUNT = re.compile(r"^(Tests planned: )(\d+)$", re.M)
# Of struct Config, what is an endpoint's own affair: how it is run, not what it does.
NOT_PROTOCOL = {"payload", "seed"}
# Constants of the protocol outside of config.h: file, name, value, unit.
LONE = (("sw/ref/path.cpp", "kBlackHole", r"(\d+)", 1), ("sw/ref/settle.cpp", "kWary", r"(\d+)", 1),
        ("sw/ref/settle.cpp", "kWaryFor", r"(\d+)", 1),
        ("sw/ref/state.h", "kMaxWaitNs", r"([\d']+)", 10**3),
        ("sw/weft/device.h", "retry_limit", r"(\d+)", 1),
        ("sw/weft/device.h", "ack_hold_us", r"([\d.]+)", 10**6))
UNITS = {"": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12, "KiB": 2**10, "MiB": 2**20}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
        return handle.read()


def rules(protocol):
    """Identifier and text of each rule, in order, the text in one line."""
    return [(name, " ".join(text.split())) for name, text in ITEM.findall(protocol)]


def indexed(protocol):
    """The page with the rules of each design rule, in the table of those, as the tags say."""
    tagged = {tag: ", ".join(name for name, text in rules(protocol) if f"[{tag}]" in text) for tag in DESIGN}
    return re.sub(r"^(\| ([RW]\d+) \| [^|]* \|)[^|]*\|$", lambda m: f"{m.group(1)} {tagged.get(m.group(2), '')} |", protocol,
                  flags=re.M)


def faults_of_rules(protocol):
    out, seen, told = [], set(), set()
    for name, text in rules(protocol):
        if name in seen:
            out.append(f"{name}: used twice")
        seen.add(name)
        if name.split("-")[1] not in GROUPS:
            out.append(f"{name}: the group is none of {' '.join(GROUPS)}")
        if "MUST" not in text:
            out.append(f"{name}: says no MUST")
        if "*Without it:*" in text:
            told.update(re.findall(r"\[([RW]\d+)\]", text))
    rest = re.sub(r"^```.*?^```|`[^`\n]*`", "", ITEM.sub("", protocol), flags=re.M | re.S)
    out += [f"a MUST outside of a rule: {line.strip()}" for line in rest.splitlines() if "MUST" in line]
    if indexed(protocol) != protocol:
        out.append("the table of design rules names other rules than the tags")
    out += [f"{tag}: no row in the table of design rules" for tag in DESIGN
            if not re.search(rf"^\| {tag} \| ", protocol, re.M)]
    out += [f"[{tag}]: no rule tells what breaks without it" for tag in DESIGN if tag not in told]
    return out


def rows(table):
    """(rule, [cells of the reference, of the RTL]) of docs/protocol_tests.md; a cell is a list of entries."""
    found = re.findall(r"^\| (W-[\w-]+) \| ([^|]*) \| ([^|]*) \|$", table, re.M)
    return [(rule, [cell.strip().split("<br>") for cell in cells]) for rule, *cells in found]


def faults_of_table(protocol, table, names):
    out, planned = [], set()
    expected = [name for name, _ in rules(protocol)]
    there = [rule for rule, _ in rows(table)]
    out += [f"{rule}: no row in the table of tests" for rule in expected if rule not in there]
    out += [f"{rule}: a row, but no such rule" for rule in there if rule not in expected]
    out += [f"{rule}: two rows" for rule in sorted(set(there)) if there.count(rule) > 1]
    for rule, bodies in rows(table):
        entries = [entry for cell in bodies for entry in cell if cell != ["not yet"] and not UNSEEN.fullmatch(entry)]
        if not entries:
            out.append(f"{rule}: no test at all")
        for entry in entries:
            match = re.fullmatch(r"(planned )?`([^`]+)`", entry)
            if not match:
                out.append(f"{rule}: neither 'not yet' nor tests: {entry}")
            elif match.group(1) and match.group(2) in names:
                out.append(f"{rule}: '{match.group(2)}' is marked as planned, but exists")
            elif match.group(1):
                planned.add(match.group(2))
            elif match.group(2) not in names:
                out.append(f"{rule}: no test is called '{match.group(2)}'")
    stated = COUNT.search(table)
    if not stated or int(stated.group(2)) != len(planned):
        out.append(f"'Tests planned: {stated.group(2) if stated else ''}', but there are {len(planned)}")
    return out


def defaults(text, struct, known):
    """name -> (is a time in ps, value) of the fields of a C++ struct with their defaults."""
    body = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.M | re.S).group(1)
    out = {}
    for kind, name, value in re.findall(r"^  (double|bool|Ps|std::\w+) (\w+) = ([^;]+);", body, re.M):
        value = value.replace("'", "").replace("wire::", "")
        out[name] = (kind == "Ps", eval(value, {"__builtins__": {}}, known))  # arithmetic of our own sources
    return out


def constants(wire):
    """(where, name) -> value as the table states it: times in ps, sizes in bytes."""
    known = {"kNs": UNITS["ns"], "kUs": UNITS["us"], "kMs": UNITS["ms"], "true": True, "false": False}
    known |= {c["cpp"]: c["value"] for c in wire["constants"]}
    config = read("sw/ref/config.h")
    every = defaults(config, "Tuning", known) | defaults(config, "Config", known)
    out = {("config.h", name): value for name, (_, value) in every.items() if name not in NOT_PROTOCOL}
    device = read("sw/weft/device.h")
    out[("device.h", "retry_limit")] = int(re.search(r"\bunsigned retry_limit = (\d+);", device).group(1))
    hold = re.search(r"\bdouble ack_hold_us = ([\d.]+);", device)
    for path, name, pattern, unit in LONE:
        match = re.search(rf"\b{name} = {pattern};", read(path))
        out[(os.path.basename(path), name)] = float(match.group(1).replace("'", "")) * unit if match else None
    return out, {("wire", c["name"]): c["value"] for c in wire["constants"]}


def value_of(text):
    """'2 us' -> 2000000 (ps), '256 KiB' -> 262144, '0xff', 'true', '0.25'; None if it is none of these."""
    if text in ("true", "false"):
        return text == "true"
    match = re.fullmatch(r"(0x[0-9a-f]+|[\d.]+)(?: (\w+))?", text)
    if not match or (match.group(2) or "") not in UNITS:
        return None
    number = int(match.group(1), 16) if match.group(1).startswith("0x") else float(match.group(1))
    return number * UNITS[match.group(2) or ""]


def faults_of_constants(protocol, needed, optional):
    out, seen = [], set()
    for name, where, default in re.findall(r"^\| `(\w+)` \| ([\w.]+) \| ([^|]*) \|", protocol, re.M):
        real = (needed | optional).get((where, name))
        if real is None:
            out.append(f"constant {name}: {where} has none")
        elif (stated := value_of(default.strip())) != real or isinstance(real, bool) != isinstance(stated, bool):
            out.append(f"constant {name}: the table says {default.strip()}, {where} {real}")
        if (where, name) in seen:
            out.append(f"constant {name}: two rows")
        seen.add((where, name))
    return out + [f"constant {name} of {where}: not in the table" for where, name in needed if (where, name) not in seen]


def faults_of_pages(wire, texts):
    out = []
    for path, text in texts.items():
        try:
            if pages.refresh(text, wire) != text:
                out.append(f"{path}: a piece made from wire.yaml is old")
        except pages.Unknown as error:
            out.append(f"{path}: {error}")
    return out


def all_pages():
    return {os.path.relpath(path, ROOT): read(path) for path in sorted(glob.glob(os.path.join(ROOT, "docs/*.md")))}


def all_names():
    """Names of all tests: test cases, Python tests, scripts of the compliance suite."""
    scripts = glob.glob(os.path.join(ROOT, "tests/compliance/**/*.script"), recursive=True)
    return {*runtests.all_names(), *(os.path.basename(path)[:-len(".script")] for path in scripts)}


def load_wire():
    return gen.load_wire(pathlib.Path(ROOT) / "sw/wire/wire.yaml")


def faults():
    """Everything that is wrong, a line each."""
    wire, protocol = load_wire(), read("docs/protocol.md")
    out = [f"docs/protocol.md: {text}" for text in
           faults_of_rules(protocol) + faults_of_constants(protocol, *constants(wire))]
    out += [f"docs/protocol_tests.md: {text}" for text in
            faults_of_table(protocol, read("docs/protocol_tests.md"), all_names())]
    out += faults_of_pages(wire, all_pages())
    return out + ["mend what can be: build/venv/bin/python sw/tools/protocol.py --fix"] if out else []


def settled(table, names):
    """The table without the marks of planned tests that exist, and with the right number."""
    table = re.sub(r"planned (`([^`]+)`)", lambda m: m.group(1) if m.group(2) in names else m.group(0), table)
    return COUNT.sub(lambda m: m.group(1) + str(len(set(re.findall(r"planned `([^`]+)`", table)))), table)


def fix():
    gen.refresh_pages(load_wire(), [pathlib.Path(ROOT) / path for path in all_pages()])
    for path, mend in (("docs/protocol.md", indexed), ("docs/protocol_tests.md", lambda text: settled(text, all_names()))):
        gen.write_if_changed(pathlib.Path(ROOT) / path, mend(read(path)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="mend what can be mended without thinking")
    if parser.parse_args().fix:
        fix()
    found = faults()
    print("\n".join(found) or f"protocol: {len(rules(read('docs/protocol.md')))} rules, all with tests or plans")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
