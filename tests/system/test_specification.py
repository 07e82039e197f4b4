# SPDX-License-Identifier: Apache-2.0
"""The specification against tests, constants and wire.yaml; and that each way to drift apart is noticed."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import protocol as checker


class Specification(unittest.TestCase):
    def setUp(self):
        self.page = checker.read("docs/protocol.md")
        self.table = checker.read("docs/protocol_tests.md")
        self.names = checker.all_names()

    def change(self, text, what, by, count=1):
        self.assertIn(what, text)
        return text.replace(what, by, count)

    def test_every_rule_has_its_tests_or_a_plan(self):
        self.assertEqual(checker.faults_of_rules(self.page), [])
        self.assertEqual(checker.faults_of_table(self.page, self.table, self.names), [])

    def test_constants_are_those_of_the_sources(self):
        self.assertEqual(checker.faults_of_constants(self.page, *checker.constants(checker.load_wire())), [])

    def test_pieces_made_from_the_wire_are_new(self):
        self.assertEqual(checker.faults_of_pages(checker.load_wire(), checker.all_pages()), [])

    def test_a_rule_that_is_doubled_unnamed_or_empty_is_noticed(self):
        def noticed(page, fault):
            self.assertTrue([text for text in checker.faults_of_rules(page) if fault in text], fault)

        noticed(self.change(self.page, "**W-TX-002**", "**W-TX-001**"), "W-TX-001: used twice")
        noticed(self.change(self.page, "**W-TX-002**", "**W-TY-002**"), "W-TY-002: the group is none of")
        noticed(self.change(self.page, "- **W-TX-002** ", "- "), "a MUST outside of a rule")
        noticed(self.page + "\nAn end MUST be polite.\n", "a MUST outside of a rule: An end MUST be polite.")
        noticed(self.page + "\n- **W-TX-999** An end is polite.\n", "W-TX-999: says no MUST")
        noticed(self.page.replace("[W3]", ""), "[W3]: no rule tells what breaks without it")
        noticed(self.change(self.page, " [W3] ", " [W4] "), "the table of design rules names other rules than the tags")
        noticed(re.sub(r"^\| W3 \|.*\n", "", self.page, flags=re.M), "W3: no row in the table of design rules")
        self.assertTrue(checker.faults_of_table(self.page + "\n- **W-TX-999** An end MUST be polite.\n", self.table,
                                                self.names))

    def test_a_row_that_is_wrong_is_noticed(self):
        def noticed(table, fault, names=self.names):
            self.assertIn(fault, checker.faults_of_table(self.page, table, names))

        row = next(line for line in self.table.splitlines() if line.startswith("| W-FRAME-002 |"))
        name = re.search(r"\| `([^`]+)`", row).group(1)
        noticed(self.change(self.table, row + "\n", ""), "W-FRAME-002: no row in the table of tests")
        noticed(self.change(self.table, row, row + "\n" + row), "W-FRAME-002: two rows")
        noticed(self.change(self.table, row, "| W-FRAME-002 | not yet | not yet |"), "W-FRAME-002: no test at all")
        unseen = "not from outside: nobody can look in"
        noticed(self.change(self.table, row, f"| W-FRAME-002 | {unseen} | not yet |"), "W-FRAME-002: no test at all")
        noticed(self.change(self.table, row, "| W-FRAME-002 | later | not yet |"),
                "W-FRAME-002: neither 'not yet' nor tests: later")
        noticed(self.table + row.replace("W-FRAME-002", "W-FRAME-999") + "\n", "W-FRAME-999: a row, but no such rule")
        noticed(self.table, f"W-FRAME-002: no test is called '{name}'", self.names - {name})

    def test_planned_tests_are_counted_and_given_up_when_they_exist(self):
        count = int(checker.COUNT.search(self.table).group(2))
        plan = "| planned `no such test of ours` |"
        more = re.sub(r"^(\| W-FRAME-002) \| [^|]* \|", r"\1 " + plan, self.table, flags=re.M)
        self.assertIn(f"'Tests planned: {count}', but there are {count + 1}",
                      checker.faults_of_table(self.page, more, self.names))
        names = self.names | {"no such test of ours"}
        self.assertIn("W-FRAME-002: 'no such test of ours' is marked as planned, but exists",
                      checker.faults_of_table(self.page, more, names))
        self.assertEqual(checker.faults_of_table(self.page, checker.settled(more, names), names), [])

    def test_a_constant_that_differs_is_noticed(self):
        needed, optional = checker.constants(checker.load_wire())
        for where, name in needed:
            with self.subTest(name=name):
                value = needed[(where, name)]
                other = dict(needed)
                other[(where, name)] = not value if isinstance(value, bool) else value + 1
                self.assertTrue(checker.faults_of_constants(self.page, other, optional))
        row = next(line for line in self.page.splitlines() if line.startswith("| `give_up` |"))
        self.assertEqual(checker.faults_of_constants(self.page.replace(row + "\n", ""), needed, optional),
                         ["constant give_up of config.h: not in the table"])
        self.assertTrue(checker.faults_of_constants(self.page.replace("| `give_up` |", "| `gave_up` |"), needed, optional))

    def test_a_piece_that_is_old_or_unknown_is_noticed(self):
        wire = checker.load_wire()
        wire["headers"][-1]["fields"][0]["name"] = "renamed"
        self.assertEqual(checker.faults_of_pages(wire, {"page": self.page}), ["page: a piece made from wire.yaml is old"])
        for mark, fault in (("enum nothing", "enum: wire.yaml has no 'nothing'"), ("list cap", "'list' is none of"),
                            ("enum", "a mark without its '<!-- end -->'")):
            with self.subTest(mark=mark):
                text = f"<!-- wire.yaml: {mark} -->\n<!-- end -->\n"
                self.assertTrue([f for f in checker.faults_of_pages(checker.load_wire(), {"page": text}) if fault in f])

    def test_the_generator_changes_no_page_when_one_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            good, bad = os.path.join(folder, "good.md"), os.path.join(folder, "bad.md")
            with open(good, "w", encoding="utf-8") as handle:
                handle.write("<!-- wire.yaml: enum cap -->\n<!-- end -->\n")
            with open(bad, "w", encoding="utf-8") as handle:
                handle.write("<!-- wire.yaml: enum nothing -->\n<!-- end -->\n")
            command = [sys.executable, os.path.join(checker.ROOT, "sw/wire/gen.py"), "--pages"]
            result = subprocess.run([*command, good, bad], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((result.returncode, result.stderr), (2, f"{bad}: enum: wire.yaml has no 'nothing'\n"))
            with open(good, encoding="utf-8") as handle:
                self.assertEqual(handle.read().count("\n"), 2)
            self.assertEqual(subprocess.run([*command, good], stdout=subprocess.PIPE).returncode, 0)
            with open(good, encoding="utf-8") as handle:
                self.assertIn("| 0 | WRITE |", handle.read())
