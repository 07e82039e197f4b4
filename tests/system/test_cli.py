# SPDX-License-Identifier: Apache-2.0
"""The real `weft` program: what it says to wrong input, and what it writes when all is well.

Wrong input: one line on stderr that names file, key, value and what was expected; exit status 2; nothing on
stdout; no file that was not there before.
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

NEEDS = ["weft"]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
WEFT = os.path.join(BUILD, "weft")
LIMIT_S = 600  # of one call; only a hang comes near it

SCENARIO = """\
workload = "w.toml"
[cluster]
nodes = 2
planes = 2
watchdog_us = 100
[fabric]
hosts_per_leaf = 2
link_latency_ns = 300
[transport]
mtu = 256
rtt_init_us = 5
"""
# About 100 packets each way: enough for loss to strike, little enough for a second or two.
WORKLOAD = """\
name = "small"
ranks = 2
[[op]]
kind = "all_reduce"
type = "float32"
count = 6000
[[op]]
kind = "all_to_allv"
type = "int32"
send_counts = [[10, 20], [0, 401]]
"""


def setUpModule():
    # A shell ignores it for what it runs in the background, and so would all that these tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft_cli")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.write("s.toml", SCENARIO)
        self.write("w.toml", WORKLOAD)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
        return path

    def files(self):
        return sorted(os.path.relpath(os.path.join(folder, name), self.dir)
                      for folder, folders, files in os.walk(self.dir) for name in folders + files)

    def weft(self, *args, program=(WEFT,)):
        return subprocess.run([*program, *args], cwd=self.dir, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)

    def refused(self, args, *words, stdout=False, program=(WEFT,)):
        """`stdout`: the table may have begun, for what only shows while the simulation runs."""
        before = self.files()
        result = self.weft(*args, program=program)
        with self.subTest(args=args):
            self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
            self.assertRegex(result.stderr, r"\A[^\n]+\n\Z", "not one line")
            for word in words:
                self.assertIn(word, result.stderr)
            if not stdout:
                self.assertEqual(result.stdout, "")
            self.assertEqual(self.files(), before, "something was left behind")

    def sim(self, *args):
        result = self.weft("sim", "--config", "s.toml", *args)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def refused_config(self, text, *words, base=SCENARIO):
        self.write("bad.toml", base + text)
        self.refused(["sim", "--config", "bad.toml"], "bad.toml", *words)

    def refused_workload(self, text, *words):
        self.write("bad.toml", text)
        self.refused(["sim", "--config", "s.toml", "--workload", "bad.toml"], "bad.toml", *words)


class CommandLine(Case):
    def test_unknown_commands_flags_and_words(self):
        self.refused(["frobnicate"], "frobnicate", "expected one of: sim eval comply nmc trace")
        self.refused(["sim", "--bogus"], "--bogus")
        self.refused(["sim", "--config", "s.toml", "stray"], "stray")
        self.refused(["sim", "--loss"], "--loss")
        self.refused(["trace"], "subcommand")
        self.refused(["trace", "import"], "traces")
        self.refused(["sim", "--inputs", "nice"], "--inputs", "nice", "exact")

    def test_flags_out_of_range(self):
        for flag, value, expected in [("--nodes", "0", "an integer from 1"), ("--nodes", "1e3", "an integer"),
                                      ("--nodes", "-1", "an integer"), ("--nodes", "99999999999999999999", "an integer"),
                                      ("--planes", "99", "an integer from 1"),
                                      ("--planes", "0", "an integer from 1"), ("--threads", "x", "an integer from 0"),
                                      ("--threads", "9999", "an integer from 0"), ("--loss", "1.5", "a number from 0 to 1"),
                                      ("--loss", "-0.1", "a number"), ("--loss", "nan", "a number"), ("--loss", "1%", "a number"),
                                      ("--seed", "-3", "an integer"), ("--seed", "3.5", "an integer")]:
            self.refused(["sim", "--config", "s.toml", f"{flag}={value}"], f"{flag} = {value}: expected {expected}")
        for flag in ("--nodes", "--loss", "--json", "--pcap", "--waves"):
            self.refused(["sim", "--config", "s.toml", f"{flag}="], flag, "missing")
        for flag in ("--json", "--pcap", "--timeline", "--waves", "--workload"):
            self.refused(["sim", "--config", "s.toml", flag, ""], f"{flag} = '': expected a path")
        self.refused(["sim", "--config", "s.toml", "--nodes", "2", "--nodes", "3"], "--nodes: given 2 times, expected once")

    def test_more_nodes_than_the_memory_holds(self):
        self.refused(["sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"', WEFT, "sim", "--config", "s.toml", "--nodes", "4096"],
                     "cluster.nodes = 4096: expected at most", program=())

    def test_more_planes_than_ports(self):
        self.refused(["sim", "--config", "s.toml", "--planes", "3"], "s.toml", "cluster.planes = 3", "at most the 2 ports")

    def test_bad_waves_arguments(self):
        for value in ["x.fst:2", "x.fst:a", "x.fst:0:5", "x.fst:0:9:5", "x.fst:0:-1:5", "x.fst:0:1:2:3", ":0"]:
            self.refused(["sim", "--config", "s.toml", f"--waves={value}"], f"--waves = {value}", "expected")

    def test_reference_nodes_have_no_waves(self):
        self.refused(["sim", "--config", "s.toml", "--body", "ref", "--waves", "x.fst"], "--waves = x.fst: node 0 is a reference node")
        self.refused(["sim", "--config", "s.toml", "--body", "mixed", "--waves", "x.fst:1"], "--waves = x.fst:1: node 1 is a reference node")

    def test_numbers_below_zero(self):
        self.refused(["nmc", "--op", "sum", "--type", "int8", "--dump", "-1", "s.toml"], "--dump = -1: expected at most 100000")
        self.refused(["comply", "--serve", "-1"], "--serve = -1: expected at most 65535")

    def test_help_is_no_error(self):
        for args in [["--help"], ["sim", "--help"], ["trace", "import", "--help"]]:
            result = self.weft(*args)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("--", result.stdout)


class Files(Case):
    def test_absent_unreadable_or_broken_files(self):
        self.refused(["sim", "--config", "none.toml"], "none.toml", "cannot be read")
        self.refused(["sim", "--config", "."], ".: cannot be read")
        for read in (["sim", "--config", "@"], ["sim", "--config", "s.toml", "--workload", "@"], ["comply", "--list", "--script", "@"],
                     ["trace", "import", "@", "-o", "x"]):
            for path, why in (("none/x", "No such file or directory"), ("s.toml/x", "Not a directory"), (".", "it is a folder"),
                              ("/dev/zero", "more than 16 MiB")):
                self.refused([path if word == "@" else word for word in read], f"{path}: cannot be read: {why}")
        self.refused(["sim", "--config", "s.toml", "--workload", "none.toml"], "none.toml", "cannot be read")
        self.refused_config("[broken", "not TOML")
        self.refused_config("", "workload", base=SCENARIO.replace('workload = "w.toml"', ""))

    def test_scenario_keys(self):
        self.refused_config("[cluster2]\n", "cluster2", "unknown key")
        self.refused_config("colour = 3\n", "transport.colour = 3", "unknown key")
        self.refused_config("[faults]\nlosss = 0.1\n", "faults.losss = 0.1", "unknown key")
        self.refused_config("[faults]\nloss = 1.5\n", "faults.loss = 1.5", "expected a number from 0 to 1")
        self.refused_config("[faults]\nloss = \"1%\"\n", "faults.loss = '1%'", "expected a number")
        self.refused_config("[memory]\nlatency_min_cycles = -4\n", "memory.latency_min_cycles = -4", "expected an integer")
        self.refused_config("[memory]\nlatency_min_cycles = 900\n", "memory.latency_max_cycles = 80", "expected at least")
        self.refused_config("[[faults.down]]\nplane = 7\n", "faults.down[0].plane = 7", "below planes = 2")
        self.refused_config("[[faults.down]]\nplane = 0\nfrom_us = 9\nto_us = 3\n", "faults.down[0].to_us = 3", "after from_us")
        self.refused_config("[[faults.drop]]\nnode = 5\nport = 0\nn = 0\n", "faults.drop[0].node = 5", "below nodes = 2")
        self.refused_config("[run]\ninputs = \"nice\"\n", "run.inputs = 'nice'", "exact or random")
        self.refused_config("[[faults.drop]]\n", "faults.drop[0].node", "expected")
        self.refused_config("[[memory.error]]\nnode = 0\naddr = 64\nbytes = 64\n", "memory.error[0].addr = 0x40", "expected an address in")
        self.refused_config("[memory]\nsize_mib = 1\n", "memory.size_mib = 1", "what w.toml needs")
        self.refused_config("[memory]\nsize_mib = 65536\n", "memory.size_mib = 65536", "on this machine")
        self.refused_config("", "fabric.rate_gbps = 200", "at most 165", base=SCENARIO.replace("[fabric]", "[fabric]\nrate_gbps = 200"))
        small = SCENARIO.replace("[fabric]", "[fabric]\nqueue_bytes = 2048").replace("mtu = 256", "mtu = 2048")
        self.refused_config("", "fabric.queue_bytes = 2048", "at least 2146, a full frame of transport.mtu = 2048", base=small)
        self.write("empty.toml", "")
        self.refused(["sim", "--config", "s.toml", "--workload", "empty.toml"], "empty.toml: ranks: expected")
        mtu = SCENARIO.replace("mtu = 256", "mtu = 300")
        self.refused_config("", "transport.mtu = 300", "expected 256, 512", base=mtu)
        self.refused_config("", "cluster.nodes = 'two'", "expected an integer", base=SCENARIO.replace("nodes = 2", 'nodes = "two"'))

    def test_workload_keys(self):
        head = 'ranks = 2\n[[op]]\nkind = "all_reduce"\ntype = "float32"\n'
        self.refused_workload(head + "count = 4\ncolour = 3\n", "op[0].colour = 3", "unknown key")
        self.refused_workload(head, "op[0].count", "expected elements")
        self.refused_workload(head + "count = -4\n", "op[0].count = -4", "expected elements")
        self.refused_workload(head + "count = 4.5\n", "op[0].count = 4.5", "expected elements")
        self.refused_workload(head + "count = 99999999999999\n", "op[0].count = 99999999999999", "expected elements")
        self.refused_workload(head + "count = 1099511627776\n", "op[0].count = 1099511627776: expected less than 4 GiB to one peer\n")
        self.refused_workload(head + "count = 1073741823\n", "op[0].count = 1073741823", "MiB a node, expected at most")
        self.refused_workload(head + "count = 4\nrepeat = 0\n", "op[0].repeat = 0", "expected an integer from 1")
        self.refused_workload(head + "count = 4\ngap_us = -1\n", "op[0].gap_us = -1", "expected a number")
        self.refused_workload(head + 'count = 4\nredop = "mean"\n', "op[0].redop = 'mean'",
                              "expected one of sum, prod, min, max, avg, premul_sum, and, or, xor")
        self.refused_workload(head + 'count = 4\nredop = "premul_sum"\n', "op[0].scalar: expected the factor of premul_sum")
        self.refused_workload(head + "count = 4\nscalar = 2\n",
                              'op[0].scalar = 2: the key means nothing without redop = "premul_sum"\n')
        self.refused_workload(head.replace("float32", "int32") + 'count = 4\nredop = "premul_sum"\nscalar = 0.5\n',
                              "op[0].scalar = 0.5", "expected a whole number from -2147483648 to 2147483647 for int32")
        for kind, value, most in (("int8", 300, "-128 to 127"), ("int8", -129, "-128 to 127"), ("uint16", -1, "0 to 65535")):
            self.refused_workload(head.replace("float32", kind) + f'count = 4\nredop = "premul_sum"\nscalar = {value}\n',
                                  f"op[0].scalar = {value}: expected a whole number from {most} for {kind}\n")
        self.refused_workload(head + 'count = 4\nin_place = "yes"\n', "op[0].in_place = 'yes'", "expected true or false")
        self.refused_workload(head.replace("all_reduce", "all_reduces") + "count = 4\n", "op[0].kind = 'all_reduces'", "expected one of")
        self.refused_workload(head.replace("float32", "float24") + "count = 4\n", "op[0].type = 'float24'", "expected one of float64")
        self.refused_workload(head + 'count = 4\nredop = "and"\n', "op[0].type = 'float32'",
                              "expected an integer type for and")
        self.refused_workload('ranks = 2\n[[op]]\nkind = "broadcast"\ntype = "int32"\ncount = 4\nroot = 2\n', "op[0].root = 2", "expected 0 to 1")
        self.refused_workload('ranks = 2\n', "op", "at least one")
        self.refused_workload('ranks = 2\nop = 3\n', "op = 3", "array of tables")
        self.refused_workload('[[op]]\nkind = "barrier"\n', "ranks", "expected an integer from 1 to 16")
        self.refused_workload('ranks = 17\n[[op]]\nkind = "barrier"\n', "ranks = 17", "expected an integer from 1 to 16")

    def test_keys_that_mean_nothing_for_the_kind(self):
        good = {"all_reduce": "count = 4", "all_gather": "count = 4", "all_to_allv": "send_counts = [[1, 2], [3, 4]]", "barrier": ""}
        for kind, key in [("all_to_allv", "count = 4"), ("barrier", "count = 4"), ("barrier", "in_place = false"),
                          ("barrier", 'redop = "sum"'), ("barrier", 'type = "int32"'), ("all_gather", 'redop = "sum"'),
                          ("all_gather", "root = 0"), ("all_reduce", "root = 0"), ("all_gather", 'algo = "direct"'),
                          ("all_reduce", "send_counts = [[1, 2], [3, 4]]"), ("all_to_allv", "in_place = false")]:
            type_line = "" if kind == "barrier" else 'type = "int32"\n'
            self.refused_workload(f'ranks = 2\n[[op]]\nkind = "{kind}"\n{type_line}{good[kind]}\n{key}\n',
                                  f"op[0].{key.split()[0]} = ", f": the key means nothing for {kind}\n")

    def test_counts_that_do_not_match_the_ranks(self):
        head = 'ranks = 2\n[[op]]\nkind = "all_to_allv"\ntype = "int32"\n'
        self.refused_workload(head, "op[0].send_counts: expected one for each of 2 ranks, not 0 rows")
        self.refused_workload(head + "send_counts = [[1, 2]]\n", "op[0].send_counts = ", "expected one for each of 2 ranks, not 1 rows")
        self.refused_workload(head + "send_counts = [[1, 2], [3, 4, 5]]\n", "op[0].send_counts[1]: expected one for each of 2 ranks, not 3 counts")
        self.refused_workload(head + "send_counts = [[1, -2], [3, 4]]\n", "op[0].send_counts[0][1] = -2", "expected elements")
        self.refused_workload(head + "send_counts = 3\n", "op[0].send_counts = 3", "expected elements")

    def test_nine_ranks_on_eight_nodes(self):
        self.write("nine.toml", 'ranks = 9\n[[op]]\nkind = "barrier"\n')
        self.refused(["sim", "--workload", "nine.toml"], "nine.toml: ranks = 9", "at most the 8 nodes")


class Outputs(Case):
    def test_places_that_cannot_be_written(self):
        sim = ["sim", "--config", "s.toml"]
        self.refused([*sim, "--json", "none/x.json"], "--json = none/x.json", "cannot be written")
        self.refused([*sim, "--json", "."], "--json = .", "cannot be written")
        self.refused([*sim, "--timeline", "none/x.json"], "none/x.json", "cannot be written")
        self.refused([*sim, "--pcap", "w.toml/sub"], "w.toml/sub", "cannot be made")
        # The captures, and their folders, of a run that then cannot begin.
        self.refused([*sim, "--pcap", "new/deep", "--timeline", "none/x.json"], "none/x.json", "cannot be written")

    def test_a_file_that_is_read_or_written_already(self):
        sim = ["sim", "--config", "s.toml"]
        for name in ("s.toml", "./w.toml"):
            self.refused([*sim, "--json", name], f"--json = {name}", "expected no file that is read")
        self.refused([*sim, "--json", "o.json", "--timeline", "./o.json"], "--timeline = ./o.json", "expected another file than --json")

    def test_a_pipe_that_nobody_reads(self):
        before = self.files()
        with subprocess.Popen([WEFT, "sim", "--config", "s.toml", "--pcap", "caps", "--timeline", "t.json"], cwd=self.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            run.stdout.close()
            self.assertEqual(run.wait(timeout=LIMIT_S), -signal.SIGPIPE)
        self.assertEqual(self.files(), before)

    def test_standard_output_as_the_place_of_results(self):
        result = self.weft("sim", "--config", "s.toml", "--body", "ref", "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["verdict"], "ok")
        self.assertIn("all_reduce", result.stderr)
        self.assertTrue(result.stderr.endswith("ok\n"), result.stderr)
        result = self.weft("comply", "--body", "ref", "--json", "-", "--script",
                           os.path.join(ROOT, "tests/compliance/write_placed.script"))
        self.assertEqual(json.loads(result.stdout)["passed"], 1)
        self.assertIn("1 passed", result.stderr)
        self.assertEqual(self.files(), ["s.toml", "w.toml"])

    def test_links_are_followed(self):
        os.mkdir(os.path.join(self.dir, "far"))
        for name in ("j.json", "t.json"):
            os.symlink("far/" + name, os.path.join(self.dir, name))  # of what is not there yet
        for _ in range(2):
            result = self.weft("sim", "--config", "s.toml", "--body", "ref", "--json", "j.json", "--timeline", "t.json")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            for name in ("j.json", "t.json"):
                self.assertTrue(os.path.islink(os.path.join(self.dir, name)))
                with open(os.path.join(self.dir, "far", name), encoding="utf-8") as handle:
                    json.load(handle)
        self.assertEqual([name for name in self.files() if name.endswith(".part")], [])

    def test_captures_of_two_runs_do_not_mix(self):
        sim = ["sim", "--config", "s.toml", "--body", "ref", "--pcap", "caps"]
        for nodes in ("2", "4", "4"):
            result = self.weft(*sim, "--nodes", nodes)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.refused([*sim, "--nodes", "2"], "--pcap = caps: node", "of a run with more nodes")
        self.assertEqual(len(os.listdir(os.path.join(self.dir, "caps"))), 8)

    def test_a_reader_that_has_enough(self):
        for trap in ("", 'trap "" PIPE; '):
            result = subprocess.run(["sh", "-c", trap + f'"{WEFT}" comply --list | head -n 1; "{WEFT}" sim --config s.toml --body ref '
                                     '--counters --pcap caps | true; exit 0'], cwd=self.dir, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
            self.assertEqual(result.stderr, "", trap)

    def test_a_full_disk(self):
        self.refused(["sim", "--config", "s.toml", "--timeline", "/dev/full"], "--timeline: /dev/full", "No space left", stdout=True)
        self.refused(["sim", "--config", "s.toml", "--json", "/dev/full"], "--json = /dev/full", "No space left", stdout=True)
        os.mkdir(os.path.join(self.dir, "caps"))
        os.symlink("/dev/full", os.path.join(self.dir, "caps/node1_port0.pcap"))
        result = self.weft("sim", "--config", "s.toml", "--pcap", "caps", "--timeline", "t.json", "--json", "j.json")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertRegex(result.stderr, r"\A[^\n]*--pcap: caps/node1_port0.pcap[^\n]*No space left[^\n]*\n\Z")
        left = [name for name in self.files() if name not in ("caps", "s.toml", "w.toml", "caps/node1_port0.pcap")]
        self.assertEqual(left, [])

    def test_a_small_file_system(self):
        small = os.path.join(self.dir, "small")
        os.mkdir(small)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, check=False)
        if mounted.returncode != 0:
            # Only root may mount.
            self.skipTest(f"no file system of 64 KB to fill: mount says {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        self.refused(["sim", "--config", "s.toml", "--pcap", "small/caps"], "small/caps/node", "No space left", stdout=True)


class Trace(Case):
    def imported(self, *files):
        return ["trace", "import", *files, "-o", "out.toml"]

    def test_what_is_no_trace(self):
        good = json.dumps({"nodes": [{"name": "record_param_comms", "id": 4, "input_types": ["Tensor(float)"],
                                      "inputs": [[1, 2, 0, 64, 4, "cpu"], 0, 0, 0, "allreduce", [], []]}]})
        self.write("good.json", good)
        self.write("cut.json", good[:-20])
        self.write("csv.json", "a,b\n1,2\n")
        self.write("list.json", "[1, 2]")
        self.write("none.json", '{"nodes": [{"name": "aten::mm"}]}')
        self.refused(self.imported("absent.json"), "absent.json", "cannot be read")
        self.refused(self.imported("."), ".: cannot be read")
        self.refused(self.imported("good.json", "cut.json"), "cut.json", "truncated")
        self.refused(self.imported("csv.json"), "csv.json", "not a trace")
        self.refused(self.imported("list.json"), "list.json", "nodes: absent")
        self.refused(self.imported("none.json"), "none.json", "no collective")
        self.refused(self.imported(*["good.json"] * 17), "17 files", "1 to 16")
        self.refused(["trace", "import", "good.json", "-o", "none/out.toml"], "none/out.toml", "cannot be written")
        self.refused([*self.imported("good.json"), "--name", 'a"b'], "--name", "expected text without quotes")
        self.refused(self.imported("good.json", "good.json"), "good.json: rank 0, which good.json is already")
        self.refused(self.imported("good.json", "none.json"), "none.json")
        self.write("lines.json", '{"a": 1}\n{"a": 2}\n')
        self.write("profile.json", '{"traceEvents": []}')
        self.refused(self.imported("lines.json"), "lines.json: no JSON: not a trace of PyTorch: not understood from line 2")
        self.refused(self.imported("profile.json"), "profile.json: nodes: absent", "not a profiler's trace")
        self.write("p2p.json", good.replace("allreduce", "send"))
        self.refused(self.imported("p2p.json"), "p2p.json: nothing that a workload holds", "send (1 calls of all ranks)")
        self.write("other.json", good.replace(', 0, "allreduce"', ', 1, "allreduce"'))
        result = self.weft(*self.imported("other.json", "good.json"))  # sorted by the ranks they name
        self.assertEqual(result.returncode, 0, result.stderr)
        self.sim("--workload", "out.toml", "--body", "ref")


class Shipped(Case):
    FOLDER = os.path.join(ROOT, "sw/scenarios")

    def test_case_rtl_21_and_case_rtl_22_the_first_steps_run_as_the_page_says(self):
        # Two cards, a lossy switch, a reduction in the network, on this machine.
        result = self.weft("sim", "--config", os.path.join(self.FOLDER, "first-steps.toml"))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        rows = [line.split() for line in result.stdout.splitlines()[2:-2]]
        self.assertIn("all_reduce", [row[0] for row in rows])
        self.assertTrue(all(row[-1] == "0" for row in rows), result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "ok")

    def test_case_rtl_34_every_scenario_that_is_shipped_is_accepted(self):
        scenarios = []
        for name in sorted(os.listdir(self.FOLDER)):
            if not name.endswith(".toml"):
                continue
            with open(os.path.join(self.FOLDER, name), encoding="utf-8") as handle:
                if re.search("^workload = ", handle.read(), re.MULTILINE):  # the others are workloads
                    scenarios.append(name)
        self.assertGreater(len(scenarios), 3)
        for name in scenarios:  # the place for the results is looked at after everything else
            with self.subTest(name):
                self.refused(["sim", "--config", os.path.join(self.FOLDER, name), "--json", "none/x.json"],
                             "none/x.json")


class Runs(Case):
    FIELDS = ["version", "command", "scenario", "workload", "body", "seed", "nodes", "planes", "loss", "ops", "counters", "sim",
              "verdict", "reason"]
    OP = ["op", "type", "redop", "count", "bytes", "time_ns", "algbw_gbps", "busbw_gbps", "line_pct", "data_packets", "lost",
          "resent", "needless_resent", "wrong"]
    SIM = ["cycles", "wall_s", "kcycles_per_s_per_node"]

    def load(self, name):
        with open(os.path.join(self.dir, name), encoding="utf-8") as handle:
            return json.load(handle)

    def test_the_json_has_exactly_the_promised_fields_and_repeats(self):
        out = self.sim("--loss", "0.05", "--seed", "7", "--json", "a.json")
        self.assertEqual(out.splitlines()[1].split(), ["op", "size", "algbw", "busbw", "time_us", "line%", "pkts", "lost", "resent", "#wrong"])
        self.assertEqual(out.splitlines()[-1], "ok")
        self.sim("--loss", "0.05", "--seed", "7", "--json", "b.json", "--threads", "1")
        a, b = self.load("a.json"), self.load("b.json")
        self.assertEqual(list(a), self.FIELDS)
        self.assertEqual(list(a["sim"]), self.SIM)
        self.assertEqual(len(a["ops"]), 2)
        for row in a["ops"]:
            self.assertEqual(list(row), self.OP)
            self.assertEqual((row["wrong"], row["needless_resent"]), (0, 0))
        self.assertEqual((a["seed"], a["nodes"], a["planes"], a["loss"], a["verdict"]), (7, 2, 2, 0.05, "ok"))
        first = a["ops"][0]
        self.assertEqual((first["op"], first["type"], first["redop"], first["count"], first["bytes"]),
                         ("all_reduce", "float32", "sum", 6000, 24000))
        self.assertAlmostEqual(first["algbw_gbps"], first["bytes"] / first["time_ns"])
        self.assertAlmostEqual(first["busbw_gbps"], first["algbw_gbps"])  # 2 (n - 1) / n = 1 for two ranks
        self.assertAlmostEqual(first["line_pct"], 100 * first["busbw_gbps"] / 25)  # 2 ports of 100 Gb/s
        self.assertGreater(sum(row["lost"] for row in a["ops"]), 0)
        self.assertEqual(sum(row["lost"] for row in a["ops"]), sum(row["resent"] for row in a["ops"]))
        self.assertEqual(a["ops"][1]["bytes"], 4 * 421)  # what the busiest rank receives
        self.assertEqual((a["scenario"], a["workload"], a["body"], a["reason"]), ("s.toml", "w.toml", "rtl", ""))
        self.assertEqual(a["command"], f"{WEFT} sim --config s.toml --loss 0.05 --seed 7 --json a.json")
        self.assertEqual(self.weft("--version").stdout, f"weft {a['version']}\n")
        for run in (a, b):
            del run["command"]
            for key in ("wall_s", "kcycles_per_s_per_node"):
                del run["sim"][key]
        self.assertEqual(a, b)
        self.sim("--loss", "0.05", "--seed", "8", "--json", "c.json")
        self.assertNotEqual(self.load("c.json")["ops"], a["ops"])

    def test_reference_nodes_reduce_every_type_by_every_operation(self):
        floats = ["float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"]
        ints = [sign + width for sign in ("int", "uint") for width in ("8", "16", "32", "64")]
        ops = [(t, r) for t in floats + ints for r in ("sum", "prod", "min", "max", "avg", "premul_sum")]
        ops += [(t, r) for t in ints for r in ("and", "or", "xor")]
        text = 'name = "all"\nranks = 2\n'
        for i, (t, r) in enumerate(ops):
            text += f'[[op]]\nkind = "{("all_reduce", "reduce_scatter")[i % 2]}"\ntype = "{t}"\nredop = "{r}"\ncount = {100 + i}\n'
            text += f"scalar = {3 if t.startswith('u') else -3}\n" if r == "premul_sum" else ""
        self.write("all.toml", text)
        for inputs in ("exact", "random"):
            self.sim("--workload", "all.toml", "--body", "ref", "--inputs", inputs, "--json", "all.json")
            rows = self.load("all.json")["ops"]
            self.assertEqual([(row["type"], row["redop"]) for row in rows], ops)
            self.assertEqual(sum(row["wrong"] for row in rows), 0)
        for t, r, words in (("float32", "xor", "expected an integer type for xor"),
                            ("float16", "and", "expected an integer type for and")):
            self.write("bad.toml", f'ranks = 2\n[[op]]\nkind = "all_reduce"\ntype = "{t}"\nredop = "{r}"\ncount = 4\n')
            self.refused(["sim", "--config", "s.toml", "--workload", "bad.toml", "--body", "ref"], f"op[0].type = '{t}'", words)

    def test_a_failed_check_is_told_with_the_line_that_repeats_it(self):
        result = self.weft("sim", "--config", "s.toml", "--corrupt-result", "1", "--json", "x y.json")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"FAILED: rank \d: element \d+ of the result: byte 0x\w+, expected 0x\w+\n"
                                        rf"rerun: {re.escape(WEFT)} sim --config s.toml --corrupt-result 1 --json 'x y.json' --seed \d+\n\Z")
        failed = self.load("x y.json")
        self.assertEqual(failed["verdict"], "failed")
        self.assertIn(f"FAILED: {failed['reason']}\n", result.stdout)
        self.assertGreater(failed["counters"]["port0.tx.frames"], 0)  # what the hardware says, when it is wanted most

    def test_damage_outside_of_the_results_is_found_too(self):
        result = self.weft("sim", "--config", "s.toml", "--body", "ref", "--corrupt-outside", "1", "--json", "x.json")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"FAILED: rank 0: outside the result: ")
        self.assertEqual([row["wrong"] for row in self.load("x.json")["ops"]], [2])  # a byte of each rank

    def test_a_run_that_takes_too_long_names_the_key_and_tells_nothing_that_was_not_measured(self):
        self.write("s.toml", SCENARIO + "[run]\nlimit_us = 40\n")
        self.write("w.toml", WORKLOAD.replace("count = 6000", "count = 600000"))
        result = self.weft("sim", "--config", "s.toml", "--body", "ref", "--json", "x.json")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"(?m)^all_reduce +2343\.8 KiB( +-){8}$")
        self.assertRegex(result.stdout, r"FAILED: all_reduce: [^\n]*not done within run\.limit_us = 40[^\n]*\nrerun: [^\n]*\n\Z")
        self.assertNotIn("node 0:", result.stdout + result.stderr)
        report = self.load("x.json")
        self.assertIn("run.limit_us = 40", report["reason"])
        self.assertEqual({report["ops"][0][key] for key in ("time_ns", "algbw_gbps", "busbw_gbps", "line_pct", "resent", "wrong")}, {None})
        told = self.weft("sim", "--config", "s.toml", "--body", "ref", "-v")
        self.assertEqual(told.stdout.count("\n  node 0: "), 1, told.stdout)

    def test_needless_resends_are_a_figure_and_no_failure(self):
        self.write("w3.toml", WORKLOAD.replace("count = 6000", "count = 60000"))
        for faults in ("[faults]\nreorder = 0.05\n", "[faults]\nduplicate = 0.05\nreorder = 0.02\n"):
            self.write("s.toml", SCENARIO + faults)
            out = self.sim("--workload", "w3.toml", "--body", "ref", "--json", "x.json")
            report = self.load("x.json")
            needless = sum(row["needless_resent"] for row in report["ops"])
            self.assertGreater(needless, 0)
            self.assertIn(f"\n{needless} packets were resent although they had arrived\n", out)
            self.assertEqual((report["verdict"], report["reason"]), ("ok", ""))

    def test_names_of_any_bytes_do_nothing_to_the_terminal(self):
        self.write("w.toml", WORKLOAD.replace('name = "small"', r'name = "\u001b]0;gone\u0007 \u009b2J"'))
        out = self.sim("--body", "ref")
        self.assertIn(r"\x1b]0;gone\x07 \xc2\x9b2J: 2 ranks", out)
        self.assertNotIn("\x1b", out)
        self.refused(["sim", "--config", "no\x1b[31m.toml"], r"no\x1b[31m.toml: cannot be read: No such file")
        self.refused(["trace", "import", "no\x1b[31m.json", "-o", "x"], r"no\x1b[31m.json: cannot be read: No such file")
        self.refused(["\x1b[31m"], r"\x1b[31m: unknown command")
        self.refused(["sim", "--nodes", "\x1b[31m"], r"--nodes = \x1b[31m")
        self.write("w.toml", WORKLOAD.replace('"all_reduce"', r'"\u001b[31m"'))
        self.refused(["sim", "--config", "s.toml"], r'op[0].kind = "\u001B[31m"')
        os.rename(os.path.join(self.dir, "s.toml"), os.path.join(self.dir, "s\n.toml"))
        self.write("w.toml", WORKLOAD)
        result = self.weft("sim", "--config", "s\n.toml", "--body", "ref", "--corrupt-result", "1")
        self.assertRegex(result.stdout, r"rerun: [^\n]* --config \$'s\\x0a\.toml' ")

    def test_waits_of_reference_nodes_take_time(self):
        self.sim("--body", "ref", "--timeline", "t.json")
        waits = [event["dur"] for event in self.load("t.json")["traceEvents"] if event["name"] == "WAIT"]
        self.assertGreater(len(waits), 3)
        self.assertGreater(max(waits), 0.5)  # us: a peer's data takes a round of the fabric

    def test_a_network_that_loses_everything_is_a_run_that_fails(self):
        result = self.weft("sim", "--config", "s.toml", "--loss", "1")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("FAILED: ", result.stdout)

    def test_a_signal_stops_a_run_and_leaves_no_file(self):
        self.write("long.toml", WORKLOAD.replace("count = 6000\n", "count = 6000\nrepeat = 100000\n"))
        before = self.files()
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([WEFT, "sim", "--config", "s.toml", "--workload", "long.toml", "--pcap", "new/caps", "--timeline",
                                   "t.json", "--json", "j.json"], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as run:
                while not os.path.exists(os.path.join(self.dir, "t.json.part")):
                    self.assertIsNone(run.poll(), "ended too early")
                    time.sleep(0.05)
                time.sleep(1)
                run.send_signal(number)
                _, err = run.communicate(timeout=LIMIT_S)
            self.assertEqual(run.returncode, -number)
            self.assertRegex(err, r"\Aweft sim: stopped by a signal[^\n]*\n\Z")
            self.assertEqual(self.files(), before)

    def test_a_plane_that_dies_is_told_once(self):
        # Nothing else has happened by then: the first operation meets the dead plane.
        self.write("s.toml", SCENARIO + "retry_limit = 3\n[[faults.down]]\nplane = 1\n")
        result = self.weft("sim", "--config", "s.toml", "--json", "x.json")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        said = result.stdout + result.stderr
        self.assertEqual((said.count("FAILED: "), said.count("RETRY_LIMIT"), said.count("rerun: ")), (1, 1, 1), said)
        self.assertRegex(result.stdout, r"FAILED: rank \d: all_reduce: entry \d+ \(WRITE of \d+ bytes to rank \d\): "
                                        r"RETRY_LIMIT \(3 probes unanswered\)\nrerun: ")
        report = self.load("x.json")
        self.assertEqual(report["verdict"], "failed")
        self.assertEqual(json.dumps(report).count('"failed"'), 1)

    def test_captures_and_timeline_show_packets_losses_and_resends(self):
        self.sim("--loss", "0.05", "--pcap", "caps", "--timeline", "t.json", "--json", "j.json")
        rows = self.load("j.json")["ops"]
        self.assertGreater(sum(row["resent"] for row in rows), 0, "the seed loses nothing: choose another")

        names = {event["name"] for event in self.load("t.json")["traceEvents"]}
        for name in ("WRITE", "REDUCE", "WAIT", "data", "ack", "resend"):
            self.assertIn(name, names)
        self.assertTrue(any(name.startswith("lost data: ") for name in names), names)

        files = sorted(os.listdir(os.path.join(self.dir, "caps")))
        self.assertEqual(files, [f"node{k}_port{p}.pcap" for k in range(2) for p in range(2)])
        self.assertTrue(shutil.which("tshark"), "tshark is missing; sw/tools/setup/setup.sh test installs it")
        frames = data = 0
        for name in files:
            command = ["tshark", "-X", f"lua_script:{BUILD}/gen/weft.lua", "-r", os.path.join("caps", name), "-T", "fields",
                       "-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "weft.malformed", "-e", "weft.icrc.status",
                       "-e", "weft.wth.path", "-e", "_ws.col.Info"]
            result = subprocess.run(command, cwd=self.dir, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
            for line in result.stdout.splitlines():
                *bad, icrc, path, info = line.split("\t")
                frames += 1
                self.assertEqual((bad, icrc), (["", "", ""], "Good"), line)
                self.assertIn(path, [str(k) for k in range(16)], line)
                self.assertRegex(info, r"^(WRITE|WRITE_SIGNAL|ACK|PROBE) conn \d+ psn \d+ path \d+", line)
                data += "WRITE" in info
        self.assertGreater(frames, 2 * sum(row["data_packets"] for row in rows))  # at both ends, and acks
        self.assertGreater(data, 0)

        # Of frames that a capture cuts, the headers that are there are shown.
        for kept, shown in ((128, r"(WRITE|WRITE_SIGNAL|ACK|PROBE) conn \d+ psn \d+ path \d+"), (64, r"(WRITE|WRITE_SIGNAL|ACK|PROBE) conn \d+ psn \d+")):
            self.cut_capture(os.path.join("caps", files[0]), "cut.pcap", kept)
            result = subprocess.run(["tshark", "-X", f"lua_script:{BUILD}/gen/weft.lua", "-r", "cut.pcap", "-T", "fields", "-e",
                                     "weft.malformed", "-e", "weft.icrc.status", "-e", "_ws.col.Info"], cwd=self.dir, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
            cut = 0
            for line in result.stdout.splitlines():
                malformed, icrc, info = line.split("\t")
                self.assertEqual(malformed, "", line)
                self.assertRegex(info, "^" + shown, line)
                self.assertIn(icrc, ("Good", "Unverified"), line)
                self.assertEqual(icrc == "Unverified", info.endswith("[cut by the capture]"), line)
                cut += icrc == "Unverified"
            self.assertGreater(cut, 0)

    def cut_capture(self, source, target, kept):
        """As a capture with this snap length would have it."""
        with open(os.path.join(self.dir, source), "rb") as handle:
            data = handle.read()
        out, at = bytearray(data[:24]), 24
        while at < len(data):
            seconds, fraction, size, length = struct.unpack_from("<IIII", data, at)
            out += struct.pack("<IIII", seconds, fraction, min(size, kept), length) + data[at + 16:at + 16 + min(size, kept)]
            at += 16 + size
        with open(os.path.join(self.dir, target), "wb") as handle:
            handle.write(out)


if __name__ == "__main__":
    unittest.main()
