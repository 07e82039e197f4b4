# SPDX-License-Identifier: Apache-2.0
"""Draws what `weft eval --json` found: PNG and SVG of each plot for which there is data, beside the figures they show.

    eval_plots.py FOLDER < eval.json
    eval_plots.py --check               exit status 0: it could draw

Files are written when all are drawn, as .part, and then take their names; a signal comes before that or behind it. So
whoever ends this program finds all of them or none.
"""
import importlib.util
import io
import json
import os
import signal
import sys

if sys.argv[1:] == ["--check"]:
    sys.exit(0 if importlib.util.find_spec("matplotlib") else 1)

signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends it without a word, as it ends `weft eval`

import matplotlib  # noqa: E402

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "weft"  # the same figures give the same file
import matplotlib.pyplot as plt  # noqa: E402

NAMES = {"weft": "Weft", "rocev2": "RoCEv2", "rocev2_pfc": "RoCEv2 with PFC"}
STYLES = {"weft": dict(color="#0b6", marker="o"), "rocev2": dict(color="#c33", marker="s"),
          "rocev2_pfc": dict(color="#e90", marker="^")}
BOUND = dict(color="black", linestyle="--", linewidth=1)
UET = dict(color="#36c", marker="x", linestyle="none")


def metric(body, name):
    value = body["metrics"].get(name)
    return value["mean"] if value else None


def swept(scenario, key):
    """Points of a scenario that differ in `key` alone, in its order."""
    points = [p for p in scenario["points"] if key in p["at"]]
    return sorted(points, key=lambda p: p["at"][key]) if all(len(p["at"]) == 1 for p in points) else []


def curves(axes, points, key, name):
    """One line a body, with the spread over seeds as bars."""
    for body in NAMES:
        xs, ys, lows, highs = [], [], [], []
        for p in points:
            found = p["bodies"].get(body, {}).get("metrics", {}).get(name)
            if found and found["mean"] is not None:
                xs.append(p["at"][key])
                ys.append(found["mean"])
                lows.append(found["mean"] - found["low"])
                highs.append(found["high"] - found["mean"])
        if xs:
            axes.errorbar(xs, ys, yerr=[lows, highs], capsize=3, label=NAMES[body], **STYLES[body])
    # Each body has its own headers, so its own bound; they are too near each other to be told apart here.
    bounds = [(p["at"][key], next(iter(p["bodies"].values()))["bound"].get(name)) for p in points]
    bound = [(x, y["mean"]) for x, y in bounds if y]
    if bound:
        axes.plot(*zip(*bound), label="bound", **BOUND)


def loss_plot(scenario, rows):
    points = swept(scenario, "loss")
    if len(points) < 2 or not any(p["bodies"].get("weft", {}).get("metrics", {}).get("retained_pct") for p in points):
        return None
    figure, axes = plt.subplots(figsize=(6, 4))
    shown = [dict(p, at={"loss": 100 * p["at"]["loss"]}) for p in points]
    curves(axes, shown, "loss", "retained_pct")
    uet = [(float(r["name"].split(": ")[1].split(" %")[0]), r["uet_htsim"]) for r in rows
           if r["name"].startswith(scenario["name"] + ": ") and " % loss" in r["name"] and r["uet_htsim"] is not None]
    if uet:
        axes.plot(*zip(*uet), label="uet-htsim", **UET)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xticks([100 * p["at"]["loss"] for p in points], [f"{100 * p['at']['loss']:g}" for p in points])
    axes.set_xlabel("loss, % of packets, acks too")
    axes.set_ylabel("performance, % of own at no loss")
    axes.set_ylim(0, 105)
    return figure


def planes_plot(scenario, rows):
    points = swept(scenario, "planes")
    if len(points) < 2:
        return None
    figure, axes = plt.subplots(figsize=(6, 4))
    curves(axes, points, "planes", "gbps")
    axes.set_xticks([p["at"]["planes"] for p in points])
    axes.set_xlabel("planes")
    axes.set_ylabel("Gb/s of a flow, on the wire")
    axes.set_ylim(0, None)
    return figure


def shares_plot(scenario, rows):
    """Incast: what each flow got in each window."""
    if "incast" not in scenario["name"]:
        return None
    bodies = [b for b in NAMES if "gbps_over_time" in scenario["points"][0]["bodies"].get(b, {})]
    if not bodies:
        return None
    figure, plots = plt.subplots(1, len(bodies), figsize=(4.5 * len(bodies), 4), sharey=True, squeeze=False)
    for axes, body in zip(plots[0], bodies):
        flows = scenario["points"][0]["bodies"][body]["gbps_over_time"]
        for flow in flows:
            axes.step([i * scenario["window_us"] for i in range(len(flow) + 1)], flow + flow[-1:], where="post",
                      color=STYLES[body]["color"], alpha=0.35, linewidth=0.8)
        axes.axhline(100 / len(flows), label="fair share of 100 Gb/s", **BOUND)
        axes.set_title(NAMES[body])
        axes.set_xlabel("time, us")
        axes.legend()
    plots[0][0].set_ylabel("Gb/s of each flow, payload")
    return figure


