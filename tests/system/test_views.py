# SPDX-License-Identifier: Apache-2.0
"""Saved views against real waves: a signal that is not in the file is a line that GTKWave leaves empty.

(test_tools.py looks at the names of all views in the sources, without a wave.)
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import pywellen
import wave as views

NEEDS = ["weft_fst", "weft", "test_common_waves"]

ROOT = views.ROOT
# Saved view: where its bench has the block, and what the block is called in a node.
BLOCKS = {"me": ("dut.weft_me_bench.u_me", "u_node.u_me"), "nmc": ("dut.weft_nmc", "u_nmc"),
          "rx": ("dut.rx_flat.u_dut", "u_port.u_rx"), "tx": ("dut.tx_flat.u_dut", "u_port.u_tx")}
SCENARIO = """\
workload = "w.toml"
[cluster]
nodes = 2
[fabric]
link_latency_ns = 300
"""
WORKLOAD = """\
name = "one barrier"
ranks = 2
[[op]]
kind = "barrier"
"""


def named(view):
    """Signals of a saved view: dut.module.signal, without the range of bits."""
    with open(os.path.join(ROOT, "tests/waves", view + ".gtkw"), encoding="utf-8") as handle:
        return [re.sub(r"\[[0-9:]+\]$", "", name) for name in re.findall(r"^(dut\.\S+)$", handle.read(), re.M)]


def recorded(path):
    """Signals of a wave file, named as in a view; the fields of a struct make the struct."""
    scope = views.scopes(path)[0]
    names = set()
    for variable in pywellen.Waveform(path).all_vars():
        name = re.sub(r"\[[0-9:]+\]$", "", variable.full_name)
        names.add(re.sub(rf"^{scope}\.", "dut.", name))
    return names


class Views(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft_views")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def check(self, view, there):
        missing = [name for name in named(view) if name not in there]
        self.assertGreater(len(named(view)), 3, view)
        self.assertEqual(missing, [], view)

    def test_the_view_of_a_node_fits_what_the_command_writes(self):
        for name, text in (("s.toml", SCENARIO), ("w.toml", WORKLOAD)):
            with open(os.path.join(self.dir, name), "w", encoding="utf-8") as handle:
                handle.write(text)
        result = subprocess.run([os.path.join(views.BUILD, "weft"), "sim", "--config", "s.toml", "--threads", "1",
                                 "--waves", "x.fst:1:2:3"], cwd=self.dir, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        path = os.path.join(self.dir, "x.fst")
        there = recorded(path)
        self.check("node", there)
        # The views of blocks, whose benches take longer to build than all of this, against the same block in the node.
        for view, (bench, block) in BLOCKS.items():
            inside = f".{block}."
            at = next(name for name in sorted(there) if inside in name)
            prefix = at[:at.index(inside) + len(inside)]
            self.check(view, {f"{bench}.{name[len(prefix):]}" for name in there if name.startswith(prefix)})

        opened = subprocess.run([sys.executable, "sw/tools/wave.py", path], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False,
                                env={name: value for name, value in os.environ.items() if name != "DISPLAY"})
        self.assertEqual(opened.returncode, 0, opened.stdout)
        self.assertIn(f"open them with: gtkwave {path}", opened.stdout)
        with open(path[:-len(".fst")] + ".gtkw", encoding="utf-8") as handle:
            self.assertIn("\nnode1.weft_nic100.clk_i\n", handle.read())  # the view, with this node's name

    def test_the_views_of_fifo_and_skid_fit_their_waves(self):
        program = os.path.join(views.BUILD, "tests/waves/common")
        for view in ("fifo", "skid"):
            result = subprocess.run([program, f"{view}: *", "--abort"], cwd=self.dir, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, check=False,
                                    env=dict(os.environ, WAVES="1", WEFT_WAVES_DIR=os.path.join(self.dir, view)))
            files = sorted(glob.glob(os.path.join(self.dir, view, "*.fst")))
            self.assertTrue(files, result.stdout)
            self.check(view, set().union(*map(recorded, files)))

    def opened(self, test):
        """(the wave of this test of common, signals and flags of the view that opens on it)."""
        folder = os.path.join(self.dir, "opened")
        result = subprocess.run([os.path.join(views.BUILD, "tests/waves/common"), test, "--abort"], cwd=self.dir, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                env=dict(os.environ, WAVES="1", WEFT_WAVES_DIR=folder))
        waves = sorted(glob.glob(os.path.join(folder, "*.fst")), key=os.path.getmtime)
        self.assertTrue(waves, result.stdout)
        return waves

    def shown(self, view):
        """(flags, name) of each signal of a view."""
        with open(view, encoding="utf-8") as handle:
            lines = handle.read().splitlines()
        flag, out = "", []
        for line in lines:
            if line.startswith("@"):
                flag = line[1:]
            elif re.match(r"^\w+\.", line):
                out.append((flag, line))
        return out

    def test_a_view_has_the_signals_of_the_very_file_that_opens(self):
        # The saved view was made of a FIFO of another depth: its counters have other bits.
        fifo = named("fifo")
        for wave in self.opened("fifo: data*"):
            scope, module = views.scopes(wave)
            if module != "weft_fifo":
                continue
            exact = {views.label(variable) for variable in pywellen.Waveform(wave).all_vars()}
            signals = [name for _, name in self.shown(views.view_for(os.path.join(ROOT, "tests/waves/fifo.gtkw"), wave))]
            self.assertEqual([name for name in signals if name not in exact], [])
            self.assertEqual([re.sub(r"\[[0-9:]+\]$", "", name) for name in signals],
                             [scope + name[len("dut"):] for name in fifo])

    def test_enums_are_shown_by_their_names_and_what_is_not_there_is_told(self):
        class Variable:
            def __init__(self, name, width, enum):
                self.full_name, self.bitwidth, self.enum_type = name, width, enum
        self.assertEqual(views.flags(Variable("a.b", 3, ("state_e", [])) ), "@100000022")
        self.assertEqual(views.flags(Variable("a.b", 3, None)), "@22")
        self.assertEqual(views.flags(Variable("a.b", 1, None)), "@28")
        wave = self.opened("fifo: data*")[0]
        lines, missing = views.on_this_file(["@22", "dut.weft_fifo.gone_q[2:0]"], wave)
        self.assertEqual((lines, missing), (["@22"], [f"{views.scopes(wave)[0]}.weft_fifo.gone_q"]))

    def test_a_name_that_is_not_there_is_noticed(self):
        with self.assertRaises(AssertionError):
            self.check("fifo", set(named("fifo")[1:]))


if __name__ == "__main__":
    unittest.main()
