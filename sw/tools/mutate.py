# SPDX-License-Identifier: Apache-2.0
"""Shows that tests can fail: `make mutants T=<program>` calls it.

    mutate.py PROGRAM [PART]      PART: only mutants with this in their name

tests/unit/<program>/mutants.toml (or one in another folder that says program = "<program>") lists mistakes: files,
what stands in them (exactly once), what is put in its place, and the test that has to fail then. Each is put into
copies of its files; a copy is compiled as the file is, but in haste, and linked before everything that has the right
one. A mistake in a header names the sources to compile with it, `sees`. One line a mutant, killed or ALIVE; exit
status 1 if any lives, 2 if the list does not fit the sources.
"""
import glob
import json
import os
import re
import shlex
import shutil
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


def list_of(program):
    """The list of the program's mistakes, where it lies; None if it has none."""
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/unit/*/mutants.toml"))):
        with open(path, "rb") as handle:
            lists = tomllib.load(handle)
        if lists.get("program", os.path.basename(os.path.dirname(path))) == program:
            return os.path.relpath(path, ROOT), lists["mutant"]
    return None


def overlay_of(work, headers, sees):
    """A folder like the root, to be looked into first: the mistakes in `headers`, the sources that see them, and copies
    of all headers around either, since files include each other by ways relative to their own place."""
    folder = os.path.join(work, "root")
    shutil.rmtree(folder, ignore_errors=True)
    for around in {os.path.join(*name.split("/")[:2]) for name in headers} | {os.path.dirname(name) for name in sees}:
        for path in glob.glob(os.path.join(ROOT, around, "**/*.h"), recursive=True):
            copy = os.path.join(folder, os.path.relpath(path, ROOT))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy(path, copy)
    for name in sees:
        shutil.copy(os.path.join(ROOT, name), os.path.join(folder, name))
    for name, text in headers.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as handle:
            handle.write(text)
    return folder


def catch_escape(name):
    return re.sub(r'([\\,\[\]"])', r"\\\1", name)


def passes(program, test):
    """Whether the test passes; one that does not end does not."""
    try:
        run = subprocess.run([program, "--abort", catch_escape(test)], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0 and "No test cases matched" not in run.stdout


def main():
    if len(sys.argv) not in (2, 3) or not sys.argv[1]:
        return fault("which program? make mutants T=ref")
    program, part = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else ""
    try:
        found = list_of(program)
    except (OSError, tomllib.TOMLDecodeError, KeyError) as e:
        return fault(f"tests/unit/*/mutants.toml: {e}")
    if found is None:
        return fault(f"no tests/unit/*/mutants.toml is of program '{program}'")
    path, mutants = found
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
            return fault(f"test '{test}' of {path} does not pass on the sources as they are")

    work = os.path.join(out, "mutants")
    os.makedirs(work, exist_ok=True)
    alive = 0
    for mutant in mutants:
        texts, sees = mutated(mutant)[0], mutant.get("sees", [])
        headers = {name: text for name, text in texts.items() if name.endswith(".h")}
        # What would not compile with the mistake is to fail as a test.
        flags = ["-w", "-DCATCH_CONFIG_RUNTIME_STATIC_REQUIRE"]
        if sees:
            overlay = overlay_of(work, headers, sees)
            flags += ["-I", overlay]
        here, objects = list(link), []
        for name in [*(texts.keys() - headers.keys()), *sees]:
            command = shlex.split(compile_of[name])
            if name in texts:
                source = os.path.join(work, os.path.basename(name))
                with open(source, "w", encoding="utf-8") as handle:
                    handle.write(texts[name])
            else:
                source = os.path.join(overlay, name)
            objects.append(os.path.join(work, os.path.basename(name) + ".o"))
            right = command[command.index("-o") + 1]
            command[command.index("-o") + 1] = objects[-1]
            command[command.index("-c") + 1] = source
            first = next(i for i, word in enumerate(command) if word.startswith("-"))
            command[first:first] = flags
            subprocess.run([*command, "-O1", "-g0"], cwd=cmake, check=True)  # half the time to compile
            here = [word for word in here if word != right]  # in the program itself, not in a library
        here[here.index("-o") + 1] = os.path.join(work, program)
        # Foremost, since of an inline function the linker takes the first one.
        first = next(i for i, word in enumerate(here) if word.endswith((".o", ".a")))
        here[first:first] = objects
        subprocess.run(here, cwd=cmake, check=True)
        verdict = "ALIVE" if passes(os.path.join(work, program), mutant["test"]) else "killed"
        alive += verdict == "ALIVE"
        print(f"{verdict:7} {mutant['name']}", flush=True)
    print(f"{len(mutants) - alive} killed, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
