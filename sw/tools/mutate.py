# SPDX-License-Identifier: Apache-2.0
"""Shows that tests can fail: `make mutants T=<program>` calls it.

    mutate.py PROGRAM [PART]      PART: only mutants with this in their name

tests/unit/<program>/mutants.toml lists mistakes: files, what stands in them (exactly once), what is put in its place,
and the test that has to fail then. Each is put into copies of its files; a copy is compiled as the file is and
linked before the library that has the right one. One line a mutant, killed or ALIVE; exit status 1 if any lives,
2 if the list does not fit the sources.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 300  # seconds of a test


def fault(text):
    print(f"mutants: {text}", file=sys.stderr)
    return 2


def mutated(mutant):
    """Texts with the mistake in them, by file; or a message about what does not fit."""
    texts = {}
    for edit in mutant["edits"]:
        name = edit.get("file", mutant["file"])
        if name not in texts:
            with open(os.path.join(ROOT, name), encoding="utf-8") as handle:
                texts[name] = handle.read()
        count = texts[name].count(edit["old"])
        if count != 1:
            return None, f"'{mutant['name']}': {name} has {count} times, expected once: {edit['old']!r}"
        texts[name] = texts[name].replace(edit["old"], edit["new"])
    return texts, None


def catch_escape(name):
    return re.sub(r'([\\,\[\]"])', r"\\\1", name)


def passes(program, test):
    """Whether the test passes; one that does not end does not."""
    try:
        run = subprocess.run([program, catch_escape(test)], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0 and "No test cases matched" not in run.stdout


def main():
    if len(sys.argv) not in (2, 3) or not sys.argv[1]:
        return fault("which program? make mutants T=ref")
    program, part = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else ""
    path = os.path.join(ROOT, "tests/unit", program, "mutants.toml")
    try:
        with open(path, "rb") as handle:
            mutants = tomllib.load(handle)["mutant"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as e:
        return fault(f"{os.path.relpath(path, ROOT)}: {e}")
    mutants = [m for m in mutants if part in m["name"]]
    for mutant in mutants:
        texts, message = mutated(mutant)
        if texts is None:
            return fault(message)

    out = os.path.abspath(os.environ.get("BUILD", "build"))
    if subprocess.run([os.path.join(ROOT, "sw/tools/build.sh"), "test_" + program], check=False).returncode:
        return 1
    cmake = os.path.join(out, "cmake")
    with open(os.path.join(cmake, "compile_commands.json"), encoding="utf-8") as handle:
        # Other targets (the fuzzers' replay, with sanitizers) compile the same files in other ways.
        compile_of = {name: c["command"] for c in json.load(handle)
                      for name in [os.path.relpath(c["file"], ROOT)]
                      if f" -o dir/{os.path.dirname(name)}/CMakeFiles/" in c["command"]}
    link = subprocess.run(["ninja", "-C", cmake, "-t", "commands", "test_" + program], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    link = next(line for line in reversed(link) if f"-o {out}/tests/{program} " in line + " ")
    link = shlex.split(link.removeprefix(": && ").split(" && ")[0])

    # A test that fails, or is not there, without any mistake would kill whatever it is given.
    for test in sorted({m["test"] for m in mutants}):
        if not passes(os.path.join(out, "tests", program), test):
            return fault(f"test '{test}' of {os.path.relpath(path, ROOT)} does not pass on the sources as they are")

    work = os.path.join(out, "mutants")
    os.makedirs(work, exist_ok=True)
    alive = 0
    for mutant in mutants:
        objects = []
        for name, text in mutated(mutant)[0].items():
            source = os.path.join(work, os.path.basename(name))
            with open(source, "w", encoding="utf-8") as handle:
                handle.write(text)
            command = shlex.split(compile_of[name])
            objects.append(source + ".o")
            command[command.index("-o") + 1] = objects[-1]
            command[command.index("-c") + 1] = source
            subprocess.run([*command, "-w"], cwd=cmake, check=True)
        here = list(link)
        here[here.index("-o") + 1] = os.path.join(work, program)
        first = next(i for i, word in enumerate(here) if word.endswith(".a"))
        here[first:first] = objects
        subprocess.run(here, cwd=cmake, check=True)
        verdict = "ALIVE" if passes(os.path.join(work, program), mutant["test"]) else "killed"
        alive += verdict == "ALIVE"
        print(f"{verdict:7} {mutant['name']}", flush=True)
    print(f"{len(mutants) - alive} killed, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
