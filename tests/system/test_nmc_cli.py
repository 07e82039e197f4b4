# SPDX-License-Identifier: Apache-2.0
"""`weft nmc`: what it says to wrong input, and what it makes of files, on the model of the reducer and by the rules alone.

Wrong input: one line on stderr that names flag or file, value and what was expected; exit status 2; nothing on
stdout; no file that was not there before.
"""
import json
import os
import struct
import subprocess
import tempfile
import unittest

NEEDS = ["weft"]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")
WEFT = os.path.join(BUILD, "weft")
LIMIT_S = 600  # of one call; only a hang comes near it


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weft_nmc")
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def write(self, name, data):
        with open(os.path.join(self.dir, name), "wb") as handle:
            handle.write(data)
        return name

    def read(self, name):
        with open(os.path.join(self.dir, name), "rb") as handle:
            return handle.read()

    def floats(self, name, *values):
        return self.write(name, struct.pack(f"<{len(values)}f", *values))

    def nmc(self, *args):
        return subprocess.run([WEFT, "nmc", *args], cwd=self.dir, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)

    def good(self, *args):
        result = self.nmc(*args)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout + result.stderr)
        return result.stdout

    def refused(self, args, *words):
        before = sorted(os.listdir(self.dir))
        result = self.nmc(*args)
        with self.subTest(args=args):
            self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
            self.assertRegex(result.stderr, r"\Aweft nmc: [^\n]+\n\Z", "not one line")
            self.assertEqual(result.stdout, "")
            self.assertEqual(sorted(os.listdir(self.dir)), before, "something was left behind")
            for word in words:
                self.assertIn(word, result.stderr)


class BadInput(Case):
    def test_names(self):
        a = self.floats("a.bin", 1, 2)
        self.refused(["--op", "mean", "--type", "float32", a], "--op = mean: expected one of sum, prod, min, max, avg")
        self.refused(["--op", "sum", "--type", "fp32", a], "--type = fp32: expected one of float64, float32")
        self.refused(["--op", "sum", "--type", "float32", "--to", "SUM", a], "--to = SUM")
        self.refused(["--op", "sum", "--type", "float32", "--body", "fpga", a], "--body = fpga: expected rtl or ref")
        self.refused(["--type", "float32", a], "--op")
        self.refused(["--op", "sum", a], "--type")
        self.refused(["--op", "sum", "--type", "float32"], "files")
        self.refused(["--op", "sum", "--type", "float32", "--bogus", a], "--bogus")

    def test_what_there_is_not(self):
        a, b = self.floats("a.bin", 1, 2), self.floats("b.bin", 3, 4)
        self.refused(["--op", "xor", "--type", "float32", a, b], "--op = xor: expected what float32 has: sum, prod, min, max, avg, premul_sum, copy")
        self.refused(["--op", "and", "--type", "float32", a, b], "--op = and: expected what float32 has")
        for n in ("0", "65", "-1"):
            self.refused(["--op", "avg", "--type", "int32", "--scalar", n, a, b],
                         f"--scalar = {n}: expected what to divide the sum by, 1 to 64")
        self.refused(["--op", "prod", "--type", "mxfp4", a, b], "--op = prod: expected what mxfp4 has: sum, min, max, copy")
        self.refused(["--op", "sum", "--type", "float32", "--to", "int32", a, b], "--to = int32: expected what float32 converts to")
        self.refused(["--op", "sum", "--type", "float32", "--propagate-nan", a, b], "--propagate-nan: expected with min or max")
        self.refused(["--op", "sum", "--type", "float32", "--saturate", a, b], "--saturate: expected with a result of 8-bit floats or integers")
        self.refused(["--op", "sum", "--type", "float32", "--exact", a, b], "--exact: expected with sum of 16- or 8-bit floats")
        self.refused(["--op", "copy", "--type", "float32", a, b], "--op = copy: 2 files, expected one")
        self.refused(["--op", "sum", "--type", "float32", "--own", "2", a, b], "--own = 2: expected 0 to 1")
        self.refused(["--op", "sum", "--type", "float32", *[a] * 65], "65 files, expected 1 to 64")
        self.refused(["--op", "sum", "--type", "float32", *[a] * 321], "321 files, expected 1 to 64")
        self.refused(["--op", "sum", "--type", "float32", "--scalar", "2", a, b], "--scalar = 2: expected with avg or premul_sum")
        self.refused(["--op", "premul_sum", "--type", "float32", a, b], "expected a --scalar")
        self.refused(["--op", "premul_sum", "--type", "float32", "--scalar", "two", a, b], "--scalar = two: expected a number")
        self.refused(["--op", "premul_sum", "--type", "int32", "--scalar", "0.5", a, b], "--scalar = 0.5: expected an integer")
        for kind, value, what in (("int8", "300", "a signed integer of 8 bits"), ("int8", "-129", "a signed integer of 8 bits"),
                                  ("uint8", "-1", "an unsigned integer of 8 bits"), ("uint16", "65536", "an unsigned integer of 16 bits"),
                                  ("int64", "9223372036854775808", "a signed integer of 64 bits")):
            self.refused(["--op", "premul_sum", "--type", kind, "--scalar", value, a, b], f"--scalar = {value}: expected {what}")
        self.refused(["--op", "sum", "--type", "float32", "--stall", "1", a, b], "--stall = 1: expected")
        self.refused(["--op", "sum", "--type", "float32", "--latency", "1000000", a, b], "--latency = 1000000: expected at most")

        self.refused(["--op", "sum", "--type", "float32", "--dump", "100001", a, b], "--dump = 100001: expected at most 100000")
        self.refused(["--op", "sum", "--type", "float32", "--dump", "-1", a, b], "--dump")

    def test_files(self):
        a, short, odd = self.floats("a.bin", 1, 2), self.floats("short.bin", 3), self.write("odd.bin", bytes(7))
        base = ["--op", "sum", "--type", "float32"]
        self.refused([*base, a, short], "short.bin: 4 bytes, expected the 8 of a.bin")
        self.refused([*base, odd, odd], "odd.bin: 7 bytes, expected a multiple of the 4 of float32")
        self.refused(["--op", "sum", "--type", "mxfp8_e4m3", a, a], "expected a multiple of the 33 of a block of 32 mxfp8_e4m3")
        self.refused(["--op", "copy", "--type", "float32", "--to", "mxfp4", a], "expected a multiple of the 128 of a block of 32 float32")
        self.refused([*base, a, "none.bin"], "none.bin: cannot be read: No such file")
        self.refused([*base, a, "."], ".: expected a file of elements")
        self.refused([*base, a, a, "-o", "no/where.bin"], "-o = no/where.bin: cannot be written")
        self.refused([*base, a, a, "-o", a], "-o = a.bin: expected no file that is read")
        self.refused([*base, a, a, "-o", "x", "--json", "x"], "--json = x: expected another file than -o")
        self.refused([*base, a, a, "-o", ""], "-o = '': expected a path")
        with open(os.path.join(self.dir, "huge.bin"), "wb") as handle:
            handle.truncate(48 << 20)
        self.refused([*base, "huge.bin", "-o", "out.bin"], "expected at most 64 MiB (--body ref takes 1024)")
        with open(os.path.join(self.dir, "huge.bin"), "wb") as handle:
            handle.truncate(1 << 40)
        self.refused([*base, "--body", "ref", "huge.bin"], "expected at most 1024 MiB\n")


