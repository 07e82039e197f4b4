# SPDX-License-Identifier: Apache-2.0
"""Shows that tests can fail: `make mutants` and `make mutants T=<program>` call it.

    mutate.py [PROGRAM [PART]]    PART: only mutants with this in their name
    mutate.py --check             whether every list fits the sources; builds and runs nothing

tests/unit/*/mutants.toml and tests/system/mutants.toml list mistakes: a file, what stands in it (exactly once), what is
put in its place, and the tests that have to fail then. All are put into a copy of the sources, build/mutants/root, never
into the sources. `@` in the new text stands for "this mistake is chosen": such mistakes, of RTL and of C++, are
compiled once, all together, and chosen by an environment variable when a test runs. A new text without `@` (a table,
a template's argument, the firmware) is built alone. Of each test it is first shown that it passes without a mistake.

One line a mutant: killed, ALIVE, or equal with the reason why no test can find it. Exit status 1 if any lives, or one
called equal is found; 2 if a list does not fit the sources, or a test fails without a mistake.
"""
import concurrent.futures
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
import zlib

import runtests

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LISTS = ("tests/unit/*/mutants.toml", "tests/system/mutants.toml")
COPIED = ("rtl", "sw", "tb", "tests", "docs")
CHOICE = "WEFT_MUTANT"
LIMIT = 60  # seconds of a test at least; ten times what it takes without a mistake, if that is more
KEYS = {"name", "program", "file", "test", "old", "new", "edits", "equal"}

PACKAGE = f"""// Written by sw/tools/mutate.py.
package weft_mutant_pkg;
  int chosen = $c("(std::getenv(\\"{CHOICE}\\") ? std::atoi(std::getenv(\\"{CHOICE}\\")) : 0)");
endpackage
"""
HEADER = f"""// Written by sw/tools/mutate.py.
#pragma once
#include <cstdlib>
#include <type_traits>
inline int weft_mutant_chosen() {{
  static const int number = std::getenv("{CHOICE}") ? std::atoi(std::getenv("{CHOICE}")) : 0;
  return number;
}}
constexpr bool weft_mutant(int number) {{
  if (std::is_constant_evaluated()) return false;
  return weft_mutant_chosen() == number;
}}
"""


class Unfit(Exception):
    """A list that does not fit the sources, or itself."""


class Mutant:
    def __init__(self, entry, path, program):
        self.name, self.list = entry.get("name"), path
        if not isinstance(self.name, str):
            raise Unfit(f"{path}: a mutant without a name")
        if unknown := entry.keys() - KEYS:
            raise Unfit(f"{self}: no such key: {', '.join(sorted(unknown))}")
        self.program = entry.get("program", program)
        tests = entry.get("test", [])
        self.tests = [tests] if isinstance(tests, str) else tests
        self.equal = entry.get("equal")
        try:
            edits = entry.get("edits") or [{"old": entry["old"], "new": entry["new"]}]
            self.edits = [(edit.get("file") or entry["file"], edit["old"], edit["new"]) for edit in edits]
        except KeyError as missing:
            raise Unfit(f"{self}: no {missing}") from None
        # Not its place in the list: with another number all of its file would have to be compiled again.
        self.number = zlib.crc32(f"{self.program}: {self.name}".encode()) & 0x7FFFFFFF
        self.chosen = all("@" in new for _, _, new in self.edits)

    def __str__(self):
        return f"{self.list}: '{self.name}'"

    def put_into(self, texts):
        """Puts the mistake into `texts`, by file; False, and nothing changed, if it does not find its place."""
        changed = {}
        for name, old, new in self.edits:
            text = changed.get(name, texts.get(name))
            if text is None:
                text = read(os.path.join(ROOT, name))
            if text.count(old) != 1:
                return False
            if self.chosen:
                rtl = name.endswith((".sv", ".svh", ".v"))
                new = new.replace("@", f"(weft_mutant_pkg::chosen == {self.number})" if rtl else
                                  f"::weft_mutant({self.number})")
            changed[name] = text.replace(old, new)
        texts.update(changed)
        return True


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def write(path, text):
    """Only if it is not so already: what is written anew is compiled anew."""
    if not os.path.exists(path) or read(path) != text:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)


def all_mutants():
    """(mutants, faults): those of all lists that fit the sources, and a line for each that does not."""
    mutants, faults, numbers = [], [], {}
    for path in sorted(path for pattern in LISTS for path in glob.glob(os.path.join(ROOT, pattern))):
        short = os.path.relpath(path, ROOT)
        try:
            with open(path, "rb") as handle:
                lists = tomllib.load(handle)
            entries = lists["mutant"]
        except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
            faults.append(f"{short}: {error}")
            continue
        for entry in entries:
            try:
                mutant = Mutant(entry, short, lists.get("program", os.path.basename(os.path.dirname(path))))
                if mutant.number in numbers:
                    raise Unfit(f"{mutant}: the name is taken")
                numbers[mutant.number] = mutant
                for name, old, _ in mutant.edits:
                    if not os.path.exists(os.path.join(ROOT, name)):
                        raise Unfit(f"{mutant}: no file {name}")
                    if (count := read(os.path.join(ROOT, name)).count(old)) != 1:
                        raise Unfit(f"{mutant}: {name} has {count} times, expected once: {old!r}")
                mutants.append(mutant)
            except Unfit as error:
                faults.append(str(error))
    return mutants, faults


