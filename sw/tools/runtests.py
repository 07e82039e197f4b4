# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the tests that match a pattern; `make test` calls it.

C++ tests are Catch2 programs registered by weft_test(); Python ones are unittest files test_*.py
under tests/, where a line NEEDS = ["target", ...] names what must be built first. Every test case
runs in a process of its own, several at a time, the slowest of last time first. The pattern is the
name of a program (fifo), a glob over names of programs and tests ("fifo: data*"), or without a
wildcard a part of a test's name. The last line is `N passed, N failed`, and `, N skipped` if any were, each named above
it with its reason; exit status 1 if anything failed, or nothing matched. Only a Python test can be
skipped (skipTest), for what the machine forbids; what set-up installs is never missing.
"""
import argparse
import ast
import concurrent.futures
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEST_CASE = re.compile(r'\b(?:TEST_CASE|TEMPLATE_TEST_CASE|TEST_CASE_METHOD|SCENARIO)\w*\s*\(([^{;]*)')
NEEDS = re.compile(r'^NEEDS = (\[[^\]]*\])', re.M)
SKIPPED = re.compile(r"^SKIPPED: (.*)$", re.M)
SKIP_STATUS = 77  # of a child whose one test was skipped
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


class Test:
    def __init__(self, program, name, command):
        self.program, self.name, self.command = program, name, command
        self.seconds, self.output, self.verdict = 0.0, "", ""
        self.skipped = ""  # why it was not run


def names_in_source(path):
    """Names of the test cases in a C++ file: the first string of each, with its pieces joined."""
    try:
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
    except OSError:
        return []
    names = []
    for match in TEST_CASE.finditer(text):
        head = match.group(1)
        pieces, position = [], None
        for literal in STRING.finditer(head):
            if position is not None and head[position:literal.start()].strip():
                break
            pieces.append(literal.group(1))
            position = literal.end()
        if pieces:
            names.append("".join(pieces).replace('\\"', '"').replace("\\\\", "\\"))
    return names


def matches(pattern, program, name):
    if not pattern:
        return True
    if "*" in pattern or "?" in pattern:
        # Brackets stand for themselves: test names may hold them.
        glob = re.sub(r"\[", "[[]", pattern)
        return fnmatch.fnmatchcase(name, glob) or fnmatch.fnmatchcase(program, glob)
    return pattern == program or pattern in name


def catch_escape(name):
    return re.sub(r'([\\,\[\]"])', r"\\\1", name)


def build(targets, env, quiet=False):
    """Returns True if all were built."""
    command = [os.path.join(ROOT, "sw/tools/build.sh"), "-k", *targets]
    sink = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, cwd=ROOT, env=env, stdout=sink, stderr=sink).returncode == 0


def catch_tests(program, executable, pattern):
    # Catch2 v2 exits with the number of tests when it lists them.
    listing = subprocess.run([executable, "--list-test-names-only"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    names = [name for name in listing.stdout.splitlines() if name]
    if listing.stderr or listing.returncode != len(names) % 256:
        # Two tests of one name, a crash before main: none of its tests would run, and nobody would notice.
        return [Test(program, f"{program}: lists its tests",
                     [sys.executable, "-c", "import sys; sys.exit(sys.argv[1])",
                      listing.stderr or f"{executable} lists {len(names)} tests and ends with {listing.returncode}"])]
    return [Test(program, name, [executable, catch_escape(name), "-w", "NoTests"])
            for name in names if matches(pattern, program, name)]


def python_files():
    found = []
    for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
        found += [os.path.join(folder, name) for name in files if re.fullmatch(r"test_\w+\.py", name)]
    return sorted(found)


def python_tests(path, pattern):
    """One Test per method, named `<file without test_>: <method without test_, spaces for _>`."""
    program = os.path.basename(path)[len("test_"):-len(".py")]
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    tests, current = [], ""
    for line in text.splitlines():
        if match := re.match(r"class (\w+)", line):
            current = match.group(1)
        if (match := re.match(r"    def (test_\w+)\(self", line)) and current:
            name = f"{program}: {match.group(1)[len('test_'):].replace('_', ' ')}"
            if matches(pattern, program, name):
                tests.append(Test(program, name, [sys.executable, __file__, "--child", path,
                                                  f"{current}.{match.group(1)}"]))
    return tests


def all_names():
    """Names of all tests of the repository, from the sources."""
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "tests/*.cpp"], cwd=ROOT, text=True,
                           stdout=subprocess.PIPE, check=True).stdout.split()
    names = [name for path in files for name in names_in_source(os.path.join(ROOT, path))]
    return names + [test.name for path in python_files() for test in python_tests(path, "")]


def needs_of(path):
    """Build targets that a Python test names: NEEDS = ["weft"]."""
    with open(path, encoding="utf-8") as handle:
        match = NEEDS.search(handle.read())
    return ast.literal_eval(match.group(1)) if match else []


def child(path, method):
    """Runs one Python test method in this process."""
    sys.path[:0] = [os.path.dirname(path), os.path.join(ROOT, "sw/tools")]
    module = __import__(os.path.basename(path)[:-len(".py")])
    suite = unittest.defaultTestLoader.loadTestsFromName(method, module)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(suite)
    if not result.wasSuccessful() or not result.testsRun:
        return 1
    for _, reason in result.skipped:
        print("SKIPPED: " + reason.replace("\n", " "))
    return SKIP_STATUS if result.skipped else 0


def execute(test, env, limit_s):
    start = time.monotonic()
    process = subprocess.Popen(test.command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=limit_s)
        code = process.returncode
        test.verdict = "" if code == 0 else (f"killed by signal {-code}" if code < 0 else f"exit status {code}")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        test.verdict = f"still running after {limit_s} s: stopped"
    test.output = out.decode("utf-8", "replace")
    if test.verdict == f"exit status {SKIP_STATUS}" and (reasons := SKIPPED.findall(test.output)):
        test.skipped, test.verdict = "; ".join(reasons), ""
    test.seconds = time.monotonic() - start
    return test


def closing(passed, failed, skipped):
    lines = [f"SKIPPED {test.name} ({test.program}): {test.skipped}" for test in skipped]
    lines.append(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--list", action="store_true", help="only print the names that match")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or os.cpu_count() or 1))
    parser.add_argument("--limit", type=int, default=int(os.environ.get("TEST_LIMIT") or 1200),
                        help="seconds after which a test counts as hung")
    args = parser.parse_args()

    env = dict(os.environ)
    build_dir = os.path.join(ROOT, env.get("BUILD") or "build")
    env["BUILD"] = build_dir
    env.setdefault("WEFT_WAVES_DIR", os.path.join(build_dir, "waves"))
    waves = env.get("WAVES", "0") not in ("", "0")
    if env.get("SEED") and not re.fullmatch(r"\d+|0x[0-9a-fA-F]+", env["SEED"]):
        print(f"SEED={env['SEED']}: expected a number", file=sys.stderr)
        return 2

    # The list of programs is written when CMake configures; `wire_gen` makes that happen.
    if not build(["wire_gen"], env):
        print("0 passed, 1 failed")
        return 1
    with open(os.path.join(build_dir, "tests/list.json"), encoding="utf-8") as handle:
        programs = json.load(handle)
    chosen = [p for p in programs
              if not args.pattern or p["name"] == args.pattern
              or any(matches(args.pattern, p["name"], name) for path in p["sources"] for name in names_in_source(path))]
    targets = ["test_" + p["name"] + ("_waves" if waves and p["waves"] else "") for p in chosen]
    broken = 0
    unbuilt = bool(targets) and not build(targets if args.pattern or waves else ["all_tests"], env)
    if unbuilt:
        print("some tests do not build; the compiler's messages are above", flush=True)

    tests = []
    for program, target in zip(chosen, targets):
        if unbuilt and not build([target], env, quiet=True):  # its program, if any, is an old one
            print(f"FAILED {program['name']} (does not build)")
            broken += 1
            continue
        folder = "tests/waves" if waves and program["waves"] else "tests"
        tests += catch_tests(program["name"], os.path.join(build_dir, folder, program["name"]), args.pattern)
    for path in python_files():
        found = python_tests(path, args.pattern)
        needs = needs_of(path) if found else []
        if needs and not build(needs, env):
            print(f"FAILED {found[0].program} ({' '.join(needs)} does not build)")
            broken += 1
            continue
        tests += found
    if args.list:
        for test in tests:
            print(f"{test.program}\t{test.name}")
        return 0
    if not tests and not broken:
        print(f"no test matches T='{args.pattern}'; the programs are: {' '.join(p['name'] for p in programs)}")
        print("0 passed, 0 failed")
        return 1

    times_path = os.path.join(build_dir, "tests/times.json")
    try:
        with open(times_path, encoding="utf-8") as handle:
            times = json.load(handle)
    except (OSError, ValueError):
        times = {}
    tests.sort(key=lambda test: -times.get(test.name, 1e9))

    passed, failed, skipped, terminal = 0, [], [], sys.stdout.isatty()
    with concurrent.futures.ThreadPoolExecutor(max(1, args.jobs)) as pool:
        for future in concurrent.futures.as_completed([pool.submit(execute, test, env, args.limit) for test in tests]):
            test = future.result()
            times[test.name] = round(test.seconds, 2)
            if test.verdict:
                failed.append(test)
                if terminal:
                    print("\r\033[K", end="")
                print(f"FAILED {test.name} ({test.program}, {test.verdict})")
                print("    " + test.output.strip().replace("\n", "\n    "))
                if "rerun: " not in test.output:
                    print(f"    rerun: make test T=\"{test.name}\" SEED={env.get('SEED') or 1}"
                          + (" WAVES=1" if any(p["name"] == test.program and p["waves"] for p in programs) else ""))
                sys.stdout.flush()
            elif test.skipped:
                skipped.append(test)
            else:
                passed += 1
                if waves:
                    written = re.findall(r"^waves: .*$", test.output, re.M)
                    if written:
                        print(written[0] + (f" (and {len(written) - 1} more)" if written[1:] else ""))
            if terminal:
                print(f"\r\033[K{passed + len(failed) + len(skipped)}/{len(tests)} {test.name[:60]}", end="", flush=True)
    if terminal:
        print("\r\033[K", end="")
    with open(times_path + ".new", "w", encoding="utf-8") as handle:
        json.dump(times, handle, indent=0, sort_keys=True)
    os.replace(times_path + ".new", times_path)
    slow = sorted(tests, key=lambda test: -test.seconds)[:3]
    if len(tests) > 3 and slow[0].seconds > 10:
        print("slowest: " + ", ".join(f"{test.name} {test.seconds:.0f} s" for test in slow))
    print(closing(passed, len(failed) + broken, skipped))
    return 1 if failed or broken else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(sys.argv[2], sys.argv[3]))
    sys.exit(main())