class Results(Case):
    def test_sums_of_three_are_rounded_once(self):
        # 1 + 2^-8 + 2^-8 in bfloat16: two ties lose both halves, one rounding keeps their sum.
        one, half = struct.pack("<H", 0x3f80), struct.pack("<H", 0x3b80)
        a, b, c = self.write("a.bin", one), self.write("b.bin", half), self.write("c.bin", half)
        out = self.good("--op", "sum", "--type", "bfloat16", a, b, c, "--body", "ref", "-o", "o.bin", "--dump", "4")
        self.assertEqual(self.read("o.bin"), struct.pack("<H", 0x3f81))
        self.assertEqual(out, "sum of 3 x bfloat16 -> bfloat16, 1 elements, 2 bytes of result\n"
                              "element  source 0  source 1         source 2         result\n"
                              "0        0x3f80 1  0x3b80 0.003906  0x3b80 0.003906  0x3f81 1.008\n"
                              "raised: none\n")

    def test_the_model_of_the_reducer_and_its_rules_agree(self):
        values = [1.0, -2.5, float("inf"), float("nan"), -0.0, 1e-45, 3e38, 0.1]
        a = self.floats("a.bin", *values * 100)
        b = self.floats("b.bin", *reversed(values * 100))
        for op in ("sum", "max", "min"):
            out = self.good("--op", op, "--type", "float32", a, b, "-o", "rtl.bin", "--json", "j.json")
            self.assertIn("num::reduce: all 3200 bytes equal\n", out)
            self.good("--op", op, "--type", "float32", a, b, "-o", "ref.bin", "--body", "ref")
            self.assertEqual(self.read("rtl.bin"), self.read("ref.bin"))
            with open(os.path.join(self.dir, "j.json"), encoding="utf-8") as handle:
                figures = json.load(handle)
            self.assertEqual((figures["result"], figures["differ"], figures["elements"], figures["result_bytes"]), ("ok", 0, 800, 3200))
            self.assertGreater(figures["cycles"], 3200 / 128 + 2 * 40)
            self.assertAlmostEqual(figures["bytes_per_cycle"], 3200 / figures["cycles"])
        # Memory that is slow, late and held back changes cycles and nothing else.
        slow = self.good("--op", "min", "--type", "float32", a, b, "-o", "slow.bin", "--latency", "400", "--jitter", "50", "--stall", "0.5")
        self.assertEqual(self.read("slow.bin"), self.read("rtl.bin"))
        cycles = [int(line.split()[1]) for text in (out, slow) for line in text.splitlines() if line.startswith("rtl:")]
        self.assertGreater(cycles[1], cycles[0] + 2 * 360)
        self.assertEqual(slow, self.good("--op", "min", "--type", "float32", a, b, "--latency", "400", "--jitter", "50", "--stall", "0.5"))

    def test_no_element_at_all(self):
        empty = self.write("empty.bin", b"")
        out = self.good("--op", "sum", "--type", "float32", empty, empty, "-o", "o.bin")
        self.assertIn("0 elements, 0 bytes of result\n", out)
        self.assertEqual(self.read("o.bin"), b"")

    def test_types_operations_and_options_by_the_rules(self):
        ints = self.write("i.bin", struct.pack("<4b", 100, -100, 127, -128))
        base = ["--body", "ref", "-o", "o.bin"]
        self.good("--op", "sum", "--type", "int8", ints, ints, *base)
        self.assertEqual(struct.unpack("<4b", self.read("o.bin")), (-56, 56, -2, 0))
        self.good("--op", "sum", "--type", "int8", "--to", "int16", ints, ints, *base)
        self.assertEqual(struct.unpack("<4h", self.read("o.bin")), (200, -200, 254, -256))
        self.good("--op", "premul_sum", "--scalar", "-3", "--type", "int8", "--to", "int64", ints, *base)
        self.assertEqual(struct.unpack("<4q", self.read("o.bin")), (-300, 300, -381, 384))
        self.good("--op", "copy", "--type", "int8", "--to", "uint8", "--saturate", ints, *base)
        self.assertEqual(list(self.read("o.bin")), [100, 0, 127, 0])
        big = self.floats("f.bin", 1000, -1000, 2, 0)
        self.good("--op", "copy", "--type", "float32", "--to", "float8_e4m3", big, *base)
        self.assertEqual(self.read("o.bin").hex(), "7f7f4000")
        out = self.good("--op", "copy", "--type", "float32", "--to", "float8_e4m3", "--saturate", big, *base, "--dump", "9")
        self.assertEqual(self.read("o.bin").hex(), "7efe4000")
        self.assertIn("1        0xc47a0000 -1000  0xfe -448\n", out)
        self.assertIn("raised: overflow inexact\n", out)
        nan = self.floats("n.bin", float("nan"), 1, float("nan"), -1)
        self.good("--op", "max", "--type", "float32", big, nan, *base)
        self.assertEqual(struct.unpack("<4f", self.read("o.bin")), (1000, 1, 2, 0))
        self.good("--op", "max", "--propagate-nan", "--type", "float32", big, nan, *base)
        self.assertEqual(self.read("o.bin")[:4].hex(), "0000c07f")
        self.good("--op", "avg", "--type", "float32", big, big, big, big, "--own", "2", *base)
        self.assertEqual(struct.unpack("<4f", self.read("o.bin")), (1000, -1000, 2, 0))
        self.good("--op", "avg", "--type", "int8", "--to", "int16", ints, ints, ints, "--own", "1", *base)
        self.assertEqual(struct.unpack("<4h", self.read("o.bin")), (100, -100, 127, -128))
        self.good("--op", "avg", "--type", "int8", "--scalar", "7", ints, *base)
        self.assertEqual(struct.unpack("<4b", self.read("o.bin")), (14, -14, 18, -18))

    def test_blocks(self):
        numbers = self.floats("f.bin", *[float(i) for i in range(32)])
        for body in ("ref", "rtl"):
            self.good("--op", "copy", "--type", "float32", "--to", "mxfp8_e4m3", numbers, "--body", body, "-o", "mx.bin")
            block = self.read("mx.bin")
            self.assertEqual(len(block), 33)
            self.assertEqual(block[0], 127 + 4 - 8)  # of 31 to the highest exponent of e4m3
            out = self.good("--op", "sum", "--type", "mxfp8_e4m3", "--to", "float32", "mx.bin", "mx.bin", "--body", body,
                            "-o", "o.bin", "--dump", "3")
            self.assertEqual(struct.unpack("<32f", self.read("o.bin"))[:17], tuple(2.0 * i for i in range(17)))
            self.assertIn("2        7b:60 2   7b:60 2   0x40800000 4\n", out)
        # Blocks to blocks on the RTL, which compares every byte with the rules.
        many = self.floats("m.bin", *[float(i % 100 - 50) / 8 for i in range(32 * 50)])
        for name in ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp4"):
            self.good("--op", "copy", "--type", "float32", "--to", name, many, "-o", "b.bin")
            for op in ("sum", "max", "min"):
                self.good("--op", op, "--type", name, "b.bin", "b.bin", "b.bin", "-o", "o.bin")
            self.assertEqual(self.read("o.bin"), self.read("b.bin"))  # the least of three of the same

    def test_the_comparison_can_fail(self):
        a = self.floats("a.bin", *range(64))
        result = self.nmc("--op", "sum", "--type", "float32", a, a, "--corrupt-result", "2", "-o", "o.bin", "--json", "j.json")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("FAILED: 2 of 64 elements differ; element 0 is 0x00000001 1.40129846e-45, expected 0x00000000 0\n", result.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "o.bin")))
        with open(os.path.join(self.dir, "j.json"), encoding="utf-8") as handle:
            self.assertEqual(json.load(handle)["result"], "failed")


if __name__ == "__main__":
    unittest.main()
