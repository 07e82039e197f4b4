# SPDX-License-Identifier: Apache-2.0
"""The list of long tests: the one there is can be read, a wrong one is told by name."""
import os
import tempfile
import unittest
from unittest import mock

import runtests
import testlong


class TestLong(unittest.TestCase):
    def wrong(self, text):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(testlong, "ROOT", folder):
            os.makedirs(os.path.join(folder, "tests"))
            with open(os.path.join(folder, testlong.LIST), "w", encoding="utf-8") as handle:
                handle.write(text)
            with self.assertRaises(ValueError) as caught:
                testlong.entries()
        return str(caught.exception)

    def test_the_list_can_be_run(self):
        found = testlong.entries()
        self.assertEqual(len({entry["name"] for entry in found}), len(found))
        names = runtests.all_names()
        for entry in found:
            if "test" in entry:
                self.assertTrue(any(runtests.matches(entry["test"], "", name) for name in names), entry["name"])

    def test_what_is_wrong_is_told_by_name(self):
        self.assertIn("'a': no such key: times", self.wrong('[[long]]\nname = "a"\nabout = "x"\ntimes = 2'))
        self.assertIn("'a': expected name, about, and one of", self.wrong('[[long]]\nname = "a"\nabout = "x"'))
        self.assertIn("'a': no file gone.py", self.wrong('[[long]]\nname = "a"\nabout = "x"\nrun = ["gone.py"]'))


if __name__ == "__main__":
    unittest.main()
