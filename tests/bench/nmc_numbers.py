# SPDX-License-Identifier: Apache-2.0
"""The long comparison of the reference arithmetic with SoftFloat, values and flags.

    make bench B=nmc_numbers          all 2^32 pairs of float16 and of bfloat16 sums, 10^8 directed and random
                                      sums and products of float32 and float64; some minutes of one free core
    python tests/bench/nmc_numbers.py --cases 1e9 --types float32,float64

Shows on a terminal how far it got. Exit status 1 with the first case that differs.
"""
import argparse
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/unit/nmc"))
import numbers_lib as numbers  # noqa: E402

SLICE = 1 << 22
ALL_PAIRS = 1 << 32
TASKS = [("float16", "sum"), ("bfloat16", "sum"), ("float32", "sum"), ("float32", "prod"), ("float64", "sum"),
         ("float64", "prod")]


def compare(soft, kind, op, cases, seed):
    """Compares and returns the cases done; None if any differed."""
    every = kind in ("float16", "bfloat16")
    total = ALL_PAIRS if every else cases
    start = time.monotonic()
    for first in range(0, total, SLICE):
        count = min(SLICE, total - first)
        # A slice of random cases has a seed of its own.
        wrong, fault = soft.compare(kind, op, 0 if every else seed + 1 + first // SLICE, first, count)
        done = first + count
        if sys.stderr.isatty():
            rest = (time.monotonic() - start) / done * (total - done)
            print(f"\r\033[K{kind} {op}: {100 * done / total:.1f} %, {rest:.0f} s to go", end="", file=sys.stderr,
                  flush=True)
        if wrong:
            print(f"{kind} {op}: {wrong} of cases {first} to {done - 1} differ, first {fault}")
            return None
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"{kind} {op}: {total} {'pairs, all there are' if every else 'cases'}, none differs", flush=True)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=float, default=1e8, help="of each operation of float32 and float64")
    parser.add_argument("--types", default="float16,bfloat16,float32,float64")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    types = arguments.types.split(",")
    for kind in types:
        if kind not in numbers.SHORT:
            print(f"nmc_numbers: --types: '{kind}', expected some of {','.join(numbers.SHORT)}", file=sys.stderr)
            return 2
    soft, done = numbers.SoftFloat(), []
    for kind, op in TASKS:
        if kind in types:
            done.append(compare(soft, kind, op, int(arguments.cases), arguments.seed << 32))
    if None in done:
        return 1
    met = "true" if types == list(numbers.SHORT) and arguments.cases >= 1e8 else "false"
    print(f'{{"nmc_numbers_compared": {{"value": {sum(done):.6g}, "goal": {2 * ALL_PAIRS + 4e8:.6g}, '
          f'"unit": "cases", "met": {met}}}}}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
