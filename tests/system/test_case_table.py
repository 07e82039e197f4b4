# SPDX-License-Identifier: Apache-2.0
"""docs/cases.md against the tests it names: a row must not outlive its test, nor a test escape the table."""
import os
import re
import unittest

import runtests

LISTS = {"rtl": 36, "software": 27, "transport": 24}  # how many cases each list has


def faults(table, names):
    """What is wrong with the table, a line each."""
    rows = re.findall(r"^\| (rtl|software|transport) (\d+) \| [^|]+ \| ([^|]*) \| ([^|]*) \|$", table, re.M)
    out = []
    expected = [(which, str(n)) for which, count in LISTS.items() for n in range(1, count + 1)]
    if [row[:2] for row in rows] != expected:
        out.append("the rows are not the cases of the lists in order, one each")
    for which, number, what, here in rows:
        case = f"{which} {number}"
        cells = here.strip().split("<br>")
        listed = [cell.strip("`") for cell in cells if cell.startswith("`")]
        later = [cell for cell in cells if not cell.startswith("`")]
        if not what.strip():
            out.append(f"{case}: says nothing")
        if len(later) > 1 or any(not re.match(r"later: \w+", cell) for cell in later):
            out.append(f"{case}: neither tests nor 'later: ...': {later}")
        out += [f"{case}: no test is called '{name}'" for name in listed if name not in names]
        there = [name for name in names if re.search(rf"\bcase {case}\b", name)]
        out += [f"{case}: '{name}' is not listed" for name in there if name not in listed]
        out += [f"{case}: '{name}' does not name the case" for name in listed if name not in there]
    return out


class Table(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(runtests.ROOT, "docs/cases.md"), encoding="utf-8") as handle:
            self.table = handle.read()
        self.names = runtests.all_names()

    def test_every_case_has_its_tests_or_says_what_it_waits_for(self):
        self.assertEqual(faults(self.table, self.names), [])

    def test_a_name_that_is_wrong_missing_or_new_is_noticed(self):
        name = next(name for name in self.names if "case rtl 10" in name)
        self.assertIn(f"rtl 10: no test is called '{name}'",
                      faults(self.table, [other for other in self.names if other != name]))
        self.assertIn("rtl 12: 'rx: new (case rtl 12)' is not listed",
                      faults(self.table, [*self.names, "rx: new (case rtl 12)"]))
        line = next(line for line in self.table.splitlines() if line.startswith("| rtl 12 |"))
        self.assertTrue(faults(self.table.replace(line + "\n", ""), self.names))
        self.assertTrue(faults(self.table.replace("later: needs ARP", "needs ARP"), self.names))
