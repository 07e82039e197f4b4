# SPDX-License-Identifier: Apache-2.0
"""`weft eval`: what it says to wrong input, and one small run end to end.

Wrong input: one line on stderr that names file, key, value and what was expected; exit status 2; nothing on stdout;
no file that was not there before.
"""
import json
import os
import re
import subprocess
import tempfile
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


class EvalCli(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft_eval")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.write(SCENARIO)

    def write(self, text):
        with open(os.path.join(self.dir, "s.toml"), "w", encoding="utf-8") as handle:
            handle.write(text)

    def weft(self, *args):
        return subprocess.run([WEFT, "eval", *args], cwd=self.dir, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)

    def refused(self, args, *words):
        result = self.weft(*args)
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
        self.changed("limit_us = 100_000\n", "", "eval.limit_us", "missing")
        self.changed("[packet]\npayload = 4086\n", "[packet]\n", "packet.payload", "missing")
        self.changed('pattern = "permutation"\n', "", "traffic.pattern", "missing")
        self.changed("bytes = 200_000\n", "", "traffic.bytes", "missing")
        self.changed("paths = 16", "paths = 16\nwindow = 3", "weft.window = 3", "unknown key")
        self.changed("planes = 2", "planes = 2\nsize = 3", "cluster.size = 3", "unknown key")
        self.changed('"permutation"', '"perm"', "traffic.pattern", "'perm'", "permutation")
        self.changed("loss = [0, 0.02]", "loss = [0, 1]", "sweep.loss[1] = 1", "below 1")
        self.changed("loss = [0, 0.02]", "loss = [0, -0.1]", "sweep.loss[1] = -0.1")
        self.changed("loss = [0, 0.02]", "loss = 0", "sweep.loss = 0")
        self.changed("[sweep]\nloss = [0, 0.02]", "[faults]\nloss = 1", "loss")
        self.changed("nodes = 8", "nodes = 1", "cluster.nodes = 1", "at least 2")
        self.changed("hosts_per_leaf = 4", 'topology = "ring"', "fabric.topology", "'ring'")
        self.changed("at_least = 10\n", "", "goal[0].at_least")
        self.changed('bodies = ["weft", "rocev2"]', 'bodies = ["tcp"]', "eval.bodies", "rocev2")
        self.changed("paths = 16", "paths = 200", "weft.paths = 200", "at most")
        self.changed('"permutation"\nbytes = 200_000', '"flows"\n[[traffic.flow]]\nsrc = 0\ndst = 8\nbytes = 1',
                     "traffic.flow[0].dst = 8", "below cluster.nodes = 8")

    def test_more_memory_than_there_is(self):
        self.write(SCENARIO.replace("nodes = 8", "nodes = 4096").replace('"permutation"', '"all_to_all"'))
        self.refused(["--scenario", "s.toml"], "s.toml: cluster.nodes = 4096", "MiB of this machine")

    def test_bad_flags(self):
        ok = ["--scenario", "s.toml"]
        self.refused([])
        self.refused(["--scenario", "absent.toml"], "absent.toml", "cannot be read")
        self.refused([*ok, "--loss", "1"], "--loss = 1", "below 1")
        self.refused([*ok, "--loss", "0,x"], "--loss = 0,x")
        self.refused([*ok, "--seed", "-1"], "--seed = -1")
        self.refused([*ok, "--planes", "0"], "--planes = 0")
        self.refused([*ok, "--planes", "1.5"], "--planes = 1.5")
        self.refused([*ok, "--paths", "999"], "--paths = 999")
        self.refused([*ok, "--body", "tcp"], "--body = tcp", "rocev2")
        self.refused([*ok, "--threads", "0"], "--threads = 0")
        self.refused([*ok, "--json", "none/o.json"], "--json = none/o.json")
        self.refused([*ok, "--csv", "none/o.csv"], "--csv = none/o.csv")

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


if __name__ == "__main__":
    unittest.main()
