# SPDX-License-Identifier: Apache-2.0
"""`weft eval`: what it says to wrong input, and one small run end to end.

Wrong input: one line on stderr that names file, key, value and what was expected; exit status 2; nothing on stdout;
no file that was not there before.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

NEEDS = ["weft"]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
WEFT = os.path.join(BUILD, "weft")
LIMIT_S = 600  # of one call; only a hang comes near it

SCENARIO = """\
name = "small"
[eval]
title = "a small permutation"
bodies = ["weft", "rocev2"]
seeds = [1, 2]
limit_us = 100_000
window_us = 20
[cluster]
nodes = 8
planes = 2
[fabric]
hosts_per_leaf = 4
[packet]
payload = 4086
overhead = 64
[traffic]
pattern = "permutation"
bytes = 200_000
[weft]
paths = 16
[sweep]
loss = [0, 0.02]
[[goal]]
row = "2 % loss"
metric = "retained_pct"
unit = "%"
at_least = 10
loss = 0.02
"""


def setUpModule():
    # A shell ignores it for what it runs in the background, and so would all that these tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class EvalCli(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft_eval")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.write(SCENARIO)

    def write(self, text):
        with open(os.path.join(self.dir, "s.toml"), "w", encoding="utf-8") as handle:
            handle.write(text)

    def weft(self, *args, env=None):
        return subprocess.run([WEFT, "eval", *args], cwd=self.dir, text=True, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)

    def refused(self, args, *words, env=None):
        result = self.weft(*args, env=env)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertRegex(result.stderr, r"\A[^\n]+\n\Z", "not one line")
        self.assertEqual(result.stdout, "")
        self.assertEqual(os.listdir(self.dir), ["s.toml"])
        for word in words:
            self.assertIn(word, result.stderr)

    def changed(self, old, new, *words):
        self.assertIn(old, SCENARIO)
        with self.subTest(new=new):
            self.write(SCENARIO.replace(old, new))
            self.refused(["--scenario", "s.toml", "--json", "o.json"], "s.toml", *words)

    def test_bad_scenarios(self):
        self.changed("seeds = [1, 2]", "seed = [1, 2]", "eval.seeds", "missing")
        self.changed("[fabric]\n", "[fabric]\nqueue_bytes = 4129\n", "fabric.queue_bytes = 4129",
                     "at least 4130, a full frame of packet.payload = 4086")
        self.changed("limit_us = 100_000\n", "", "eval.limit_us", "missing")
        self.changed("[packet]\npayload = 4086\n", "[packet]\n", "packet.payload", "missing")
        self.changed('pattern = "permutation"\n', "", "traffic.pattern", "missing")
        self.changed("bytes = 200_000\n", "", "traffic.bytes", "missing")
        self.changed("paths = 16", "paths = 16\nwindow = 3", "weft.window = 3", "unknown key")
        self.changed("planes = 2", "planes = 2\nsize = 3", "cluster.size = 3", "unknown key")
        self.changed('"permutation"', '"perm"', "traffic.pattern", "'perm'", "permutation")
        self.changed("loss = [0, 0.02]", "loss = [0, 1]", "sweep.loss[1] = 1", "from 0 to 0.999999")
        self.changed("loss = [0, 0.02]", "loss = [0, -0.1]", "sweep.loss[1] = -0.1")
        self.changed("loss = [0, 0.02]", "loss = 0", "sweep.loss = 0")
        for loss in ("1", "1.5"):
            self.changed("[sweep]\nloss = [0, 0.02]", f"[faults]\nloss = {loss}", f"faults.loss = {loss}", "a number from 0 to 0.999999")
        self.changed("nodes = 8", "nodes = 1", "cluster.nodes = 1", "at least 2")
        self.changed("hosts_per_leaf = 4", 'topology = "ring"', "fabric.topology", "'ring'")
        self.changed("at_least = 10\n", "", "goal[0].at_least")
        self.changed('bodies = ["weft", "rocev2"]', 'bodies = ["tcp"]', "eval.bodies", "rocev2")
        self.write(SCENARIO.replace("planes = 2", "planes = 8").replace("paths = 16", "paths = 33"))
        self.refused(["--scenario", "s.toml"], "weft.paths = 33", "at most 256 / cluster.planes = 32")
        self.changed('"permutation"\nbytes = 200_000', '"flows"\n[[traffic.flow]]\nsrc = 0\ndst = 8\nbytes = 1',
                     "traffic.flow[0].dst = 8", "below cluster.nodes = 8")

    def test_what_would_mean_nothing_or_mislead(self):
        self.changed('name = "small"\n', "", "name", "missing")
        self.changed('name = "small"', 'name = "../small"', "name = '../small'", "letters")
        self.changed("seeds = [1, 2]", "seeds = [1, 1]", "eval.seeds", "each seed once")
        self.changed('["weft", "rocev2"]', '["weft", "weft"]', "eval.bodies", "each body once")
        self.changed("loss = [0, 0.02]", "loss = [0, 0.02, 0]", "sweep.loss", "each value once")
        self.changed("window_us = 20", "window_us = 0.000001", "eval.window_us = 1e-06", "at least 0.1")
        # A flow that cannot start, and a pause that comes too late.
        self.changed('"permutation"\nbytes = 200_000', '"flows"\n[[traffic.flow]]\nsrc = 0\ndst = 1\nbytes = 1\nstart_us = 100_000',
                     "traffic.flow[0].start_us = 100000", "below eval.limit_us = 100000")
        self.changed('["weft", "rocev2"]\nseeds = [1, 2]', '["rocev2_pfc"]\nseeds = [1]\nmay_stall = ["tcp"]', "eval.may_stall", "rocev2")
        self.write(SCENARIO.replace("hosts_per_leaf = 4", "hosts_per_leaf = 4\npfc_xoff_bytes = 200_000"))
        self.refused(["--scenario", "s.toml", "--body", "rocev2_pfc"], "fabric.pfc_xoff_bytes = 200000", "at most 94")
        self.changed("at_least = 10\n", "at_least = 10\nat_most = 20\n", "goal[0].at_most")
        self.changed("overhead = 64", 'overhead = 64\ncharge = "none"', "packet.charge", "own", "same")
        self.changed('"retained_pct"', '"retained"', "goal[0].metric = 'retained'", "a figure of docs/eval_scenarios.md")
        self.changed("\nloss = 0.02", "\nloss = 0.03", "goal[0].loss = 0.03", "a value of the sweep")

    def test_absurd_sizes(self):
        self.changed("nodes = 8", "nodes = 1_000_000_000", "cluster.nodes = 1000000000", "from 1 to 4096")
        self.changed("bytes = 200_000", "bytes = 1e18", "traffic.bytes = 1e+18", "1099511627776")
        self.changed("payload = 4086\noverhead = 64\n[traffic]\npattern = \"permutation\"\nbytes = 200_000",
                     "payload = 64\noverhead = 64\n[traffic]\npattern = \"permutation\"\nbytes = 1_099_511_627_776",
                     "packet.payload = 64", "fewer than 2^32 packets")
        self.changed("paths = 16", "paths = 65", "weft.paths = 65", "from 1 to 64")
        self.changed("loss = [0, 0.02]", "loss = [nan]", "sweep.loss[0] = nan")
        self.changed("bytes = 200_000", "bytes = 99999999999999999999", "not TOML")

    def test_files_that_are_no_scenario(self):
        for content in (b"\x00\xff\xfe" * 1000, b"", b"[" * 100_000):
            with self.subTest(content=content[:8]):
                with open(os.path.join(self.dir, "s.toml"), "wb") as handle:
                    handle.write(content)
                self.refused(["--scenario", "s.toml"], "s.toml")
        self.refused(["--scenario", "."], ".: cannot be read")

    def test_more_memory_than_there_is(self):
        self.write(SCENARIO.replace("nodes = 8", "nodes = 4096").replace('"permutation"', '"all_to_all"'))
        self.refused(["--scenario", "s.toml"], "s.toml: cluster.nodes = 4096", "MiB of this machine")

    def test_bad_flags(self):
        ok = ["--scenario", "s.toml"]
        self.refused([])
        self.refused(["--scenario", "absent.toml"], "absent.toml", "cannot be read")
        for loss in ("1", "1.5", "0.9999995"):
            self.refused([*ok, "--loss", loss], f"--loss = {loss}", "from 0 to 0.999999")
        self.refused([*ok, "--loss", "0,x"], "--loss = 0,x")
        self.refused([*ok, "--seed", "-1"], "--seed = -1")
        self.refused([*ok, "--planes", "0"], "--planes = 0")
        self.refused([*ok, "--planes", "1.5"], "--planes = 1.5")
        self.refused([*ok, "--paths", "65"], "--paths = 65", "from 1 to 64")
        self.refused([*ok, "--size", "1099511627777"], "--size = 1099511627777", "2^40")
        self.refused([*ok, "--json", "-", "--csv", "-"], "--csv = -", "another place than --json")
        self.refused([*ok, "--body", "tcp"], "--body = tcp", "rocev2")
        self.refused([*ok, "--threads", "0"], "--threads = 0")
        self.refused([*ok, "--json", "none/o.json"], "--json = none/o.json")
        self.refused([*ok, "--csv", "none/o.csv"], "--csv = none/o.csv")
        self.refused([*ok, "--plots", "s.toml/p"], "--plots = s.toml/p: cannot be made")
        self.refused([*ok, "--plots", "/proc/p"], "--plots = /proc/p: cannot be made")

        self.refused([*ok, "--json", ""], "--json = '': expected a path")
        self.refused([*ok, "--json", "s.toml"], "--json = s.toml", "expected no file that is read")
        self.refused([*ok, "--json", "o", "--csv", "./o"], "--csv = ./o", "expected another file than --json")
        self.refused([*ok, *ok], "name = small", "expected another name than that of s.toml")
        self.refused([*ok, "--loss", "0.1,0.1"], "--loss = 0.1,0.1", "each value once")
        self.refused([*ok, "--body", "weft,weft"], "--body = weft,weft", "each once")
        self.refused([*ok, "--seed", "9007199254740993"], "--seed = 9007199254740993", "2^53 - 1")

    def test_what_is_not_done_is_not_ok(self):
        self.write(SCENARIO.replace("limit_us = 100_000", "limit_us = 5").replace("[sweep]\nloss = [0, 0.02]\n", "").replace("\nloss = 0.02", ""))
        result = self.weft("--scenario", "s.toml", "--json", "o.json", "--csv", "o.csv")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        last = result.stdout.splitlines()[-2:]
        self.assertRegex(last[0], r"^FAILED: s.toml: weft: seed 1: 8 flows not done by eval.limit_us = 5$")
        self.assertEqual(last[1], "rerun: weft eval --scenario s.toml --json o.json --csv o.csv")
        # A row says so and has no figure; nor have JSON and CSV.
        self.assertRegex(result.stdout, r"(?m)^ +weft +seed 1: 8 flows not done by eval.limit_us = 5$")
        with open(os.path.join(self.dir, "o.json"), encoding="utf-8") as handle:
            data = json.load(handle)
        self.assertIn("not done", data["reason"])
        body = data["scenarios"][0]["points"][0]["bodies"]["weft"]
        self.assertEqual(list(body["metrics"]), ["unfinished"])
        self.assertIn("not done", body["reason"])
        self.assertNotIn("completion_us", body)
        self.assertIs(data["rows"][0]["met"], False)
        self.assertIsNone(data["rows"][0]["value"])
        with open(os.path.join(self.dir, "o.csv"), encoding="utf-8") as handle:
            self.assertEqual({line.split(",")[3] for line in handle if ",weft," in line}, {"unfinished"})
        # The scenario may say that a body need not finish: then its row tells it, and all is well.
        with open(os.path.join(self.dir, "s.toml"), encoding="utf-8") as handle:
            self.write(handle.read().replace("seeds = ", 'may_stall = ["weft", "rocev2"]\nseeds = '))
        result = self.weft("--scenario", "s.toml")
        self.assertEqual((result.returncode, result.stdout.splitlines()[-1]), (0, "ok"), result.stderr)
        self.assertIn("not done", result.stdout)

    def test_columns_are_what_they_say(self):
        self.write(SCENARIO.replace('"permutation"\nbytes = 200_000', '"flows"\n[[traffic.flow]]\nsrc = 0\ndst = 1\nbytes = 4096\nstart_us = 500'))
        result = self.weft("--scenario", "s.toml", "--loss", "0", "--seed", "1", "--body", "weft", "--json", "o.json", "--planes", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        cells = lines[2].split()
        figures = dict(zip(("mean", "mean bound", "max", "max bound", "last", "last bound"), map(float, cells[-13:-7])))
        self.assertEqual(lines[1].split()[:7], ["body", "mean_us", "bound", "max_us", "bound", "last_us", "bound"])
        for name in ("mean", "mean bound", "max", "max bound"):
            self.assertLess(figures[name], 20, figures)
        for name in ("last", "last bound"):
            self.assertGreater(figures[name], 500, figures)

    def test_json_and_csv_on_standard_output(self):
        result = self.weft("--scenario", "s.toml", "--seed", "1", "--json", "-")
        data = json.loads(result.stdout)
        self.assertEqual(data["command"], "weft eval --scenario s.toml --seed 1 --json -")
        self.assertRegex(data["version"], r"^[0-9a-f]{12,}(-dirty)?$|-g[0-9a-f]{7,}|^unknown$")
        self.assertIsNone(data["reason"])
        self.assertEqual(data["scenarios"][0]["file"], "s.toml")
        self.assertEqual({r["body"] for r in data["rows"]}, {"weft"})
        self.assertEqual({r["endpoint"] for r in data["rows"]}, {"reference"})
        self.assertEqual(result.stderr.splitlines()[-1], "ok")
        result = self.weft("--scenario", "s.toml", "--seed", "1", "--csv", "-")
        self.assertEqual(result.stdout.splitlines()[0], "scenario,point,body,metric,mean,low,high")
        self.assertEqual({len(line.split(",")) for line in result.stdout.splitlines()}, {7})
        self.assertEqual(os.listdir(self.dir), ["s.toml"])

    def test_names_are_escaped(self):
        bad = "a\\u001b[31mred\\nb\\u009b1m"
        self.write(SCENARIO.replace("a small permutation", bad).replace("2 % loss", bad).replace('unit = "%"', f'unit = "{bad}"'))
        result = self.weft("--scenario", "s.toml", "--seed", "1", "--json", "o.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]", result.stdout))
        self.assertEqual(result.stdout.count("a\\x1b[31mred\\x0ab\\u009b1m"), 3)
        self.write(SCENARIO.replace('"small"', f'"{bad}"'))
        os.remove(os.path.join(self.dir, "o.json"))
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]", self.weft("--scenario", "s.toml").stderr))
        # So are those of groups in a table of cells, and of files in what failed.
        self.write(SCENARIO.replace("limit_us = 100_000", "limit_us = 25").replace(
            '"permutation"\nbytes = 200_000', '"flows"\n[[traffic.flow]]\nsrc = 0\ndst = 1\nbytes = 2_000_000\ngroup = "a,\\"b"')
            .replace("retained_pct", "unfinished"))
        os.rename(os.path.join(self.dir, "s.toml"), os.path.join(self.dir, "s\x1b.toml"))
        result = self.weft("--scenario", "s\x1b.toml", "--seed", "1")
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("\x1b", result.stdout)

    def test_an_interrupt_keeps_what_is_finished(self):
        # The first point takes no time, the second for ever.
        self.write(SCENARIO.replace("bytes = 200_000", "bytes = 1000").replace("loss = [0, 0.02]", "bytes = [1000, 200_000_000_000]")
                   .replace("\nloss = 0.02", "\nbytes = 1000").replace("limit_us = 100_000", "limit_us = 1e9"))
        with subprocess.Popen([WEFT, "eval", "--scenario", "s.toml", "--json", "o.json", "--threads", "1", "--seed", "1"], cwd=self.dir, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            time.sleep(2)
            self.assertIsNone(run.poll(), "ended too early")
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=LIMIT_S)
        self.assertEqual((run.returncode, err), (-signal.SIGINT, ""))
        self.assertIn("FAILED: interrupted: 2 of 4 runs ended", out)
        with open(os.path.join(self.dir, "o.json"), encoding="utf-8") as handle:
            data = json.load(handle)
        self.assertIn("interrupted", data["reason"])
        self.assertEqual([p["at"] for p in data["scenarios"][0]["points"]], [{"bytes": 1000}])
        self.assertEqual(list(data["scenarios"][0]["points"][0]["bodies"]), ["weft", "rocev2"])

    def test_a_signal_leaves_no_file(self):
        self.write(SCENARIO.replace("bytes = 200_000", "bytes = 2_000_000_000"))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with subprocess.Popen([WEFT, "eval", "--scenario", "s.toml", "--json", "o.json", "--csv", "o.csv", "--plots", "new/p"],
                                  cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
                time.sleep(1)
                self.assertIsNone(run.poll(), "ended too early")
                run.send_signal(number)
                out, err = run.communicate(timeout=LIMIT_S)
            self.assertEqual((run.returncode, out, err), (-number, b"", b""))
            self.assertEqual(os.listdir(self.dir), ["s.toml"])

    def test_standard_output_that_takes_nothing(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            run = subprocess.run([WEFT, "eval", "--scenario", "s.toml", "--seed", "1"], cwd=self.dir, text=True, stdout=full,
                                 stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stderr, "weft: standard output: cannot be written: No space left on device\n")

    def test_every_figure_that_is_told_may_be_a_goal(self):
        self.weft("--scenario", "s.toml", "--json", "o.json")
        with open(os.path.join(self.dir, "o.json"), encoding="utf-8") as handle:
            bodies = json.load(handle)["scenarios"][0]["points"][1]["bodies"]
        names = sorted({name for body in bodies.values() for name in body["metrics"]})
        self.assertGreater(len(names), 25)
        self.write(SCENARIO + "".join(f'[[goal]]\nrow = "{n}"\nmetric = "{n}"\nat_least = 0\nloss = 0.02\n' for n in names))
        result = self.weft("--scenario", "s.toml")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_end_to_end(self):
        args = ["--scenario", "s.toml", "--json", "o.json", "--csv", "o.csv"]
        result = self.weft(*args, "--threads", "1")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "")
        self.assertEqual(result.stdout.splitlines()[-1], "ok")
        self.assertRegex(result.stdout, r"small: 2 % loss .*>=10\.00 % +yes")
        with open(os.path.join(self.dir, "o.json"), encoding="utf-8") as handle:
            data = json.load(handle)
        row = data["rows"][0]
        self.assertEqual({"name", "unit", "bound", "rocev2", "uet_htsim", "value", "goal", "met"} - set(row), set())
        self.assertIs(row["met"], True)
        self.assertGreater(row["value"], row["rocev2"])
        points = data["scenarios"][0]["points"]
        self.assertEqual([p["at"] for p in points], [{"loss": 0}, {"loss": 0.02}])
        for point in points:
            for body in point["bodies"].values():
                self.assertEqual(body["metrics"]["unfinished"]["mean"], 0)
                self.assertEqual(len(body["completion_us"]), 8)
        # The same seed gives the same bits, however many runs go at once.
        with open(os.path.join(self.dir, "o.csv"), encoding="utf-8") as handle:
            first = handle.read()
        again = self.weft(*args, "--threads", "2")
        self.assertEqual(re.sub(r"--threads \d", "", again.stdout), re.sub(r"--threads \d", "", result.stdout))
        with open(os.path.join(self.dir, "o.csv"), encoding="utf-8") as handle:
            self.assertEqual(handle.read(), first)

    def test_plots(self):
        result = self.weft("--scenario", "s.toml", "--seed", "1", "--plots", "p")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("small-loss.svg", os.listdir(os.path.join(self.dir, "p")))
        self.assertIn("small-loss.png", os.listdir(os.path.join(self.dir, "p")))
        self.assertEqual(result.stderr, "")

    def test_a_scenario_that_draws_nothing_says_so(self):
        self.write(SCENARIO.replace("window_us = 20\n", "").replace("[sweep]\nloss = [0, 0.02]\n", "").replace("\nloss = 0.02", ""))
        result = self.weft("--scenario", "s.toml", "--seed", "1", "--plots", "p")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stderr, r"\Aweft eval: --plots: small: nothing to draw: [^\n]+\n\Z")
        self.assertEqual(os.listdir(os.path.join(self.dir, "p")), ["eval.json"])

    def test_plots_without_what_draws_them(self):
        self.refused(["--scenario", "s.toml", "--plots", "p"], "--plots = p: ", "has no matplotlib", "`make eval`",
                     env=dict(os.environ, PYTHONHOME="/nonexistent"))
        # The same check with a search path that has no matplotlib.
        script = os.path.join(ROOT, "sw/tools/eval_plots.py")
        for isolated, status in (([], 0), (["-S"], 1)):
            run = subprocess.run([sys.executable, *isolated, script, "--check"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, check=False, timeout=LIMIT_S)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (status, b"", b""))

    def test_plots_that_do_not_fit_leave_none(self):
        small = os.path.join(self.dir, "small")
        os.mkdir(small)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, check=False)
        if mounted.returncode != 0:
            # Only root may mount.
            self.skipTest(f"no file system of 64 KB to fill: mount says {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        result = self.weft("--scenario", "s.toml", "--seed", "1", "--plots", "small/new/p")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stderr, "weft eval: --plots = small/new/p: cannot be written: No space left on device\n")
        self.assertEqual(os.listdir(small), [])

    def test_a_signal_while_plots_are_drawn_leaves_all_or_none(self):
        args = [WEFT, "eval", "--scenario", "s.toml", "--seed", "1", "--loss", "0,0.02", "--plots", "p"]
        self.assertEqual(subprocess.run(args, cwd=self.dir, stdout=subprocess.DEVNULL, timeout=LIMIT_S, check=False).returncode, 0)
        folder = os.path.join(self.dir, "p")
        complete = sorted(os.listdir(folder))
        self.assertIn("eval.json", complete)
        shutil.rmtree(folder)
        drawing = "/proc/{0}/task/{0}/children"
        # The program alone is told, or all of it as by Ctrl-C; at once, and at some time of the drawing.
        for number, group, delay in ((signal.SIGTERM, False, 0), (signal.SIGINT, False, 0), (signal.SIGKILL, False, 0.3),
                                     (signal.SIGINT, True, 0), (signal.SIGTERM, True, 0.6), (signal.SIGTERM, False, 0.9),
                                     (signal.SIGINT, True, 1.2)):
            with self.subTest(number=number, group=group, delay=delay), \
                 subprocess.Popen(args, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  start_new_session=True) as run:
                while run.poll() is None:
                    try:
                        with open(drawing.format(run.pid), encoding="utf-8") as handle:
                            if handle.read().strip():
                                break
                    except OSError:
                        break
                self.assertIsNone(run.poll(), "ended too early")
                time.sleep(delay)
                (os.killpg if group else os.kill)(run.pid, number)
                _, err = run.communicate(timeout=LIMIT_S)  # ends when the drawing has ended too
                if delay == 0:
                    self.assertEqual(run.returncode, -number)
                self.assertEqual(err, b"")
                self.assertIn(sorted(os.listdir(self.dir)), (["s.toml"], ["p", "s.toml"]))
                if os.path.exists(folder):
                    self.assertEqual(sorted(os.listdir(folder)), complete)
                    shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
