# SPDX-License-Identifier: Apache-2.0
"""Runs the Promela models beside this file; what they say is in docs/formal.md.

    formal.py             the long, exhaustive set, as a table (make formal)
    formal.py NAME...     these runs of either set, with the counter-example of each that fails

A run is a model, a set of -D options and a kind of search; `expect` is what Spin must find, None
for nothing. A search that did not end, for want of depth or memory, never counts as passed.
"""
import dataclasses
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY_MB = 8000

# What Spin finds, by the text of its verdict.
TWICE = "assertion violated  !(got"          # a packet written twice
UNDELIVERED = "assertion violated got"       # completed, not written
REUSED = "assertion violated (msg[(a-1)]!=3)"  # written after an error gave the buffer back
BLAMED = "assertion violated  !(was_black"   # a path failed though everything was dark
INCOMPLETE = "assertion violated ( !((((packet"  # a signal before its data
OVERCOMMITTED = "assertion violated (posted!=taken)"  # a SEND without a buffer
HOLE = "assertion violated (got[0]&&got"       # a signal over a hole
LIVELOCK = "non-progress cycle"
DEADLOCK = "invalid end state"

# How to search: options for the C compiler, for the verifier, and its name in the table.
SAFETY = (("-DSAFETY", "-DCOLLAPSE"), (), "safety")
SHORTEST = (("-DSAFETY", "-DBFS"), (), "safety, breadth first")
PROGRESS = (("-DNP", "-DCOLLAPSE", "-DNFAIR=3"), ("-l", "-f"), "progress, weakly fair")


@dataclasses.dataclass(frozen=True)
class Run:
    name: str
    model: str
    options: str
    search: tuple
    expect: str = None
    depth: int = 1_000_000
    optimize: str = "-O0"  # of the verifier: most searches are shorter than its compilation

    @property
    def defines(self):
        return ["-D" + option for option in self.options.split()]


@dataclasses.dataclass
class Result:
    found: str       # verdict of the verifier, "" for none
    complete: bool   # everything was searched
    states: int
    depth: int
    memory_mb: float
    folder: str


def number(pattern, text, default="0"):
    match = re.search(pattern, text)
    return float(match.group(1) if match else default)


