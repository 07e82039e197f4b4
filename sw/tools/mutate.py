# SPDX-License-Identifier: Apache-2.0
"""Shows that tests can fail: `make mutants T=<program>` calls it.

    mutate.py PROGRAM [PART]      PART: only mutants with this in their name

tests/unit/<program>/mutants.toml lists mistakes: a file, what stands in it (exactly once), what is put in its place,
and the test that has to fail then. Each is put into a copy of the file; the copy is compiled as the file is and
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
    """The file's text with the mistake in it, or a message about what does not fit."""
    with open(os.path.join(ROOT, mutant["file"]), encoding="utf-8") as handle:
        text = handle.read()
    for edit in mutant["edits"]:
        count = text.count(edit["old"])
        if count != 1:
            return None, f"'{mutant['name']}': {mutant['file']} has {count} times, expected once: {edit['old']!r}"
        text = text.replace(edit["old"], edit["new"])
    return text, None


def catch_escape(name):
    return re.sub(r'([\\,\[\]"])', r"\\\1", name)


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
        text, message = mutated(mutant)
        if text is None:
            return fault(message)

    out = os.path.abspath(os.environ.get("BUILD", "build"))
    if subprocess.run([os.path.join(ROOT, "sw/tools/build.sh"), "test_" + program], check=False).returncode:
        return 1
    cmake = os.path.join(out, "cmake")
    with open(os.path.join(cmake, "compile_commands.json"), encoding="utf-8") as handle:
        compile_of = {os.path.relpath(c["file"], ROOT): c["command"] for c in json.load(handle)}
    link = subprocess.run(["ninja", "-C", cmake, "-t", "commands", "test_" + program], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    link = next(line for line in reversed(link) if f"-o {out}/tests/{program} " in line + " ")
    link = shlex.split(link.removeprefix(": && ").split(" && ")[0])

    work = os.path.join(out, "mutants")
    os.makedirs(work, exist_ok=True)
    alive = 0
    for mutant in mutants:
        source = os.path.join(work, os.path.basename(mutant["file"]))
        with open(source, "w", encoding="utf-8") as handle:
            handle.write(mutated(mutant)[0])
        command = shlex.split(compile_of[mutant["file"]])
        command[command.index("-o") + 1] = source + ".o"
        command[command.index("-c") + 1] = source
        subprocess.run([*command, "-w"], cwd=cmake, check=True)
        here = list(link)
        here[here.index("-o") + 1] = os.path.join(work, program)
        first = next(i for i, word in enumerate(here) if word.endswith(".a"))
        here.insert(first, source + ".o")
        subprocess.run(here, cwd=cmake, check=True)
        try:
            run = subprocess.run([os.path.join(work, program), catch_escape(mutant["test"])], cwd=ROOT, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, check=False)
            if "No test cases matched" in run.stdout:
                return fault(f"'{mutant['name']}': there is no test '{mutant['test']}'")
            verdict = "killed" if run.returncode else "ALIVE"
        except subprocess.TimeoutExpired:
            verdict = "killed"  # it does not end
        alive += verdict == "ALIVE"
        print(f"{verdict:7} {mutant['name']}", flush=True)
    print(f"{len(mutants) - alive} killed, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