def failure_plot(scenario, rows):
    """All flows together, over time, of a scenario with and without its faults."""
    points = [p for p in scenario["points"] if "gbps_over_time" in p["bodies"].get("weft", {})]
    if "incast" in scenario["name"] or not points or scenario["window_us"] > 50:
        return None
    figure, axes = plt.subplots(figsize=(6, 4))
    for p in points:
        for body, found in p["bodies"].items():
            flows = found.get("gbps_over_time", [])
            length = min(max(map(len, flows), default=0), 400)
            total = [sum(f[i] for f in flows if i < len(f)) / 1000 for i in range(length)]
            faults = p["at"].get("faults", 1)
            axes.plot([(i + 0.5) * scenario["window_us"] for i in range(length)], total, color=STYLES[body]["color"],
                      linestyle="-" if faults else ":",
                      label=NAMES[body] + ("" if faults else ", no fault"))
    axes.set_xlabel("time, us")
    axes.set_ylabel("Tb/s of all flows, payload")
    axes.set_ylim(0, None)
    return figure


def completion_plot(scenario, rows):
    """Distribution of completion times at each loss."""
    points = [p for p in scenario["points"]
              if any(len(b.get("completion_us", [])) >= 20 for b in p["bodies"].values())]
    if not points:
        return None
    figure, axes = plt.subplots(figsize=(6, 4))
    lines = ["-", "--", "-.", ":", (0, (1, 4))]
    for number, p in enumerate(points):
        for body, found in p["bodies"].items():
            times = sorted(found.get("completion_us", []))
            if not times:
                continue
            at = ", ".join(f"{k} {v:g}" for k, v in p["at"].items())
            axes.step(times, [100 * (i + 1) / len(times) for i in range(len(times))], where="post",
                      color=STYLES[body]["color"], linestyle=lines[number % len(lines)],
                      label=NAMES[body] + (f", {at}" if at else ""))
    axes.set_xscale("log")
    axes.set_xlabel("completion time of a flow, us")
    axes.set_ylabel("% of flows")
    return figure


PLOTS = {"loss": loss_plot, "planes": planes_plot, "shares": shares_plot, "over_time": failure_plot,
         "completion": completion_plot}


def drawn(data):
    """Contents of the plots, by name of file."""
    files = {}
    for scenario in data["scenarios"]:
        before = len(files)
        for name, plot in PLOTS.items():
            figure = plot(scenario, data["rows"])
            if figure is None:
                continue
            axes = figure.axes[0]
            if len(figure.axes) == 1:
                axes.set_title(scenario["title"], fontsize=10)
                axes.legend(fontsize=7)
                axes.grid(alpha=0.3)
            figure.tight_layout()
            for kind in ("png", "svg"):
                content = io.BytesIO()
                figure.savefig(content, format=kind, dpi=110, metadata={"Date": None} if kind == "svg" else None)
                files[f"{scenario['name']}-{name}.{kind}"] = content.getvalue()
            plt.close(figure)
        if len(files) == before:
            print(f"weft eval: --plots: {scenario['name']}: nothing to draw: no sweep of loss or planes, no accounts over time "
                  "(eval.window_us), fewer than 20 flows that are done", file=sys.stderr)
    return files


def publish(files, folder):
    """Puts all files into the folder, in place of those of before, or none of them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    made, path = [], os.path.abspath(folder)  # innermost first
    while not os.path.exists(path):
        made.append(path)
        path = os.path.dirname(path)
    parts = {os.path.join(folder, name + ".part"): content for name, content in files.items()}
    try:
        os.makedirs(folder, exist_ok=True)
        for path, content in parts.items():
            with open(path, "wb") as handle:
                handle.write(content)
    except OSError:
        for path in filter(os.path.exists, parts):
            os.remove(path)
        for path in filter(os.path.exists, made):
            os.rmdir(path)
        raise
    for path in parts:
        os.replace(path, path.removesuffix(".part"))


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    text = sys.stdin.buffer.read()
    files = drawn(json.loads(text))
    try:
        publish({"eval.json": text, **files}, sys.argv[1])
    except OSError as e:
        print(f"weft eval: --plots = {sys.argv[1]}: cannot be written: {e.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
