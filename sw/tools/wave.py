# SPDX-License-Identifier: Apache-2.0
"""Opens the waves of a test in GTKWave, at the failure if it failed; `make wave T=<pattern>` calls it.

Runs the tests that match with WAVES=1, takes the one that failed (else the first), and starts from a
saved view in tests/waves: <module without weft_>.gtkw, or that of the test's program. Without a display
it prints the file and the command instead.

    wave.py PATTERN                    run, then open
    wave.py FILE.fst                   open a file that is there already (of weft sim --waves)
    wave.py --new-view NAME PATTERN    write tests/waves/NAME.gtkw: ports, state machines, registers
"""
import argparse
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
WAVES = os.path.join(BUILD, "waves")


def run(pattern):
    """Runs the tests with waves; returns (program, wave files)."""
    environment = dict(os.environ, WAVES="1")
    listing = subprocess.run([sys.executable, "sw/tools/runtests.py", "--list", pattern], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, env=environment)
    programs = [line.split("\t")[0] for line in listing.stdout.splitlines() if "\t" in line]
    result = subprocess.run([sys.executable, "sw/tools/runtests.py", pattern], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, env=environment)
    print(result.stdout, end="")
    files = re.findall(r"^\s*waves: (\S+\.fst)\b", result.stdout, re.M)
    if not files:
        print(f"the tests that match T='{pattern}' write no waves: they hold no RTL")
        raise SystemExit(1)
    return programs[0], list(dict.fromkeys(os.path.join(ROOT, path) for path in files))


def failed_at(path):
    try:
        with open(path + ".failed", encoding="utf-8") as handle:
            return int(handle.read())
    except (OSError, ValueError):
        return None


def scopes(wave):
    """(scope, module): the name the bench gave the model, and the module inside it."""
    import pywellen

    names = [variable.full_name.split(".") for variable in pywellen.Waveform(wave).all_vars()]
    return next(((parts[0], parts[1]) for parts in names if len(parts) > 2), (names[0][0], names[0][0]))


RANGE = re.compile(r"\[[0-9:]+\]$")
RIGHT, BINARY, HEX, NAMES = 0x20, 0x8, 0x2, 1 << 32  # how GTKWave shows a value; NAMES: those of its enum


def flags(variable):
    """The line in front of a signal that says how it is shown."""
    form = BINARY if (variable.bitwidth or 1) == 1 else HEX
    return f"@{(NAMES if variable.enum_type else 0) | form | RIGHT:x}"


def label(variable):
    """A signal as GTKWave names it in this very file: a parameter may give it other bits than the saved view has."""
    name = RANGE.sub("", variable.full_name)
    width = variable.bitwidth or 1
    return name if width == 1 else f"{name}[{width - 1}:0]"


def on_this_file(lines, wave):
    """(lines of a view with the signals as the file has them, names that it has not)."""
    import pywellen

    # Saved views call the model "dut", whatever this bench calls it.
    scope = scopes(wave)[0]
    there = {}
    for variable in pywellen.Waveform(wave).all_vars():
        there.setdefault(RANGE.sub("", variable.full_name), variable)
    out, missing = [], []
    for line in lines:
        if not line.startswith("dut."):
            out.append(line)
            continue
        name = scope + RANGE.sub("", line)[len("dut"):]
        variable = there.get(name)
        if variable is None:
            missing.append(name)
            continue
        if variable.enum_type:
            out.append(flags(variable))  # of two flags in a row the last one counts
        out.append(label(variable))
    return out, missing


def view_for(saved, wave):
    """Writes the view to open: the saved one on this file, with a marker where the test failed."""
    lines = []
    if os.path.exists(saved):
        with open(saved, encoding="utf-8") as handle:
            lines = [line for line in handle.read().splitlines()
                     if not line.startswith(("[dumpfile]", "[savefile]", "[timestart]", "*"))]
        lines, missing = on_this_file(lines, wave)
        if missing:
            print(f"not in this file, left out of the view: {' '.join(missing)}")
    # About 50 cycles on screen, the failure towards the right with the marker on it.
    when = failed_at(wave)
    head = [f'[dumpfile] "{wave}"', f"[timestart] {max(0, (when or 0) - 120_000)}",
            f"*-15.000000 {-1 if when is None else when}" + " -1" * 26]
    path = wave[:-len(".fst")] + ".gtkw"
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("\n".join(head + lines) + "\n")
    return path


