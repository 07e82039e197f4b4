# SPDX-License-Identifier: Apache-2.0
"""The meter: what each block costs, and how deep its logic is.

Each block of blocks.yaml is read by slang, mapped with `synth_xilinx -family xcup -run
begin:map_luts; opt_merge; abc -lut 6` and counted by levels.py. opt_merge since a flip-flop of this
family resets whatever its enable says: of a reset under an enable Yosys makes one and the same gate
for each bit, and abc keeps them all apart. `make synth` prints the figures beside the
committed baseline (baseline.json) and the goals, writes build/synth.json, and fails if a figure
grew by more than 10 % that REBASELINE=1 has not accepted, or a block cannot be synthesised. Results
are kept in build/synth by a hash of the sources; build/synth/<block>.path has its longest path, and one
of each kind that is beyond its goal.

    synth.py [--rebaseline] [BLOCK ...]     BLOCK: a name in blocks.yaml, or any module of rtl/
             [--table DIR]                  another folder with blocks.yaml and baseline.json
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import subprocess
import sys
import time

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]
import flist  # noqa: E402
import levels  # noqa: E402

ROOT = flist.ROOT
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
OUT = os.path.join(BUILD, "synth")
FIGURES = ("lut", "ff", "bram", "levels")
KEYS = {"top", "flist", "params", "goal_lut", "goal_levels"}
SUM_KEYS = {"sum", "goal_lut", "goal_levels"}
GROWTH = 1.10


def blocks(folder):
    path = os.path.join(folder, "blocks.yaml")
    with open(path, encoding="utf-8") as handle:
        table = yaml.safe_load(handle) or {}
    for name, block in table.items():
        if not isinstance(block, dict) or not (set(block) <= KEYS and {"top", "flist"} <= set(block)
                                               or set(block) <= SUM_KEYS and "sum" in block):
            raise SystemExit(f"{path}: {name}: expected top, flist and any of params, goal_lut, goal_levels; "
                             "or sum and any of goal_lut, goal_levels")
        for part in block.get("sum", ()):
            if "top" not in table.get(part, ()):
                raise SystemExit(f"{path}: {name}: sum of '{part}', which is no block with a top")
    return table


def adhoc(module):
    """A module that is not in blocks.yaml, with its default parameters and no goal."""
    found = glob.glob(os.path.join(ROOT, f"rtl/**/{module}.sv"), recursive=True)
    folder = os.path.dirname(os.path.relpath(found[0], ROOT)) if found else ""
    while folder and not os.path.exists(os.path.join(ROOT, folder, os.path.basename(folder) + ".f")):
        folder = os.path.dirname(folder)
    if not folder:
        raise SystemExit(f"no block '{module}' in sw/tools/synth/blocks.yaml and no rtl/**/{module}.sv with a list")
    return {"top": module, "flist": f"{folder}/{os.path.basename(folder)}.f"}


def params_of(block):
    return [f"{name}={value}" for name, value in sorted((block.get("params") or {}).items())]


def fingerprint(block, sources):
    digest = hashlib.sha256(repr((block["top"], params_of(block))).encode())
    included = [path for folder in sources.incdirs for path in sorted(glob.glob(folder + "/*.svh"))]
    for path in sources.files + included + [os.path.abspath(__file__), os.path.abspath(levels.__file__)]:
        with open(path, "rb") as handle:
            digest.update(handle.read())
    return digest.hexdigest()[:24]


def map_block(name, block):
    """Child process: netlist of one block into build/synth/<name>.json. Prints the whole Yosys log."""
    import slang  # needs pyosys, which prints while it loads

    design = slang.read(block["top"], flist.expand([block["flist"]], BUILD), params_of(block))
    design.run_pass(f"hierarchy -check -top {block['top']}")
    design.run_pass("synth_xilinx -family xcup -flatten -noiopad -noclkbuf -run begin:map_luts")
    design.run_pass("opt_merge")
    design.run_pass("abc -lut 6")
    design.run_pass("clean")
    design.run_pass(f"select {block['top']}")  # without the cell library
    design.run_pass(f"write_json -selected {os.path.join(OUT, name + '.json')}")
    return 0


def measure(name, block):
    """(figures, error text) of one block, from the cache if nothing changed."""
    try:
        sources = flist.expand([block["flist"]], BUILD)
    except SystemExit as error:
        return None, f"{name}: {error}"
    cache = os.path.join(OUT, f"{name}-{fingerprint(block, sources)}.result")
    if os.path.exists(cache):
        with open(cache, encoding="utf-8") as handle:
            return json.load(handle), ""
    start = time.monotonic()
    log_path = os.path.join(OUT, name + ".log")
    with open(log_path, "w", encoding="utf-8") as log:
        child = subprocess.run([sys.executable, __file__, "--map", name, json.dumps(block)], cwd=ROOT, stdout=log,
                               stderr=subprocess.STDOUT)
    if child.returncode != 0:
        with open(log_path, encoding="utf-8", errors="replace") as log:
            lines = log.read().splitlines()
        first = next((i for i, line in enumerate(lines) if "error:" in line or line.startswith("ERROR")), len(lines) - 15)
        return None, f"{name}: synthesis failed ({os.path.relpath(log_path, ROOT)})\n" + "\n".join(
            lines[max(0, first):first + 20])
    netlist_path = os.path.join(OUT, name + ".json")
    try:
        netlist = levels.load(netlist_path, block["top"])
        depth, path = netlist.worst()
        result = {**netlist.counts(), "levels": depth, "seconds": round(time.monotonic() - start, 1)}
    except SystemExit as error:
        return None, f"{name}: {error}"
    with open(os.path.join(OUT, name + ".path"), "w", encoding="utf-8") as handle:
        handle.write("".join(" ".join(step) + "\n" for step in path))
        for deep, ends, path in netlist.beyond(block.get("goal_levels") or depth):
            handle.write(f"\n{deep} levels at {ends} ends, for one:\n" + "".join(" ".join(s) + "\n" for s in path))
    for old in glob.glob(os.path.join(OUT, glob.escape(name) + "-*.result")):
        os.remove(old)
    with open(cache, "w", encoding="utf-8") as handle:
        json.dump(result, handle)
    return result, ""


def plain(value):
    return int(value) if float(value).is_integer() else value


def beside(now, before):
    """A figure with what it was."""
    if before is None:
        return f"{plain(now)}"
    return f"{plain(now)}" if now == before else f"{plain(now)} ({plain(before)})"


def grown(results, baseline):
    """A line for each figure of a measured block that is more than 10 % over its baseline. A block, or a
    figure, without a baseline cannot grow: main() tells that there is none."""
    return [f"{name}: {figure} grew from {plain(before)} to {plain(now[figure])}"
            for name, now in results.items() for figure, before in baseline.get(name, {}).items()
            if now[figure] > before * GROWTH]


def rebased(results, baseline, table):
    """The baseline that REBASELINE=1 writes: what was measured, the rest as it was, and nothing of blocks
    that the table does not have (any more)."""
    measured = {name: {figure: plain(now[figure]) for figure in FIGURES} for name, now in results.items()}
    return {name: figures for name, figures in sorted({**baseline, **measured}.items()) if name in table}


def main():
    if sys.argv[1:2] == ["--map"]:
        return map_block(sys.argv[2], json.loads(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rebaseline", action="store_true", help="take what is measured as the baseline")
    parser.add_argument("--table", default=HERE, help="folder with blocks.yaml and baseline.json")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)

    table = blocks(args.table)
    chosen = {name: table.get(name) or adhoc(name) for name in args.names} if args.names else table
    baseline_path = os.path.join(args.table, "baseline.json")
    baseline = {}
    if os.path.exists(baseline_path):
        with open(baseline_path, encoding="utf-8") as handle:
            baseline = json.load(handle)

    # A sum is of blocks that are measured anyway.
    for block in list(chosen.values()):
        chosen.update({part: table[part] for part in block.get("sum", ()) if part not in chosen})
    results, errors = {}, []
    terminal = sys.stderr.isatty()
    jobs = min(2, int(os.environ.get("JOBS") or 2))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(measure, name, block): name for name, block in chosen.items()
                   if "sum" not in block}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            result, error = future.result()
            if error:
                errors.append(error)
            else:
                results[futures[future]] = result
            if terminal:
                print(f"\r\033[K{done}/{len(futures)} {futures[future]}", end="", file=sys.stderr, flush=True)
    if terminal:
        print("\r\033[K", end="", file=sys.stderr)

    for name, block in chosen.items():
        if "sum" in block and all(part in results for part in block["sum"]):
            parts = [results[part] for part in block["sum"]]
            results[name] = {figure: (max if figure == "levels" else sum)(part[figure] for part in parts)
                             for figure in parts[0]}

    report = {}
    rows = [("block", "LUT", "FF", "BRAM", "levels", "LUTRAM", "goal", "met")]
    for name, block in chosen.items():
        if name not in results:
            continue
        now, before = results[name], baseline.get(name, {})
        goal_lut, goal_levels = block.get("goal_lut"), block.get("goal_levels")
        met = (goal_lut is None or now["lut"] <= goal_lut) and (goal_levels is None or now["levels"] <= goal_levels)
        goal = " ".join(text for text in (f"{goal_lut} LUT" if goal_lut else "",
                                          f"{goal_levels} levels" if goal_levels else "") if text)
        rows.append((name, *(beside(now[f], before.get(f)) for f in FIGURES), str(now["lutram"]), goal or "-",
                     ("yes" if met else "NO") if goal else "-"))
        report[name] = {**{f: plain(now[f]) for f in FIGURES}, "lutram": now["lutram"], "uram": now["uram"],
                        "dsp": now["dsp"], "goal": goal_lut, "goal_levels": goal_levels, "unit": "LUT", "met": met}
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths))))
    if any("(" in cell for row in rows[1:] for cell in row):
        print("in brackets: the committed baseline")
    fresh = [name for name in results if name in table and name not in baseline]
    if fresh and not args.rebaseline:
        print(f"without a baseline yet: {' '.join(fresh)} (make synth REBASELINE=1 records them)")
    gone = sorted(set(baseline) - set(table))
    if gone and not args.rebaseline:
        print(f"in the baseline, but no blocks any more: {' '.join(gone)} (make synth REBASELINE=1 drops them)")

    if not args.names:
        with open(os.path.join(BUILD, "synth.json"), "w", encoding="utf-8") as handle:
            json.dump(report, handle, indent=1)
            handle.write("\n")
    for error in errors:
        print(error)
    if args.rebaseline:
        kept = rebased(results, baseline, table)
        with open(baseline_path, "w", encoding="utf-8") as handle:
            text = ",\n".join(f' "{name}": {json.dumps(figures)}' for name, figures in kept.items())
            handle.write("{\n" + text + "\n}\n")
        return 1 if errors else 0
    growth = grown(results, baseline)
    for line in growth:
        print(f"{line}: more than 10 %; mend it, or accept it with: make synth REBASELINE=1")
    return 1 if errors or growth else 0


if __name__ == "__main__":
    sys.exit(main())