def execute(run):
    """Generates, compiles and runs the verifier of `run`; raises if any of these does not work."""
    folder = os.path.join(BUILD, "formal", run.name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    compiler, verifier, _ = run.search

    def call(command, allowed):
        done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0 or not allowed(done.stdout):
            raise RuntimeError(f"{run.name}: {' '.join(command)} failed:\n{done.stdout[-2000:]}")
        return done.stdout

    call(["spin", "-a", *run.defines, os.path.join(HERE, run.model + ".pml")], lambda text: "rror" not in text)
    call(["gcc", run.optimize, "-w", f"-DMEMLIM={MEMORY_MB}", *compiler, "-o", "pan", "pan.c"], lambda text: True)
    out = call(["./pan", f"-m{run.depth}", *verifier], lambda text: "errors:" in text)
    found = re.search(r"^pan:\d+: (.*?)(?: \(at depth \d+\))?$", out, re.M)
    return Result(found.group(1) if found else "",
                  not re.search(r"max search depth too small|out of memory|pan: reached -DMEMLIM|interrupted", out),
                  int(number(r"([\d.e+]+) states, stored", out)), int(number(r"depth reached (\d+)", out)),
                  number(r"([\d.]+)\ttotal actual memory", out), folder)


def problem(run, result):
    """Why the result is not what was expected, or ""."""
    if run.expect:
        return "" if result.found.startswith(run.expect) else f"expected '{run.expect}', found '{result.found or 'nothing'}'"
    if result.found:
        return f"found '{result.found}'"
    return "" if result.complete else "the search did not end"


def counter_example(run):
    """The trail of the last execution of `run`, in the words of the model's printf."""
    folder = os.path.join(BUILD, "formal", run.name)
    out = subprocess.run(["spin", "-T", "-k", f"{run.model}.pml.trail", *run.defines,
                          os.path.join(HERE, run.model + ".pml")], cwd=folder, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
    # Behind the trail Spin dumps the state: variables indented, processes numbered.
    return [line for line in out.splitlines() if re.match(r"\w|<", line) and
            not re.match(r"spin:|\s*\d+:\t|\d+ process", line)]


# -- The runs of `make test`: every correction holds, and is needed -----------------------------------

QUICK = [
    Run("two-paths", "bag", "N=2 EM=2 ROTATE", SAFETY, optimize="-O1"),
    Run("two-paths-late3", "bag", "N=1 EM=2 K=3 ROTATE", SAFETY, optimize="-O1"),
    Run("pipelined-give-up", "bag", "N=1 EM=2 PIPE GIVE_UP ROTATE", SAFETY, optimize="-O1"),
    Run("progress", "fifo", "N=1 ROTATE", PROGRESS, optimize="-O1"),
    Run("no-deadlock", "fifo", "N=1 ROTATE", SAFETY),
    Run("evidence", "fifo", "N=1 BLACKOUT ROTATE", SAFETY, optimize="-O1"),
    Run("reorder-1", "reorder", "D=1", PROGRESS),
    Run("reorder-2", "reorder", "D=2", PROGRESS),
    # Where the history is anchored does not matter as long as it covers the window.
    Run("from-highest", "reorder", "D=1 FROM_HIGHEST", SAFETY),
    Run("messages", "message", "", SAFETY),
    Run("credits", "credit", "", SAFETY),
    Run("credits-progress", "credit", "", PROGRESS),
    # A connection that fails, of several ports, with fences and without; and a sender that breaks W-FENCE-008.
    Run("ports", "bag", "N=1 EM=2 PORTS GIVE_UP ROTATE", SAFETY, optimize="-O1"),
    Run("ports-no-fence", "bag", "N=2 EM=2 PORTS GIVE_UP NO_FENCE_CAP ROTATE", SAFETY, optimize="-O1"),
    Run("hasty", "bag", "N=2 EM=2 PORTS GIVE_UP NO_FENCE_CAP FLUSH_EARLY HASTY", SAFETY, optimize="-O1"),
    # Somebody forges fences and answers.
    Run("forger", "bag", "N=1 EM=2 FORGER ROTATE", SAFETY, optimize="-O1"),
    # The alternative to W5: the fence of an epoch never seen opens and closes it.
    Run("fence-opens", "bag", "N=1 EM=2 NO_W5 FENCE_OPENS ROTATE", SAFETY),
    Run("fence-opens-progress", "fifo", "N=1 NO_W5 FENCE_OPENS ROTATE", PROGRESS, optimize="-O1"),

    Run("NO_W1", "fifo", "N=1 ROTATE NO_W1", PROGRESS, LIVELOCK),
    Run("NO_W2", "bag", "N=1 EM=4 NO_W2", SHORTEST, TWICE),
    Run("NO_W2_ANSWER", "bag", "N=1 EM=4 NO_W2_ANSWER", SHORTEST, UNDELIVERED, optimize="-O1"),
    Run("NO_W3", "fifo", "N=1 ROTATE NO_W3", PROGRESS, LIVELOCK),
    Run("NO_W3_STALE", "fifo", "N=1 ROTATE NO_W3_STALE", PROGRESS, LIVELOCK),
    Run("NO_W4", "bag", "N=1 EM=2 NO_W4", SHORTEST, TWICE, optimize="-O1"),
    Run("NO_W4-2bit", "bag", "N=1 EM=4 ROTATE NO_W4", SAFETY, TWICE),
    Run("W4_ONE_MORE", "bag", "N=1 EM=4 ROTATE W4_ONE_MORE", SAFETY, TWICE),
    Run("NO_W5", "fifo", "N=1 ROTATE NO_W5", PROGRESS, LIVELOCK),
    Run("NO_W5_DATA", "fifo", "N=1 ROTATE NO_W5_DATA", PROGRESS, LIVELOCK),
    Run("NO_W6", "bag", "N=1 EM=2 DIRS=2 NO_W6", SHORTEST, TWICE, optimize="-O1"),
    Run("NO_W7", "bag", "N=1 EM=2 PIPE NO_W7", SHORTEST, TWICE),
    Run("NO_W7_EARLY_ACK", "bag", "N=1 EM=2 PIPE NO_W7_EARLY_ACK", SHORTEST, UNDELIVERED),
    Run("NO_W8", "bag", "N=1 EM=2 GIVE_UP NO_W8", SHORTEST, REUSED),
    Run("FLUSH_EARLY", "bag", "N=1 EM=2 PORTS GIVE_UP NO_FENCE_CAP FLUSH_EARLY", SHORTEST, TWICE),
    Run("FLUSH_EARLY-fence", "bag", "N=1 EM=2 PORTS GIVE_UP FLUSH_EARLY", SHORTEST, TWICE),
    Run("NO_STOP_ALL", "bag", "N=1 EM=2 PORTS GIVE_UP NO_FENCE_CAP NO_STOP_ALL", SHORTEST, REUSED),
    Run("NO_STOP_ALL-fence", "bag", "N=1 EM=2 PORTS GIVE_UP NO_STOP_ALL", SHORTEST, REUSED),
    Run("NO_COVER", "bag", "N=2 EM=2 PORTS GIVE_UP NO_FENCE_CAP FLUSH_EARLY HASTY NO_COVER", SHORTEST, HOLE),
    Run("NO_ASKED", "bag", "N=1 EM=2 FORGER NO_ASKED", SHORTEST, UNDELIVERED),
    Run("NO_ASKED-progress", "fifo", "N=1 FORGER ROTATE NO_ASKED", PROGRESS, LIVELOCK),
    Run("ONLY_CONFIRMED", "fifo", "N=1 FORGER ROTATE ONLY_CONFIRMED", PROGRESS, LIVELOCK),
    Run("NO_OPENING", "fifo", "N=1 FORGER ROTATE NO_OPENING", PROGRESS, LIVELOCK),
    Run("NO_CLOSED_ANSWER", "fifo", "N=1 FORGER ROTATE NO_CLOSED_ANSWER", PROGRESS, LIVELOCK),
    Run("NO_W9", "bag", "N=1 EM=2 RESTART NO_W9", SHORTEST, REUSED),
    Run("NO_W10", "reorder", "D=1 NO_W10", PROGRESS, LIVELOCK),
    Run("NO_W10_SHORT", "reorder", "D=1 NO_W10_SHORT", SHORTEST, TWICE),
    Run("NO_W11", "bag", "N=2 EM=2 NO_W11", SHORTEST, TWICE),
    Run("NO_W11-3bit", "bag", "N=2 EM=2 QM=8 ROTATE NO_W11", SAFETY, TWICE),
    Run("NO_EVIDENCE", "fifo", "N=1 BLACKOUT ROTATE NO_EVIDENCE", SHORTEST, BLAMED),
    Run("EVIDENCE_FROM_REPEATS", "fifo", "N=1 BLACKOUT LATE ROTATE EVIDENCE_FROM_REPEATS", SHORTEST, BLAMED),
    Run("EVIDENCE_RESET", "fifo", "N=1 ROTATE EVIDENCE_RESET", PROGRESS, LIVELOCK),
    Run("NO_SCOUT", "fifo", "N=1 ROTATE NO_SCOUT", PROGRESS, LIVELOCK),
    Run("RESEND_SAME", "fifo", "N=1 ROTATE RESEND_SAME", PROGRESS, LIVELOCK),
    Run("RESERVE_COUNTS_DATA", "fifo", "N=2 W=3 QM=8 ROTATE RESERVE_COUNTS_DATA", PROGRESS, LIVELOCK),
    Run("NO_WINDOW", "message", "NO_WINDOW", SHORTEST, INCOMPLETE),
    Run("NO_ORDER", "message", "NO_ORDER", SHORTEST, INCOMPLETE),
    Run("COUNT_EARLY", "message", "COUNT_EARLY", SHORTEST, INCOMPLETE),
    Run("SIGNAL_LATE", "message", "SIGNAL_LATE", SHORTEST, INCOMPLETE),
    Run("NO_CREDIT_MESSAGE", "credit", "NO_CREDIT_MESSAGE", SHORTEST, DEADLOCK),
    Run("CREDIT_ONCE", "credit", "CREDIT_ONCE", SHORTEST, DEADLOCK),
    Run("COUNT_FREE", "credit", "COUNT_FREE", SHORTEST, OVERCOMMITTED),
]

# -- The runs of `make formal` ------------------------------------------------------------------------

LONG = [
    Run("forger-progress", "fifo", "N=1 FORGER ROTATE", PROGRESS, optimize="-O2"),
    Run("forger-2", "bag", "N=2 EM=2 FORGER ROTATE", SAFETY, optimize="-O2"),
    Run("ports-2", "bag", "N=2 EM=2 PORTS GIVE_UP ROTATE", SAFETY, optimize="-O2"),
    Run("ports-pipelined", "bag", "N=1 EM=2 PIPE PORTS GIVE_UP NO_FENCE_CAP ROTATE", SAFETY, optimize="-O2"),
    Run("two-paths-2bit", "bag", "N=2 EM=4 ROTATE", SAFETY, optimize="-O2"),
    Run("two-paths-late3-2", "bag", "N=2 EM=2 K=3 ROTATE", SAFETY, optimize="-O2"),
    Run("progress-late", "fifo", "N=1 LATE ROTATE", PROGRESS, optimize="-O2"),
    Run("progress-2", "fifo", "N=2 ROTATE", PROGRESS, optimize="-O2"),
    Run("progress-3-probes", "fifo", "N=1 FAILS=3 ROTATE", PROGRESS, optimize="-O2"),
    Run("progress-window-3", "fifo", "N=1 W=3 QM=8 ROTATE", PROGRESS, optimize="-O2"),
    Run("evidence-late", "fifo", "N=1 BLACKOUT LATE ROTATE", SAFETY, optimize="-O2"),
    Run("restart", "bag", "N=1 EM=2 RESTART", SAFETY, optimize="-O2"),
    Run("pipelined", "bag", "N=2 EM=2 PIPE GIVE_UP ROTATE", SAFETY, optimize="-O2"),
    Run("both-directions", "bag", "N=1 EM=2 DIRS=2 K=1 ROTATE", SAFETY, optimize="-O2"),
    Run("fence-opens-2bit", "bag", "N=1 EM=4 NO_W5 FENCE_OPENS ROTATE", SAFETY, optimize="-O2"),
    Run("window-3", "bag", "N=1 EM=2 W=3 QM=8 ROTATE", SAFETY, optimize="-O2"),
    # That the last usable path is not failed: exactly once does not need it, since fences go over failed paths (W1).
    Run("fail-last", "bag", "N=2 EM=2 FAIL_LAST ROTATE", SAFETY, optimize="-O2"),
]


def main():
    wanted = sys.argv[1:]
    runs = {run.name: run for run in QUICK + LONG}
    for name in wanted:
        if name not in runs:
            print(f"formal.py: no run is called '{name}'; expected one of: {' '.join(runs)}", file=sys.stderr)
            return 2
    failed = 0
    print(f"{'run':22} {'model':8} {'options':38} {'search':22} {'states':>11} {'depth':>9} {'MB':>6}  result", flush=True)
    for run in [runs[name] for name in wanted] or LONG:
        result = execute(run)
        why = problem(run, result)
        failed += bool(why)
        verdict = why or result.found or "no error"
        print(f"{run.name:22} {run.model:8} {run.options:38} {run.search[2]:22} {result.states:11} {result.depth:9} "
              f"{result.memory_mb:6.0f}  {verdict}", flush=True)
        if wanted and result.found:
            print("\n".join("    " + line for line in counter_example(run)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
