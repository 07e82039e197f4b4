# SPDX-License-Identifier: Apache-2.0
"""Runs what tests/long.toml lists: `make test-long`, `make test-long T=<name>`.

Each run's output is shown as it comes; the last lines are one for each, passed or FAILED, and how many. Exit status 1
if any failed, 2 if the list is wrong or nothing has the name.
"""
import os
import subprocess
import sys
import time
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = "tests/long.toml"
KEYS = {"name", "about", "test", "run", "env"}


def fault(text):
    print(f"test-long: {text}", file=sys.stderr)
    return 2


def entries():
    """The list, checked; ValueError says what is wrong."""
    with open(os.path.join(ROOT, LIST), "rb") as handle:
        found = tomllib.load(handle).get("long", [])
    for entry in found:
        name = entry.get("name", "?")
        if unknown := entry.keys() - KEYS:
            raise ValueError(f"'{name}': no such key: {', '.join(sorted(unknown))}")
        if "name" not in entry or "about" not in entry or ("test" in entry) == ("run" in entry):
            raise ValueError(f"'{name}': expected name, about, and one of test and run")
        if "run" in entry and not os.path.exists(os.path.join(ROOT, entry["run"][0])):
            raise ValueError(f"'{name}': no file {entry['run'][0]}")
    return found


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        chosen = [entry for entry in entries() if wanted in ("", entry["name"])]
    except (OSError, ValueError, tomllib.TOMLDecodeError) as error:
        return fault(f"{LIST}: {error}")
    if not chosen:
        return fault(f"T={wanted}: expected one of {' '.join(entry['name'] for entry in entries())}")
    lines, failed = [], 0
    for entry in chosen:
        print(f"== {entry['name']}: {entry['about']}", flush=True)
        command = [sys.executable, *(os.path.join(ROOT, "sw/tools/runtests.py"), entry["test"])] if "test" in entry \
            else [sys.executable, os.path.join(ROOT, entry["run"][0]), *entry["run"][1:]]
        env = dict(os.environ, TEST_LIMIT=os.environ.get("TEST_LIMIT", "7200"), **entry.get("env", {}))
        env.pop("T", None)
        start = time.monotonic()
        good = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode == 0
        failed += not good
        lines.append(f"{'passed' if good else 'FAILED'} {entry['name']} ({time.monotonic() - start:.0f} s)")
    print("\n".join(lines))
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