def new_view(path, wave):
    """A first view: ports of the module under test, state machines below it, its registers."""
    import pywellen

    variables = [variable for variable in pywellen.Waveform(wave).all_vars() if "Param" not in variable.var_type]
    inside = [variable.full_name.split(".")[2:] for variable in variables]
    # A bench may wrap the module; then its one instance is what matters.
    instances = {parts[0] for parts in inside if len(parts) > 1 and parts[0].startswith("u_")}
    wrapped = len(instances) == 1 and not any(len(parts) == 1 and parts[0].endswith("_q") for parts in inside)
    depth = 4 if wrapped else 3
    groups = {"ports": [], "state machines": [], "registers": []}
    for variable in variables:
        parts = variable.full_name.split(".")
        name = ".".join(["dut", *parts[1:]])
        own = parts[depth - 1] if len(parts) >= depth else ""  # a struct is a scope of its fields
        group = None
        if parts[-1] == "state_q":
            group = "state machines"
        elif own.endswith(("_i", "_o")) or own.startswith(("m_ax", "s_ax")):
            group = "ports"
        elif own.endswith("_q"):
            group = "registers"
        name = RANGE.sub("", name)
        if group and name not in [known for known, _ in groups[group]]:
            groups[group].append((name, variable))
    lines = ["[*] Arrange in GTKWave and save over this file; the model is called dut."]
    for title, names in groups.items():
        lines += ["@200", f"-{title}"]
        for name, variable in names:
            lines += [flags(variable), "dut" + label(variable)[len(variable.full_name.split(".")[0]):]]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("\n".join(lines) + "\n")
    print(f"wrote {os.path.relpath(path, ROOT)}: {sum(map(len, groups.values()))} signals")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--new-view", metavar="NAME")
    parser.add_argument("pattern", nargs="?", default="")
    args = parser.parse_args()
    if not args.pattern:
        have = sorted(os.listdir(WAVES)) if os.path.isdir(WAVES) else []
        print("give T=<program or test>, as in: make wave T=fifo")
        for name in have:
            if name.endswith(".fst"):
                print(f"  {os.path.relpath(os.path.join(WAVES, name), ROOT)}")
        return 2
    if args.pattern.endswith(".fst"):
        if not os.path.exists(args.pattern):
            print(f"no file {args.pattern}")
            return 2
        program, files = "", [os.path.abspath(args.pattern)]
    else:
        program, files = run(args.pattern)
    files.sort(key=lambda path: failed_at(path) is None)
    views = os.path.join(ROOT, "tests/waves")
    if args.new_view:
        new_view(os.path.join(views, args.new_view + ".gtkw"), files[0])
        return 0
    # The module under test, the test's program, or what a model of many is: node0, node1 ... are nodes.
    model, module = scopes(files[0])
    names = (module.removeprefix("weft_"), program, model.rstrip("0123456789"))
    saved = next((path for path in (os.path.join(views, name + ".gtkw") for name in names) if os.path.exists(path)), "")
    view = view_for(saved, files[0])
    if not saved:
        print(f"no saved view tests/waves/{names[0]}.gtkw; starting empty")
    command = ["gtkwave", files[0], view]
    when = failed_at(files[0])
    if when is not None:
        print(f"the test failed at {when} ps; the marker stands there")
    if os.environ.get("DISPLAY"):
        subprocess.Popen(command, cwd=ROOT, start_new_session=True)
        return 0
    print(f"no display; the waves are in {files[0]}\nopen them with: {shlex.join(command)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
