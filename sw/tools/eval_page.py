# SPDX-License-Identifier: Apache-2.0
"""Writes docs/evaluation.md from what `weft eval --json` found; `make eval` calls it.

    eval_page.py eval.json PAGE FOLDER-OF-PLOTS
"""
import json
import os
import sys

HEAD = """\
# Evaluation: Weft beside RoCEv2, uet-htsim and the bound

`{make}` makes it. This one is of

```
{command}
```

from the sources of {version}.{reason} Do not edit: the next run overwrites it. Figures are means over the seeds. The simulator gives the
same figures for the same seed on every machine; only its own speed differs.

## What is compared

- **Weft**: the reference endpoint ([sw/ref](../sw/ref)), packets without payload: no row is a figure of the card. Every packet of every
  message is checked to be placed exactly once. Data, acks, probes and fences have their real sizes, histories included.
- **RoCEv2**: a model, go-back-N, one NAK a gap, one UDP source port a queue pair, DCQCN. Constants and sources:
  [tb/eval/roce.h](../tb/eval/roce.h). Its window is what its line needs and no more, its timeout the base round trip and every queue on the
  way full: cards have neither, and without them it does worse. With several planes a flow is cut into one queue pair for each.
  "+ PFC": the fabric pauses instead of dropping, with room in every queue for what is under way; a paused packet may
  wait longer than that timeout, which shows as needless resends.
- **uet-htsim**: recorded figures of the Ultra Ethernet Consortium's simulator (2025-08-13), one seed each; its congestion control is NSCC with
  SLEEK on queues that drop, but for the incasts: RCCC on queues of 178,450 bytes that trim. They stand beside runs of Weft's reference
  in scenarios `uet-*` that do as it does: the same packets (4086 bytes of payload, 4150 on the wire, whatever the real headers), load,
  placement of slow links, queue and start of steps. Where it trims, ours drops, for there is nothing else here; in the ring the
  news that a step is complete takes one latency of a link more than there.
- **Bound** ([tb/eval/bound.h](../tb/eval/bound.h)): links always busy with packets and headers, a lost packet sent again at no other cost, base
  round trip added, dead planes taken out while they are dead. It knows nothing of collisions in the fabric. Each body has its own,
  of its own headers; no body beats it (a search of random clusters in the tests), but a lucky run with loss may.

Fabrics: F100 is 128 hosts, F400 64 hosts, three tiers 1:1, radix 4, one UDP source port one way. A full packet has 4086 bytes of payload;
on the wire Weft's has 120 more, RoCEv2's 84, padding included. Rates in Gb/s count 64 for everybody, so that they compare as times do; "of the line" counts
what is really there. Loss is independent for each packet, acks too, at the receiving port. The scenario files are in
[sw/scenarios/eval](../sw/scenarios/eval).

## Goals

All of Weft's reference endpoint. A goal is met when the mean over the seeds is beyond it and no seed misses it by more than 2 %.

| figure | body | unit | bound | RoCEv2 | + PFC | uet-htsim | mean | range | seeds | goal | met |
|---|---|---|---|---|---|---|---|---|---|---|---|
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
        value = shown(row["value"]) if row["value"] is not None else row["reason"] or ""
        spread_of = f"{shown(row['low'])} to {shown(row['high'])}" if row["seeds"] > 1 and row["low"] is not None else ""
        cells = [text_of(row["name"]), "reference", text_of(row["unit"])] + [shown(row[k]) for k in ("bound", "rocev2", "rocev2_pfc", "uet_htsim")]
        cells += [text_of(value), spread_of, str(row["seeds"]), "" if row["goal"] is None else f"{sign} {shown(row['goal'])}", met]
        yield "| " + " | ".join(cells) + " |\n"


def text_of(text):
    """Text of a file as text of a page."""
    return "".join(c if c.isprintable() else f"\\\\x{ord(c):02x}" for c in text).replace("|", "\\|").replace("<", "&lt;")


def scenario_tables(data):
    for s in data["scenarios"]:
        yield f"\n### {s['name']}: {text_of(s['title'])}\n\n"
        yield f"[{os.path.basename(s['file'])}](../{s['file']}).\n\n"
        yield "| | body | seeds | mean us | bound | max us | bound | last us | bound | Gb/s a flow | resent | needless | dropped | marked |\n"
        yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        for p in s["points"]:
            at = ", ".join(f"{k} {v:g}" for k, v in p["at"].items())
            for name, body in p["bodies"].items():
                cells = [at, "weft, reference" if name == "weft" else name, str(len(body["seeds"]))]
                if body["reason"]:
                    yield "| " + " | ".join(cells + [text_of(body["reason"])] + [""] * 10) + " |\n"
                    continue
                for figure in ("mean_us", "max_us", "last_us"):
                    bound = body["bound"].get(figure) if mean(body, figure) is not None else None
                    cells += [shown(mean(body, figure)) + spread(body, figure), shown(bound["mean"]) if bound else ""]
                dropped = sum(mean(body, d) or 0 for d in ("drop_queue", "drop_loss", "drop_down"))
                cells += [shown(mean(body, k)) for k in ("gbps", "resent", "needless")] + [shown(dropped), shown(mean(body, "ce_marked"))]
                yield "| " + " | ".join(cells) + " |\n"


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as handle:
        data = json.load(handle)
    known = [r for r in data["rows"] if r["met"] is not None]
    reason = f" It ended early ({text_of(data['reason'])}): rows are missing." if data["reason"] else ""
    command = data["command"].replace(" --scenario", " \\\n  --scenario")
    text = HEAD.format(make="make eval", version=data["version"], reason=reason, command=command)
    text += "".join(goal_rows(data))
    text += f"\n{sum(r['met'] for r in known)} of {len(known)} goals met. `build/eval.json` has the same rows for scripts.\n"
    plots = sorted(name for name in os.listdir(sys.argv[3]) if name.endswith(".svg")) if "--plots" in data["command"] else []
    if plots:
        text += "\n## Plots\n\n`make eval` draws them, PNG and SVG, into `" + sys.argv[3] + "`:\n\n"
        text += "".join(f"- `{name}`\n" for name in plots)
    text += "\n## All points\n" + "".join(scenario_tables(data))
    new = sys.argv[2] + ".new"
    with open(new, "w", encoding="utf-8") as handle:
        handle.write(text)
    os.replace(new, sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
