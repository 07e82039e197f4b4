# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks and prints their figures beside the goals; `make bench` calls it.

Benchmarks are the programs of weft_bench() and the scripts tests/bench/*.py. Each prints a line of
JSON {"<figure>": {"value", "goal", "unit", "met"}} per figure. They run one at a time, so that none
disturbs another. All figures go to build/bench.json. A goal that is not met is shown as NO and does
not fail the run (a busy machine is slow); a benchmark that breaks, reports a figure twice, or has not ended
after BENCH_LIMIT_S seconds, does; the others run all the same.

    bench.py [NAME ...]      only these benchmarks
"""
import glob
import json
import os
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
LIMIT_S = float(os.environ.get("BENCH_LIMIT_S") or 1800)  # of one program; only a hang comes near it


def commands():
    found = {}
    try:
        with open(os.path.join(BUILD, "bench/list.txt"), encoding="utf-8") as handle:
            found = {name: [os.path.join(BUILD, "bench", name)] for name in handle.read().split()}
    except FileNotFoundError:
        pass
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/bench/*.py"))):
        found[os.path.basename(path)[:-len(".py")]] = [sys.executable, path]
    return found


def run(command):
    """(what it printed, exit status); nothing instead of a status: it did not end, and was ended with all that it started."""
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, start_new_session=True) as program:
        try:
            return program.communicate(timeout=LIMIT_S)[0], program.returncode
        except BaseException as why:
            os.killpg(program.pid, signal.SIGKILL)
            if isinstance(why, subprocess.TimeoutExpired):
                return program.communicate()[0], None
            raise


def main():
    known = commands()
    wrong = [name for name in sys.argv[1:] if name not in known]
    if wrong:
        print(f"no benchmark '{wrong[0]}'; there are: {' '.join(known)}", file=sys.stderr)
        return 2
    figures, broken = {}, []
    for name in sys.argv[1:] or known:
        if sys.stderr.isatty():
            print(f"\r\033[K{name}", end="", file=sys.stderr, flush=True)
        text, status = run(known[name])
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        before = len(figures)
        for line in text.splitlines():
            if not line.startswith('{"'):
                print(line)
                continue
            for figure, entry in json.loads(line).items():
                if set(entry) != {"value", "goal", "unit", "met"}:
                    broken.append(f"{name}: figure '{figure}' has {sorted(entry)}, not value, goal, unit, met")
                elif figure in figures:
                    broken.append(f"{name}: figure '{figure}' is reported twice")
                figures[figure] = entry
        if status is None:
            broken.append(f"{name}: has not ended after {LIMIT_S:g} s (BENCH_LIMIT_S)")
        elif status != 0:
            broken.append(f"{name}: exit status {status}")
        elif len(figures) == before:
            broken.append(f"{name}: no figure")
    if figures:
        width = max(map(len, figures))
        print(f"{'figure'.ljust(width)}  {'value':>12}  {'goal':>10}  met  unit")
        for figure, entry in figures.items():
            print(f"{figure.ljust(width)}  {entry['value']:>12g}  {entry['goal']:>10g}  "
                  f"{'yes' if entry['met'] else 'NO':>3}  {entry['unit']}")
    if len(sys.argv) == 1:
        with open(os.path.join(BUILD, "bench.json"), "w", encoding="utf-8") as handle:
            json.dump(figures, handle, indent=1)
            handle.write("\n")
    for line in broken:
        print(line)
    return 1 if broken or not figures else 0


if __name__ == "__main__":
    sys.exit(main())
