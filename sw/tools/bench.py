# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks and prints their figures beside the goals; `make bench` calls it.

Benchmarks are the programs of weft_bench() and the scripts tests/bench/*.py. Each prints a line of
JSON {"<figure>": {"value", "goal", "unit", "met"}} per figure. They run one at a time, so that none
disturbs another. All figures go to build/bench.json. A goal that is not met is shown as NO and does
not fail the run (a busy machine is slow); a benchmark that breaks, or reports a figure twice, does.

    bench.py [NAME ...]      only these benchmarks
"""
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")


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
        result = subprocess.run(known[name], cwd=ROOT, text=True, stdout=subprocess.PIPE)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        before = len(figures)
        for line in result.stdout.splitlines():
            if not line.startswith('{"'):
                print(line)
                continue
            for figure, entry in json.loads(line).items():
                if set(entry) != {"value", "goal", "unit", "met"}:
                    broken.append(f"{name}: figure '{figure}' has {sorted(entry)}, not value, goal, unit, met")
                elif figure in figures:
                    broken.append(f"{name}: figure '{figure}' is reported twice")
                figures[figure] = entry
        if result.returncode != 0:
            broken.append(f"{name}: exit status {result.returncode}")
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
