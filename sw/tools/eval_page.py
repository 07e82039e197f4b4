# SPDX-License-Identifier: Apache-2.0
"""Writes docs/evaluation.md from what `weft eval --json` found; `make eval` calls it.

    eval_page.py eval.json PAGE FOLDER-OF-PLOTS
"""
import json
import os
import sys

HEAD = """\
# Evaluation: Weft beside RoCEv2, uet-htsim and the bound

Made by `{make}`, which ran

```
{command}
```

Do not edit: the next run overwrites it. Figures are means over the seeds of each scenario. The simulator gives the same
figures for the same seed on every machine; only its own speed differs.

## What is compared

- **Weft**: the reference endpoint ([sw/ref](../sw/ref)), packets without payload. Every packet of every message is checked to be
  placed exactly once. Acks, probes and fences have their real sizes, histories included.
- **RoCEv2**: go-back-N, one NAK a gap, one UDP source port a queue pair, DCQCN. Constants and sources:
  [tb/eval/roce.h](../tb/eval/roce.h). It is given the smallest timeout that is safe, and a window of one bandwidth-delay product, which cards
  do not have: without them it does worse. With several planes a flow is cut into one queue pair for each. "+ PFC": the fabric
  pauses instead of dropping.
- **uet-htsim**: figures of the Ultra Ethernet Consortium's simulator (2025-08-13), measured on the same fabrics with the same loss; its
  congestion control is NSCC with SLEEK on drop-tail queues, but for the incasts: RCCC with trimming.
- **Bound** ([tb/eval/bound.h](../tb/eval/bound.h)): links always busy with packets and headers, a lost packet sent again at no other cost, base
  round trip added, dead planes taken out while they are dead. It knows nothing of collisions in the fabric.

Fabrics: F100 is 128 hosts, F400 64 hosts, three tiers 1:1, radix 4, one UDP source port one way. Packets have 4150 bytes on
the wire. Loss is independent for each packet, acks too, at the receiving port. The scenario files are in
[sw/scenarios/eval](../sw/scenarios/eval).

## Goals

| figure | unit | bound | RoCEv2 | + PFC | uet-htsim | Weft | goal | met |
|---|---|---|---|---|---|---|---|---|
"""


def shown(value):
    if value is None:
        return ""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} M"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 1 else f"{value:.3f}"


def mean(body, name):
    found = body["metrics"].get(name)
    return found["mean"] if found else None


def spread(body, name):
    """Half the distance from the lowest to the highest seed, in percent of the mean."""
    found = body["metrics"].get(name)
    if not found or not found["mean"]:
        return ""
    return f" ±{50 * (found['high'] - found['low']) / abs(found['mean']):.1f} %" if found["high"] != found["low"] else ""


def goal_rows(data):
    for row in data["rows"]:
        sign = "≥" if row["direction"] == "at_least" else "≤"
        met = "" if row["met"] is None else "yes" if row["met"] else "**no**"
        cells = [row["name"], row["unit"]] + [shown(row[k]) for k in ("bound", "rocev2", "rocev2_pfc", "uet_htsim", "value")]
        yield "| " + " | ".join(cells + [f"{sign} {shown(row['goal'])}", met]) + " |\n"


def scenario_tables(data):
    for s in data["scenarios"]:
        yield f"\n### {s['name']}: {s['title']}\n\n"
        yield f"[{os.path.basename(s['file'])}](../{s['file']}), seeds {', '.join(map(str, s['seeds']))}.\n\n"
        yield "| | body | mean us | last us | Gb/s a flow | resent | needless | dropped | marked | not done |\n"
        yield "|---|---|---|---|---|---|---|---|---|---|\n"
        for p in s["points"]:
            at = ", ".join(f"{k} {v:g}" for k, v in p["at"].items())
            yield f"| {at} | bound | {shown(p['bound'].get('mean_us'))} | {shown(p['bound'].get('last_us'))} | {shown(p['bound'].get('gbps'))} | | | | | |\n"
            for name, body in p["bodies"].items():
                dropped = sum(mean(body, d) or 0 for d in ("drop_queue", "drop_loss", "drop_down"))
                cells = [at, name, shown(mean(body, "mean_us")) + spread(body, "mean_us"), shown(mean(body, "last_us")) + spread(body, "last_us"),
                         shown(mean(body, "gbps"))] + [shown(mean(body, k)) for k in ("resent", "needless")]
                cells += [shown(dropped), shown(mean(body, "ce_marked")), shown(mean(body, "unfinished"))]
                yield "| " + " | ".join(cells) + " |\n"


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as handle:
        data = json.load(handle)
    known = [r for r in data["rows"] if r["met"] is not None]
    text = HEAD.format(make="make eval", command=data["command"].replace(" --scenario", " \\\n  --scenario"))
    text += "".join(goal_rows(data))
    text += f"\n{sum(r['met'] for r in known)} of {len(known)} goals met. `build/eval.json` has the same rows for scripts.\n"
    text += "\n## Plots\n\n`make eval` draws them, PNG and SVG, into `" + sys.argv[3] + "`:\n\n"
    for name in sorted(os.listdir(sys.argv[3])):
        if name.endswith(".svg"):
            text += f"- `{name}`\n"
    text += "\n## All points\n" + "".join(scenario_tables(data))
    new = sys.argv[2] + ".new"
    with open(new, "w", encoding="utf-8") as handle:
        handle.write(text)
    os.replace(new, sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
