# SPDX-License-Identifier: Apache-2.0
"""The reference arithmetic against Berkeley SoftFloat: values and flags, signalling NaNs aside, which are quiet to us.

Directed and random cases here; tests/bench/nmc_numbers.py makes all pairs of 16-bit floats and 10^8 of the wider ones.
"""
import os
import unittest

import numbers_lib as numbers

NEEDS = ["nmc_numbers"]

SEED = int(os.environ.get("SEED") or 1)
CASES = 1_000_000
# Of the 2^32 pairs of a 16-bit type: every a of so many b, spread over all of them.
SAMPLED_B = 97


class SoftFloatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.soft = numbers.SoftFloat()

    def same(self, result, what):
        wrong, fault = result
        self.assertEqual(wrong, 0, f"{what}: {wrong} differ, first {fault}")

    def test_sums_and_products_of_float32(self):
        for op in ("sum", "prod"):
            self.same(self.soft.compare("float32", op, SEED, 0, CASES), op)

    def test_sums_and_products_of_float64(self):
        for op in ("sum", "prod"):
            self.same(self.soft.compare("float64", op, SEED, 0, CASES), op)

    def test_sums_and_products_of_16_bit_floats(self):
        for kind in ("float16", "bfloat16"):
            for op in ("sum", "prod"):
                self.same(self.soft.compare(kind, op, SEED, 0, CASES), f"{kind} {op}")
            for b in range(0, 65536, 65536 // SAMPLED_B):
                self.same(self.soft.compare(kind, "sum", 0, b << 16, 1 << 16), f"{kind}, b = {b:x}")

    def test_maximum_and_minimum(self):
        for kind in ("float16", "float32", "float64"):
            for op in ("max", "min"):
                self.same(self.soft.compare(kind, op, SEED, 0, CASES // 4), f"{kind} {op}")

    def test_conversions(self):
        for source, to in numbers.CONVERSIONS:
            narrow = source in ("float16", "bfloat16")
            result = self.soft.convert(source, to, 0 if narrow else SEED, 0, 65536 if narrow else CASES)
            self.same(result, f"{source} to {to}")

    def test_broken_rules_show(self):
        cases = 100_000
        for kind in ("float16", "float32", "float64"):
            for op in ("sum", "prod"):
                for broken in ("ties away", "truncates", "flushes inputs", "flushes results", "keeps NaN",
                               "zero sign", "saturates"):
                    with self.subTest(kind=kind, op=op, broken=broken):
                        self.assertGreater(self.soft.compare(kind, op, SEED, 0, cases, broken)[0], 10)
            for broken in ("keeps NaN", "NaN wins", "zeros equal", "flushes inputs"):
                with self.subTest(kind=kind, broken=broken):
                    self.assertGreater(self.soft.compare(kind, "max", SEED, 0, cases, broken)[0], 10)
        for source, to in numbers.CONVERSIONS:
            with self.subTest(source=source, to=to):
                self.assertGreater(self.soft.convert(source, to, SEED, 0, cases, True)[0], 10)
