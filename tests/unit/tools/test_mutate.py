# SPDX-License-Identifier: Apache-2.0
"""How lists of mistakes are read and put into the sources; that they kill is for `make mutants` itself."""
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import mutate


def entry(**keys):
    return {"name": "n", "file": "f.cpp", "old": "a", "new": "b", **keys}


class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patched = mock.patch.object(mutate, "ROOT", folder.name)
        patched.start()
        self.addCleanup(patched.stop)
        self.write("f.cpp", "if (x) one(); two();\n")
        self.write("g.sv", "assign a = b;\n")

    def write(self, name, text):
        path = os.path.join(mutate.ROOT, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)

    def mutant(self, **keys):
        return mutate.Mutant(entry(**keys), "list", "p")

    def test_a_chosen_mistake_is_a_condition_in_either_language(self):
        texts = {}
        cpp = self.mutant(old="(x)", new="(x && !@)")
        rtl = self.mutant(file="g.sv", old="= b;", new="= @ ? c : b;")
        self.assertTrue(cpp.put_into(texts) and rtl.put_into(texts))
        self.assertEqual(texts["f.cpp"], f"if (x && !::weft_mutant({cpp.number})) one(); two();\n")
        self.assertEqual(texts["g.sv"], f"assign a = (weft_mutant_pkg::chosen == {rtl.number}) ? c : b;\n")

    def test_mistakes_that_leave_each_other_room_share_a_build(self):
        first = self.mutant(name="1", old="(x)", new="(@ || (x))")
        second = self.mutant(name="2", old="(x)", new="(@ && (x))")
        swallows = self.mutant(name="3", old="one();", new="@ ? three() : four();")
        again = self.mutant(name="4", old="one();", new="@ ? five() : six();")
        alone = self.mutant(name="5", old="two();", new="")
        rounds = mutate.rounds_of([first, second, swallows, again, alone])
        self.assertEqual([[m.name for m in group] for group, _ in rounds], [["1", "2", "3"], ["4"], ["5"]])
        # What is built alone stands among those that could be chosen, and no `two` is left.
        self.assertIn("weft_mutant", rounds[2][1]["f.cpp"])
        self.assertNotIn("two", rounds[2][1]["f.cpp"])

    def test_a_list_that_does_not_fit_is_told_by_list_and_name(self):
        self.write("tests/unit/p/mutants.toml", """
[[mutant]]
name = "twice"
file = "f.cpp"
old = "()"
new = "@"
[[mutant]]
name = "gone"
file = "nowhere.cpp"
old = "x"
new = "@"
[[mutant]]
name = "key"
file = "f.cpp"
old = "x"
new = "@"
sees = []
[[mutant]]
name = "right"
file = "f.cpp"
old = "(x)"
new = "(@)"
[[mutant]]
name = "right"
file = "f.cpp"
old = "(x)"
new = "(@)"
""")
        mutants, faults = mutate.all_mutants()
        self.assertEqual([m.name for m in mutants], ["right"])
        self.assertEqual([fault.split("'")[1] for fault in faults], ["twice", "gone", "key", "right"])
        self.assertIn("has 2 times, expected once", faults[0])
        self.assertIn("no such key: sees", faults[2])

    def test_the_number_of_a_mistake_does_not_depend_on_its_place(self):
        self.assertEqual(self.mutant(name="a").number, self.mutant(name="a", old="two").number)
        self.assertNotEqual(self.mutant(name="a").number, self.mutant(name="b").number)


class Command(unittest.TestCase):
    def test_a_program_without_a_list_is_refused(self):
        run = subprocess.run([sys.executable, os.path.join(mutate.ROOT, "sw/tools/mutate.py"), "no-such-program"],
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("programs with a list:", run.stderr)


if __name__ == "__main__":
    unittest.main()
