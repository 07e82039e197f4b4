# SPDX-License-Identifier: Apache-2.0
"""The scripts behind make: which tests a pattern picks, what a .f list means, what format mends."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import flist
import lint
import runtests
import verilate

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


class Runner(unittest.TestCase):
    def test_a_pattern_is_a_program_a_glob_or_a_part_of_a_name(self):
        match = runtests.matches
        self.assertTrue(match("", "rx", "rx: anything"))
        self.assertTrue(match("rx", "rx", "parser: short frames"))
        self.assertTrue(match("rx: short*", "rx", "rx: short frames"))
        self.assertFalse(match("rx: short*", "rx", "rx: long frames"))
        self.assertTrue(match("short frames", "rx", "rx: short frames"))
        self.assertFalse(match("rx", "tx", "tx: sends"))
        self.assertTrue(match("a [b]*", "rx", "a [b] c"))
        self.assertTrue(match("rx*", "rx_path", "parser: short frames"))
        self.assertFalse(match("rx*", "tx_path", "parser: short frames"))

    def test_names_are_read_from_the_sources(self):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
            source.write('TEST_CASE("one: plain", "[a]") {}\nTEST_CASE(\n    "two: broken "\n    "in pieces",\n'
                         '    "[b]") {}\nTEMPLATE_TEST_CASE("three: \\"quoted\\"", "[c]", int) {}\n')
            source.flush()
            self.assertEqual(runtests.names_in_source(source.name),
                             ["one: plain", "two: broken in pieces", 'three: "quoted"'])

    def test_a_program_that_cannot_list_its_tests_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "p")

            def listed(script, pattern=""):
                with open(program, "w", encoding="utf-8") as handle:
                    handle.write("#!/bin/sh\n" + script)
                os.chmod(program, 0o755)
                return runtests.catch_tests("p", program, pattern)

            good = listed("printf 'p: a\\np: b\\n'; exit 2")
            self.assertEqual([test.name for test in good], ["p: a", "p: b"])
            self.assertEqual([test.name for test in listed("printf 'p: a\\np: b\\n'; exit 2", "p: b")], ["p: b"])
            for script in ("echo 'redefined' >&2; exit 255", "printf 'p: a\\n'; exit 2", "kill -SEGV $$"):
                bad = listed(script, "p: a")
                self.assertEqual(len(bad), 1)
                self.assertNotEqual(runtests.execute(bad[0], dict(os.environ), 10).verdict, "")

    def test_a_hung_test_is_stopped_and_a_crash_is_told(self):
        hung = runtests.execute(runtests.Test("p", "n", ["sleep", "60"]), dict(os.environ), 1)
        self.assertIn("still running", hung.verdict)
        crashed = runtests.execute(runtests.Test("p", "n", ["sh", "-c", "kill -SEGV $$"]), dict(os.environ), 10)
        self.assertIn("signal 11", crashed.verdict)
        self.assertEqual(runtests.execute(runtests.Test("p", "n", ["true"]), dict(os.environ), 10).verdict, "")

    def test_a_skipped_test_is_neither_passed_nor_silent(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test_probe.py")
            with open(path, "w", encoding="utf-8") as handle:
                handle.write("import unittest\nclass A(unittest.TestCase):\n"
                             "    def test_whole(self):\n        self.skipTest('no device')\n"
                             "    def test_part(self):\n        with self.subTest(k=1):\n            self.skipTest('no k')\n"
                             "    def test_both(self):\n        with self.subTest(k=1):\n            self.skipTest('no k')\n"
                             "        self.fail('wrong')\n")
            run = {test.name: runtests.execute(test, dict(os.environ), 60) for test in runtests.python_tests(path, "")}
        self.assertEqual({name: (test.skipped, test.verdict) for name, test in run.items()},
                         {"probe: whole": ("no device", ""), "probe: part": ("no k", ""),
                          "probe: both": ("", "exit status 1")})
        # The status alone, of a program that gives no reason, is a failure.
        mute = runtests.execute(runtests.Test("p", "n", ["sh", "-c", "exit 77"]), dict(os.environ), 10)
        self.assertEqual((mute.skipped, mute.verdict), ("", "exit status 77"))

    def test_closing_lines_name_what_was_skipped(self):
        absent = runtests.Test("p", "p: b", [])
        absent.skipped = "no device"
        self.assertEqual(runtests.closing(3, 1, []), "3 passed, 1 failed")
        self.assertEqual(runtests.closing(3, 0, [absent]),
                         "SKIPPED p: b (p): no device\n3 passed, 0 failed, 1 skipped")

    def test_targets_that_a_python_test_needs_are_read_from_it(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as source:
            source.write('import x\nNEEDS = ["weft", "other"]  # both\n')
            source.flush()
            self.assertEqual(runtests.needs_of(source.name), ["weft", "other"])
        self.assertEqual(runtests.needs_of(__file__), [])

    def test_no_match_is_an_error(self):
        result = subprocess.run([runtests.sys.executable, runtests.__file__, "no such test anywhere"], text=True,
                                stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no test matches T='no such test anywhere'", result.stdout)


class Lists(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
        return path

    def test_lists_nest_and_a_file_counts_once(self):
        a, b = self.write("a.sv", ""), self.write("b.sv", "")
        inner = self.write("inner.f", f"+incdir+rtl/common\n{a}  // the first\n")
        outer = self.write("outer.f", f"-f {inner}\n\n# note\n{b}\n{a}\n")
        sources = flist.expand([outer, inner], "build")
        self.assertEqual(sources.files, [a, b])
        self.assertEqual(sources.incdirs, [os.path.join(flist.ROOT, "rtl/common")])

    def test_build_means_the_build_directory(self):
        self.assertEqual(flist.resolve("build/gen/x.sv", "/elsewhere/b"), "/elsewhere/b/gen/x.sv")
        self.assertEqual(flist.resolve("rtl/x.sv", "/elsewhere/b"), os.path.join(flist.ROOT, "rtl/x.sv"))

    def test_a_missing_file_is_named_with_its_line(self):
        with self.assertRaises(SystemExit) as caught:
            flist.expand([self.write("x.f", "\nrtl/none.sv\n")], "build")
        self.assertIn("x.f:2: no file 'rtl/none.sv'", str(caught.exception))


class Chunks(unittest.TestCase):
    def test_files_are_split_by_size_in_order_and_none_is_lost(self):
        with tempfile.TemporaryDirectory() as folder:
            names = [f"f{i}.cpp" for i in range(10)]
            for i, name in enumerate(names):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as handle:
                    handle.write("x" * (1000 if i < 2 else 250))
            groups = verilate.split(names, folder, 2)
            self.assertEqual(sum(groups, []), names)
            self.assertEqual(len(groups), 2)
            self.assertEqual(groups[0], names[:2])


class Format(unittest.TestCase):
    def test_long_comments_are_broken_and_code_is_kept(self):
        words = "word " * 30
        text = f"module x;\n  // {words}\n  wire a;  // {words}\n  wire b;  // short\nendmodule\n"
        wrapped = lint.wrap_comments(text)
        self.assertLessEqual(max(map(len, wrapped.split("\n"))), 100)
        code = [line for line in wrapped.split("\n") if line.strip() and not line.strip().startswith("//")]
        self.assertEqual(code, ["module x;", "  wire a;", "  wire b;  // short", "endmodule"])
        self.assertEqual(wrapped.count("word"), 60)
        self.assertEqual(lint.wrap_comments(wrapped), wrapped)


class Views(unittest.TestCase):
    def test_saved_wave_views_name_signals_that_exist(self):
        words = set()
        for folder in ("rtl", "tests/unit"):
            for path in lint.tracked(folder + "/*.sv"):
                with open(os.path.join(lint.ROOT, path), encoding="utf-8") as handle:
                    words |= set(re.findall(r"\w+", handle.read()))
        views = lint.tracked("tests/waves/*.gtkw")
        self.assertTrue(views)
        for view in views:
            with open(os.path.join(lint.ROOT, view), encoding="utf-8") as handle:
                names = re.findall(r"^dut\.([\w.]+)", handle.read(), re.M)
            self.assertTrue(names, view)
            for name in names:
                # A port or register may be a struct whose fields stand in a generated package.
                declared = re.sub(r"(_[ioq])\..*", r"\1", name).split(".")
                self.assertEqual([part for part in declared if part not in words], [], f"{view}: {name}")


class Benches(unittest.TestCase):
    def test_a_benchmark_that_never_ends_is_named_and_the_others_run(self):
        with tempfile.TemporaryDirectory() as folder:
            bench = os.path.join(folder, "bench")
            os.mkdir(bench)
            figure = '{"%s": {"value": 3, "goal": 3, "unit": "x", "met": true}}'
            for name, text in [("hangs", "echo '" + figure % "before" + "'; sleep 300 & wait"), ("ends", "echo '" + figure % "after" + "'")]:
                path = os.path.join(bench, name)
                with open(path, "w", encoding="utf-8") as handle:
                    handle.write("#!/bin/sh\n" + text + "\n")
                os.chmod(path, 0o755)
            with open(os.path.join(bench, "list.txt"), "w", encoding="utf-8") as handle:
                handle.write("hangs\nends\n")
            result = subprocess.run([sys.executable, os.path.join(ROOT, "sw/tools/bench.py"), "hangs", "ends"], text=True,
                                    env={**os.environ, "BUILD": folder, "BENCH_LIMIT_S": "0.5"}, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, timeout=60, check=False)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("hangs: has not ended after 0.5 s", result.stdout)
        for figure in ("before", "after"):
            self.assertRegex(result.stdout, rf"(?m)^{figure} +3 +3  yes  x$")


if __name__ == "__main__":
    unittest.main()
