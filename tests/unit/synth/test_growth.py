# SPDX-License-Identifier: Apache-2.0
"""The meter's rule that no figure grows by more than 10 % unseen: the comparison by itself, then
`synth.py` on a small module that grows."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../sw/tools/synth"))
import synth  # noqa: E402


def figures(lut=100, ff=100, bram=10, levels=5):
    return {"lut": lut, "ff": ff, "bram": bram, "levels": levels}


class Comparison(unittest.TestCase):
    def test_ten_percent_are_tolerated_and_one_more_is_not_in_every_figure(self):
        base = {"a": figures()}
        self.assertEqual(synth.grown({"a": figures(lut=110, ff=110, bram=11)}, base), [])
        self.assertEqual(synth.grown({"a": figures(lut=111)}, base), ["a: lut grew from 100 to 111"])
        self.assertEqual(synth.grown({"a": figures(ff=111)}, base), ["a: ff grew from 100 to 111"])
        self.assertEqual(synth.grown({"a": figures(bram=11.5)}, base), ["a: bram grew from 10 to 11.5"])
        self.assertEqual(synth.grown({"a": figures(levels=6)}, base), ["a: levels grew from 5 to 6"])
        self.assertEqual(len(synth.grown({"a": figures(200, 200, 20, 10)}, base)), 4)

    def test_the_first_block_ram_is_growth(self):
        self.assertEqual(synth.grown({"a": figures(bram=0.5)}, {"a": figures(bram=0)}), ["a: bram grew from 0 to 0.5"])

    def test_what_shrinks_is_no_growth(self):
        self.assertEqual(synth.grown({"a": figures(50, 50, 5, 2)}, {"a": figures()}), [])

    def test_each_block_is_compared_with_its_own_baseline(self):
        base = {"a": figures(lut=100), "b": figures(lut=1000)}
        self.assertEqual(synth.grown({"a": figures(lut=1000), "b": figures(lut=1000)}, base),
                         ["a: lut grew from 100 to 1000"])

    def test_a_new_block_and_a_removed_one_do_not_fail(self):
        self.assertEqual(synth.grown({"new": figures()}, {}), [])
        self.assertEqual(synth.grown({}, {"removed": figures()}), [])

    def test_rebaseline_takes_what_was_measured_and_drops_removed_blocks(self):
        table = {"grown": {}, "new": {}, "not measured": {}}
        base = {"grown": figures(), "not measured": figures(lut=7), "removed": figures()}
        results = {"grown": {**figures(lut=200, bram=3.0), "lutram": 5, "seconds": 1.5}, "new": figures(lut=1),
                   "module without a table entry": figures()}
        self.assertEqual(synth.rebased(results, base, table),
                         {"grown": figures(lut=200, bram=3), "new": figures(lut=1), "not measured": figures(lut=7)})


SOURCE = """`default_nettype none
module grows (
    input  wire         clk_i,
    input  wire  [{msb}:0] a_i,
    input  wire  [{msb}:0] b_i,
    output logic [{msb}:0] y_o
);
  always_ff @(posedge clk_i) y_o <= a_i & b_i;
endmodule
`default_nettype wire
"""


class Meter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("grows.f", f"{self.folder}/grows.sv\n")
        self.write("blocks.yaml", f"grows: {{top: grows, flist: {self.folder}/grows.f}}\n")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as handle:
            handle.write(text)

    def baseline(self):
        with open(os.path.join(self.folder, "baseline.json"), encoding="utf-8") as handle:
            return json.load(handle)

    def run_meter(self, width, *flags):
        """(exit status, output) of the meter for `width` LUTs and registers."""
        self.write("grows.sv", SOURCE.format(msb=width - 1))
        run = subprocess.run([sys.executable, synth.__file__, "--table", self.folder, *flags], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "BUILD": os.path.join(self.folder, "build")})
        return run.returncode, run.stdout

    def test_growth_fails_until_the_baseline_takes_it(self):
        self.write("baseline.json", json.dumps({"gone": figures()}))
        status, output = self.run_meter(20)
        self.assertEqual(status, 0, output)
        self.assertIn("without a baseline yet: grows", output)
        self.assertIn("in the baseline, but no blocks any more: gone", output)
        status, output = self.run_meter(20, "--rebaseline")
        self.assertEqual((status, self.baseline()), (0, {"grows": figures(20, 20, 0, 1)}), output)

        status, output = self.run_meter(23)
        self.assertEqual(status, 1, output)
        for figure in ("lut", "ff"):
            self.assertIn(f"grows: {figure} grew from 20 to 23: more than 10 %; mend it, or accept it with: "
                          "make synth REBASELINE=1", output)
        self.assertIn("23 (20)", output)
        self.assertEqual(self.baseline(), {"grows": figures(20, 20, 0, 1)})  # a failure accepts nothing

        status, output = self.run_meter(23, "--rebaseline")
        self.assertEqual((status, self.baseline()), (0, {"grows": figures(23, 23, 0, 1)}), output)
        status, output = self.run_meter(23)
        self.assertEqual(status, 0, output)
        self.assertNotIn("grew", output)

    def test_a_block_that_does_not_synthesise_fails_even_if_the_baseline_is_renewed(self):
        self.write("blocks.yaml", f"grows: {{top: other, flist: {self.folder}/grows.f}}\n")
        status, output = self.run_meter(20, "--rebaseline")
        self.assertEqual(status, 1, output)
        self.assertIn("grows: synthesis failed", output)


if __name__ == "__main__":
    unittest.main()