def list_faults():
    """A line for each mutant that does not fit the sources, or names a test that is not there."""
    mutants, faults = all_mutants()
    known = set(runtests.all_names())
    return faults + [f"{m}: no test '{test}'" for m in mutants for test in m.tests if test not in known]


def rounds_of(mutants):
    """Groups of mutants with the texts of their files: as many as can be chosen in one build, the others alone."""
    rounds, left = [], [m for m in mutants if m.chosen]
    while left:
        texts, here, later = {}, [], []
        for mutant in left:
            (here if mutant.put_into(texts) else later).append(mutant)
        rounds.append((here, texts))
        left = later
    rounds = rounds or [([], {})]
    for mutant in mutants:
        if not mutant.chosen:
            # Among those that can be chosen, of which none is: less has to be compiled.
            texts = dict(rounds[0][1])
            if not mutant.put_into(texts):
                texts = {}
                mutant.put_into(texts)
            rounds.append(([mutant], texts))
    return rounds


def lay_out(copy, texts):
    """Makes `copy` the sources with `texts` in place of the files of their names, touching only what differs."""
    wanted = {}
    for folder in COPIED:
        for around, folders, names in os.walk(os.path.join(ROOT, folder)):
            folders[:] = [name for name in folders if name != "__pycache__"]
            wanted.update((os.path.relpath(os.path.join(around, name), ROOT), None) for name in names)
    for name in wanted:
        source, target = os.path.join(ROOT, name), os.path.join(copy, name)
        if name in texts:
            text = texts[name]
            if name.endswith((".h", ".cpp")):
                text = f'#include "{copy}/weft_mutant.h"\n#line 1 "{target}"\n{text}'
            write(target, text)
            shutil.copymode(source, target)
            continue
        if os.path.islink(source):
            if not os.path.lexists(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                os.symlink(os.readlink(source), target)
            continue
        if name in ("rtl/common/common.f", "rtl/pkg/pkg.f", "rtl/transport/crc/crc.f"):
            write(target, "rtl/common/weft_mutant_pkg.sv\n" + read(source))
            continue
        with open(source, "rb") as handle:
            right = handle.read()
        there = None
        if os.path.exists(target):
            with open(target, "rb") as handle:
                there = handle.read()
        if there != right:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as handle:
                handle.write(right)
            shutil.copymode(source, target)
    write(os.path.join(copy, "rtl/common/weft_mutant_pkg.sv"), PACKAGE)
    write(os.path.join(copy, "weft_mutant.h"), HEADER)
    wanted["rtl/common/weft_mutant_pkg.sv"] = None
    for folder in COPIED:
        for around, _, names in os.walk(os.path.join(copy, folder)):
            for name in names:
                path = os.path.join(around, name)
                if os.path.relpath(path, copy) not in wanted and "__pycache__" not in path:
                    os.remove(path)


class Programs:
    """The tests of the copy, as sw/tools/runtests.py runs them."""

    def __init__(self, copy, build, venv):
        self.copy, self.env = copy, dict(os.environ, BUILD=build, VENV=venv, WEFT_BUILD_DIR=build)
        self.env.pop(CHOICE, None)
        spec = importlib.util.spec_from_file_location("runtests_of_copy", os.path.join(copy, "sw/tools/runtests.py"))
        self.runtests = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.runtests)
        self.build_dir, self.tests, self.seconds = build, {}, {}
        self.spoilt = set()  # (program, test) that fails without a mistake

    def build(self, programs):
        """Builds what the programs need; returns those that cannot be."""
        if not self.runtests.build(["wire_gen"], self.env):
            return set(programs)
        with open(os.path.join(self.build_dir, "tests/list.json"), encoding="utf-8") as handle:
            compiled = {p["name"] for p in json.load(handle)}
        self.tests, bad = {}, set()
        for program in programs:
            files = [path for path in self.runtests.python_files()
                     if os.path.basename(path) == f"test_{program}.py"] if program not in compiled else []
            needs = self.runtests.needs_of(files[0]) if files else [f"test_{program}"]
            if (not files and program not in compiled) or (needs and not self.runtests.build(needs, self.env)):
                bad.add(program)
                continue
            found = (self.runtests.python_tests(files[0], "") if files else
                     self.runtests.catch_tests(program, os.path.join(self.build_dir, "tests", program), ""))
            self.tests[program] = {test.name: test.command for test in found
                                   if (program, test.name) not in self.spoilt}
        return bad

    def passes(self, command, number, limit):
        """(whether it ended well, seconds)"""
        start = time.monotonic()
        try:
            ended = subprocess.run(command, cwd=self.copy, env=dict(self.env, **{CHOICE: str(number)}), timeout=limit,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            return False, limit
        return ended.returncode == 0, time.monotonic() - start

    def right(self, program, name):
        """Whether the test passes without a mistake; how long it took is kept."""
        good, self.seconds[program, name] = self.passes(self.tests[program][name], 0, 20 * LIMIT)
        return good

    def killer(self, mutant):
        """The first of its tests, or of its program's if it names none, that finds the mutant; None if none does."""
        known = self.tests[mutant.program]
        for name in mutant.tests or sorted(known, key=lambda name: self.seconds.get((mutant.program, name), 0)):
            limit = max(LIMIT, 10 * self.seconds.get((mutant.program, name), 20))
            if not self.passes(known[name], mutant.number if mutant.chosen else 0, limit)[0]:
                return name
        return None


def main():
    mutants, faults = all_mutants()
    if sys.argv[1:] == ["--check"]:
        faults = list_faults()
    for line in faults:
        print(f"mutants: {line}", file=sys.stderr)
    if sys.argv[1:] == ["--check"]:
        return 2 if faults else 0
    program = sys.argv[1] if len(sys.argv) > 1 else ""
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    wanted = {m.number for m in mutants if program in ("", m.program) and part in m.name}
    if not wanted:
        known = " ".join(sorted({m.program for m in mutants}))
        print(f"mutants: none of program '{program}'{f' with {part!r} in its name' if part else ''}; "
              f"programs with a list: {known}", file=sys.stderr)
        return 2

    out = os.path.abspath(os.environ.get("BUILD", "build"))
    venv = os.path.abspath(os.environ.get("VENV", os.path.join(out, "venv")))
    copy = os.path.join(out, "mutants", "root")
    jobs = int(os.environ.get("JOBS") or os.cpu_count() or 1)
    bad, wrong, results = bool(faults), 0, []
    counts = {"killed": 0, "ALIVE": 0, "equal": 0}
    rounds = rounds_of(mutants)
    lay_out(copy, rounds[0][1])
    programs = Programs(copy, os.path.join(out, "mutants", "build"), venv)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        # Without any mistake every test has to pass, or it would kill whatever it is given.
        usable = [m for m in mutants if m.number in wanted]
        unbuilt = programs.build(sorted({m.program for m in usable}))
        for name in sorted(unbuilt):
            print(f"mutants: program '{name}' does not build, or there is none", file=sys.stderr)
            bad = True
        usable = [m for m in usable if m.program not in unbuilt]
        pairs = {(m.program, test) for m in usable for test in m.tests or programs.tests[m.program]}
        pairs = sorted(pair for pair in pairs if pair[1] in programs.tests[pair[0]])
        for pair, good in zip(pairs, pool.map(lambda pair: programs.right(*pair), pairs)):
            if not good:
                print(f"mutants: test '{pair[1]}' of {pair[0]} does not pass without a mistake", file=sys.stderr)
                programs.spoilt.add(pair)
                bad = True
        for group, texts in rounds:
            here = [m for m in group if m in usable]
            if not here:
                continue
            lay_out(copy, texts)
            unbuilt = programs.build(sorted({m.program for m in here}))
            for mutant in list(here):
                missing = [test for test in mutant.tests if test not in programs.tests.get(mutant.program, {})]
                if mutant.program in unbuilt:
                    print(f"mutants: {mutant} does not compile", file=sys.stderr)
                elif missing:
                    print(f"mutants: {mutant}: no test '{missing[0]}' that passes in {mutant.program}", file=sys.stderr)
                else:
                    continue
                bad = True
                here.remove(mutant)
            for mutant, killer in zip(here, pool.map(programs.killer, here)):
                verdict = "killed" if killer else "equal" if mutant.equal else "ALIVE"
                wrong += bool(killer and mutant.equal)
                counts[verdict] += 1
                note = f"   FOUND by '{killer}' though called equal" if killer and mutant.equal else (
                    f"   {mutant.equal}" if mutant.equal else "" if mutant.tests or not killer else f"   by '{killer}'")
                print(f"{verdict:6} {mutant.program}: {mutant.name}{note}", flush=True)
                results.append({"program": mutant.program, "name": mutant.name, "list": mutant.list,
                                "verdict": verdict, "test": killer})
    with open(os.path.join(out, "mutants", "results.json"), "w", encoding="utf-8") as handle:
        json.dump(results, handle, indent=1)
    print(f"{counts['killed']} killed, {counts['ALIVE']} alive, {counts['equal']} equal")
    return 2 if bad else 1 if counts["ALIVE"] or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
