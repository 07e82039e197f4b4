# SPDX-License-Identifier: Apache-2.0
"""Whole reductions against a model in exact fractions, written from docs/numerics.md: bits and flags of every type,
operation and conversion, and which combinations there are.
"""
import itertools
import os
import random
import struct
import unittest
from fractions import Fraction

import numbers_lib as numbers
from numbers_lib import EXACT, INEXACT, INVALID, OVERFLOW, PROPAGATE_NAN, SATURATE

NEEDS = ["nmc_numbers"]

SEED = int(os.environ.get("SEED") or 1)
NAN, INF = "nan", "inf"


class Float:
    """A float format; a value is (negative, Fraction, INF or NAN)."""

    def __init__(self, exponent_bits, fraction_bits, top="ieee"):
        self.e, self.f, self.top = exponent_bits, fraction_bits, top
        self.bits = 1 + self.e + self.f
        self.bias = 2 ** (self.e - 1) - 1
        codes = 2 ** (self.e + self.f)  # without sign
        self.inf = codes - 2 ** self.f if top == "ieee" else None
        self.max = {"ieee": codes - 2 ** self.f - 1, "one NaN": codes - 2, "finite": codes - 1}[top]
        self.nan = {"ieee": codes - 2 ** self.f + 2 ** (self.f - 1), "one NaN": codes - 1, "finite": None}[top]

    def magnitude(self, code):
        field, fraction = code >> self.f, code % 2 ** self.f
        if field == 0:
            return Fraction(fraction, 2 ** self.f) * Fraction(2) ** (1 - self.bias)
        return (1 + Fraction(fraction, 2 ** self.f)) * Fraction(2) ** (field - self.bias)

    def decode(self, bits):
        negative, code = bool(bits >> (self.bits - 1)), bits % 2 ** (self.bits - 1)
        if code <= self.max:
            return negative, self.magnitude(code)
        return negative, INF if code == self.inf else NAN

    def encode(self, value, saturate=False):
        """Bits and flags of the value, rounded to nearest, ties to even."""
        negative, size = value
        sign = 2 ** (self.bits - 1) if negative else 0
        if size == NAN:
            return self.nan, 0
        if size == INF:
            if self.inf is not None and not saturate:
                return sign | self.inf, 0
            return (sign | self.max if saturate else self.nan), OVERFLOW | INEXACT
        if size == 0:
            return sign, 0
        place = Fraction(2) ** (max(floor_log2(size), 1 - self.bias) - self.f)
        steps = round(size / place)  # Python rounds ties to even
        flags = INEXACT if steps * place != size else 0
        if steps * place > self.magnitude(self.max):
            if saturate or self.top == "finite":
                return sign | self.max, OVERFLOW | INEXACT
            return (self.nan if self.inf is None else sign | self.inf), OVERFLOW | INEXACT
        size = steps * place
        # The code: codes of one sign are in the order of their numbers.
        low, high = 0, self.max
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.magnitude(middle) <= size else (low, middle - 1)
        assert self.magnitude(low) == size
        return sign | low, flags


def floor_log2(size):
    log = size.numerator.bit_length() - size.denominator.bit_length()
    return log if Fraction(2) ** log <= size else log - 1


FLOATS = {
    "float64": Float(11, 52), "float32": Float(8, 23), "float16": Float(5, 10), "bfloat16": Float(8, 7),
    "float8_e4m3": Float(4, 3, "one NaN"), "float8_e5m2": Float(5, 2),
}
INTS = {f"{sign}int{bits}": (sign == "", bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
BLOCKS = {"mxfp8_e4m3": FLOATS["float8_e4m3"], "mxfp8_e5m2": FLOATS["float8_e5m2"],
          "mxfp4_e2m1": Float(2, 1, "finite")}
SINGLE = FLOATS["float32"]


# ---- values

def total(x, y):
    """x + y, and whether that is invalid."""
    if NAN in (x[1], y[1]):
        return (False, NAN), 0
    if INF in (x[1], y[1]):
        if x[1] == y[1] and x[0] != y[0]:
            return (False, NAN), INVALID
        return (x if x[1] == INF else y), 0
    exact = (-x[1] if x[0] else x[1]) + (-y[1] if y[0] else y[1])
    return (exact < 0 if exact else x[0] and y[0], abs(exact)), 0


def product(x, y):
    negative = x[0] != y[0]
    if NAN in (x[1], y[1]):
        return (False, NAN), 0
    if INF in (x[1], y[1]):
        return ((False, NAN), INVALID) if 0 in (x[1], y[1]) else ((negative, INF), 0)
    return (negative, x[1] * y[1]), 0


def extreme(x, y, largest, propagate):
    if NAN in (x[1], y[1]):
        return (False, NAN) if propagate or x[1] == y[1] else y if x[1] == NAN else x
    def key(v):
        size = Fraction(2) ** 5000 if v[1] == INF else v[1]
        return (-size, 0) if v[0] else (size, 1)  # -0 below +0
    return max(x, y, key=key) if largest else min(x, y, key=key)


class Model:
    """One element's reduction: values of the sources in, bits and flags out."""

    def __init__(self, op, accumulator, modes, scalar):
        self.op, self.a, self.modes, self.scalar, self.flags = op, accumulator, modes, scalar, 0

    def rounded(self, value, to, saturate=False):
        bits, flags = to.encode(value, saturate)
        self.flags |= flags
        return bits

    def step(self, x, y):
        """The exact result of a step of the fold."""
        if self.op in ("max", "min"):
            return extreme(x, y, self.op == "max", bool(self.modes & PROPAGATE_NAN))
        value, invalid = (product if self.op == "prod" else total)(x, y)
        self.flags |= invalid
        return value

    def times(self, x):
        value, invalid = product(x, self.scalar)
        self.flags |= invalid
        return value

    def in_a(self, value):
        return self.a.decode(self.rounded(value, self.a))

    def exact_last(self, values):
        """The exact result of the last step."""
        if self.op in ("avg", "premul_sum"):
            if len(values) == 1:
                return self.times(values[0])
            values = [self.in_a(self.times(v)) for v in values]
        acc = values[0]
        for i, value in enumerate(values[1:]):
            acc = self.step(acc, value)
            if i + 2 < len(values):
                acc = self.in_a(acc)
        return acc


def exact_sum(values):
    sizes = [v[1] for v in values]
    if NAN in sizes:
        return (False, NAN), 0
    signs = {v[0] for v in values if v[1] == INF}
    if signs:
        return ((False, NAN), INVALID) if len(signs) == 2 else ((signs.pop(), INF), 0)
    exact = sum(-v[1] if v[0] else v[1] for v in values)
    return (exact < 0, abs(exact)), 0


# ---- blocks

def block_values(kind, block, flags):
    """The 32 values of a block, in binary32."""
    element = BLOCKS[kind]
    scale, codes = block[0], list(block[1:])
    if element.bits == 4:
        codes = [half for byte in codes for half in (byte % 16, byte // 16)]
    values = []
    for code in codes:
        negative, size = element.decode(code)
        if scale == 255:
            size = NAN
        elif size not in (INF, NAN):
            bits, raised = SINGLE.encode((negative, size * Fraction(2) ** (scale - 127)))
            flags.append(raised)
            negative, size = SINGLE.decode(bits)
        values.append((negative, size))
    return values


def block_of(kind, values, flags):
    """The block of 32 values of binary32."""
    element = BLOCKS[kind]
    special = [size for _, size in values if size in (INF, NAN)]
    if INF in special:
        flags.append(OVERFLOW | INEXACT)
    if special and element.top == "finite":
        return bytes([255]) + bytes(16)
    largest = max((size for _, size in values if size not in (INF, NAN)), default=0)
    emax = floor_log2(element.magnitude(element.max))
    shared = min(127, max(-127, floor_log2(largest) - emax)) if largest else -127
    codes = []
    for negative, size in values:
        if size not in (INF, NAN):
            size = size / Fraction(2) ** shared
        bits, raised = element.encode((negative, size), size != NAN)
        flags.append(raised & INEXACT)
        codes.append(bits)
    if element.bits == 4:
        codes = [codes[i] + 16 * codes[i + 1] for i in range(0, 32, 2)]
    return bytes([shared + 127]) + bytes(codes)


# ---- data

def bits_of(kind):
    return FLOATS[kind].bits if kind in FLOATS else INTS[kind][1]


def pack(kind, elements):
    return b"".join(x.to_bytes(bits_of(kind) // 8, "little") for x in elements)


def unpack(kind, data):
    size = bits_of(kind) // 8
    return [int.from_bytes(data[i:i + size], "little") for i in range(0, len(data), size)]


def some_float(rng, kind, near):
    """Bits made for a purpose: specials, numbers of a like size that cancel, anything."""
    fmt = FLOATS[kind]
    sign = rng.getrandbits(1) << (fmt.bits - 1)
    pick = rng.randrange(20)
    if pick == 0:  # past the largest number comes infinity, if there is one
        return sign | rng.choice([0, 0, fmt.max, fmt.max - 1, fmt.max + 1, fmt.max + 1, fmt.nan, 1])
    if pick == 1:
        return rng.getrandbits(fmt.bits)
    if pick < 5:
        return sign | rng.getrandbits(fmt.f + 1)  # subnormal, or just not
    field = min(2 ** fmt.e - 2, max(0, near + rng.randrange(-3, 4)))
    return sign | field << fmt.f | rng.choice([0, 2 ** fmt.f - 1, rng.getrandbits(fmt.f), rng.getrandbits(fmt.f)])


def float_sources(rng, kind, k, count):
    fmt = FLOATS[kind]
    columns = []
    for _ in range(count):
        near = rng.choice([fmt.bias, fmt.bias, fmt.bias + fmt.f, rng.randrange(2 ** fmt.e), 2 ** fmt.e - 2])
        columns.append([some_float(rng, kind, near) for _ in range(k)])
    return [list(row) for row in zip(*columns)]


def some_block(rng, kind):
    scale = rng.choice([127, 127, 126, 128, 130, rng.randrange(256), rng.randrange(256), 0, 254, 255])
    data = bytearray(rng.getrandbits(8) for _ in range(16 if kind == "mxfp4_e2m1" else 32))
    if kind != "mxfp4_e2m1" and rng.randrange(3):
        for i in range(32):  # without the specials, most of the time
            data[i] &= 0xbf if kind == "mxfp8_e5m2" else 0xf7
    if rng.randrange(10) == 0:
        data = bytearray(len(data))
    return bytes([scale]) + bytes(data)


def scalars(rng, accumulator):
    fmt = FLOATS[accumulator]
    value = rng.choice([1.0, 0.5, 1 / 3, -0.125, 1 / 64, 0.0, 3.0, 1e-30, 1e30])
    bits = struct.unpack("<Q", struct.pack("<d", value))[0] if accumulator == "float64" else \
        struct.unpack("<I", struct.pack("<f", value))[0]
    return rng.choice([bits, bits, rng.getrandbits(fmt.bits)])


def modes_of(to, op):
    modes = [0]
    if op in ("max", "min"):
        modes.append(PROPAGATE_NAN)
    if to in ("float8_e4m3", "float8_e5m2") or to in INTS:
        modes += [m | SATURATE for m in modes]
    return modes


class ReductionTest(unittest.TestCase):
    def compare(self, case, want, want_flags, got):
        bits, flags = got
        self.assertEqual(bits.hex(" "), want.hex(" "), case)
        self.assertEqual(flags, want_flags, f"flags of {case}")

    def floats(self, source, to, op, modes, sources, scalar):
        a = "float64" if "float64" in (source, to) else "float32"
        if len(sources) == 1 and source == to and op not in ("avg", "premul_sum"):
            return pack(to, sources[0]), 0
        results, flags = [], 0
        for column in zip(*sources):
            values = [FLOATS[source].decode(x) for x in column]
            model = Model(op, FLOATS[a], modes, FLOATS[a].decode(scalar))
            if modes & EXACT:
                value, model.flags = exact_sum(values)
            else:
                value = model.exact_last(values)
            results.append(model.rounded(value, FLOATS[to], bool(modes & SATURATE)))
            flags |= model.flags
        return pack(to, results), flags

    def run_floats(self, ops, ks, count):
        rng = random.Random(SEED)
        for source, to, op in itertools.product(FLOATS, FLOATS, ops):
            a = "float64" if "float64" in (source, to) else "float32"
            for modes, k in itertools.product(modes_of(to, op), ks):
                sources = float_sources(rng, source, k, count)
                scalar = scalars(rng, a)
                want, flags = self.floats(source, to, op, modes, sources, scalar)
                got = numbers.reduce(source, to, op, modes, scalar, [pack(source, s) for s in sources], len(want))
                self.compare(f"{op} of {k} {source} to {to}, modes {modes}, scalar {scalar:x}", want, flags, got)

    def test_sums_and_products_of_floats(self):
        self.run_floats(("sum", "prod"), (1, 2, 3, 6), 24)

    def test_maxima_and_minima_of_floats(self):
        self.run_floats(("max", "min"), (1, 2, 5), 24)

    def test_averages_and_premultiplied_sums_of_floats(self):
        self.run_floats(("avg", "premul_sum"), (1, 2, 4), 24)

    def test_sums_of_64_floats_and_beyond_a_chunk(self):
        rng = random.Random(SEED)
        for source, to in (("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32"),
                           ("float8_e5m2", "float8_e5m2"), ("float64", "float64")):
            for k, count in ((64, 20), (3, 300)):
                sources = float_sources(rng, source, k, count)
                want, flags = self.floats(source, to, "sum", 0, sources, 0)
                got = numbers.reduce(source, to, "sum", 0, 0, [pack(source, s) for s in sources], len(want))
                self.compare(f"sum of {k} {source} to {to}", want, flags, got)

    def test_copies_of_floats(self):
        rng = random.Random(SEED)
        for source, to in itertools.product(FLOATS, FLOATS):
            for modes in modes_of(to, "copy"):
                sources = float_sources(rng, source, 1, 300)
                want, flags = self.floats(source, to, "copy", modes, sources, 0)
                got = numbers.reduce(source, to, "copy", modes, 0, [pack(source, sources[0])], len(want))
                self.compare(f"copy of {source} to {to}, modes {modes}", want, flags, got)

    def test_exact_sums_have_one_rounding_and_no_order(self):
        rng = random.Random(SEED)
        for kind in ("float16", "bfloat16", "float8_e4m3", "float8_e5m2"):
            for modes in (EXACT, EXACT | SATURATE):
                if modes & SATURATE and kind not in ("float8_e4m3", "float8_e5m2"):
                    continue
                for k in (2, 3, 7, 64):
                    sources = float_sources(rng, kind, k, 60)
                    want, flags = self.floats(kind, kind, "sum", modes, sources, 0)
                    for _ in range(3):
                        got = numbers.reduce(kind, kind, "sum", modes, 0, [pack(kind, s) for s in sources], len(want))
                        self.compare(f"exact sum of {k} {kind}, modes {modes}", want, flags, got)
                        rng.shuffle(sources)

    def test_integers(self):
        rng = random.Random(SEED)
        for source, to in itertools.product(INTS, INTS):
            signed, bits = INTS[source]
            to_signed, to_bits = INTS[to]
            width = max(bits, to_bits)
            def read(x, of_bits=bits, of_signed=signed):
                x %= 2 ** of_bits
                return x - 2 ** of_bits if of_signed and x >> (of_bits - 1) else x
            for op in ("sum", "prod", "max", "min", "premul_sum", "avg", "and", "or", "xor", "copy"):
                for modes, k in itertools.product(modes_of(to, op), (1,) if op == "copy" else (1, 2, 5)):
                    edges = [0, 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2 ** bits - 1]
                    sources = [[rng.choice(edges + [rng.getrandbits(bits)] * 5) for _ in range(20)] for _ in range(k)]
                    scalar = rng.randrange(1, 65) if op == "avg" else rng.getrandbits(64)
                    want, flags = [], 0
                    for column in zip(*sources):
                        values = [read(x) * (scalar if op == "premul_sum" else 1) for x in column]
                        acc = values[0]
                        for v in values[1:]:
                            acc = {"prod": acc * v, "max": max(acc, v), "min": min(acc, v), "and": acc & v,
                                   "or": acc | v, "xor": acc ^ v}.get(op, acc + v)
                        acc = read(acc, width, signed)
                        if op == "avg":
                            acc = acc // scalar if acc >= 0 else -(-acc // scalar)
                        # One source of the same type and no factor is a copy of bits.
                        if modes & SATURATE and (k > 1 or source != to or op in ("premul_sum", "avg")):
                            low = -2 ** (to_bits - 1) if to_signed else 0
                            clamped = min(max(acc, low), low + 2 ** to_bits - 1)
                            flags |= OVERFLOW if clamped != acc else 0
                            acc = clamped
                        want.append(acc % 2 ** to_bits)
                    got = numbers.reduce(source, to, op, modes, scalar, [pack(source, s) for s in sources],
                                         len(want) * to_bits // 8)
                    self.compare(f"{op} of {k} {source} to {to}, modes {modes}", pack(to, want), flags, got)

    def test_blocks(self):
        rng = random.Random(SEED)
        beside = ("float32", "bfloat16", "float16")
        pairs = [(b, b) for b in BLOCKS] + [p for b in BLOCKS for f in beside for p in ((b, f), (f, b))]
        for source, to in pairs:
            for op, k in itertools.product(("sum", "max", "min", "copy"), (1, 2, 4)):
                if op == "copy" and k > 1:
                    continue
                for modes in modes_of(to, op):
                    self.blocks(rng, source, to, op, modes, k)

    def blocks(self, rng, source, to, op, modes, k):
        count, raised = 4, []
        if source in BLOCKS:
            blocks = [[some_block(rng, source) for _ in range(count)] for _ in range(k)]
            sources = [b"".join(s) for s in blocks]
            rows = [[v for block in s for v in block_values(source, block, raised)] for s in blocks]
        else:
            elements = float_sources(rng, source, k, 32 * count)
            if rng.randrange(2):  # blocks without specials
                big = FLOATS[source].max
                elements = [[x if x % 2 ** (bits_of(source) - 1) <= big else 1 for x in s] for s in elements]
            sources = [pack(source, s) for s in elements]
            rows = [[FLOATS[source].decode(x) for x in s] for s in elements]
        values, flags = [], 0
        for column in zip(*rows):
            model = Model(op, SINGLE, modes, None)
            value = model.exact_last(list(column))
            if to in BLOCKS:
                values.append(model.in_a(value))
            else:
                values.append(model.rounded(value, FLOATS[to]))
            flags |= model.flags
        if to in BLOCKS:
            want = b"".join(block_of(to, values[i:i + 32], raised) for i in range(0, len(values), 32))
        else:
            want = pack(to, values)
        for r in raised:
            flags |= r
        if k == 1 and source == to:  # bits as they are
            want, flags = sources[0], 0
        got = numbers.reduce(source, to, op, modes, 0, sources, len(want))
        self.compare(f"{op} of {k} {source} to {to}, modes {modes}", want, flags, got)

    def test_which_reductions_there_are(self):
        """By sets, not by order: each refused one for a reason that holds, and none for a later one."""
        names = {code: name for name, code in numbers.TYPES.items()}
        ops = {code: name for name, code in numbers.OPS.items()}
        err = numbers.ERRORS
        beside = {"float32", "bfloat16", "float16"}
        accepted = 0
        types = sorted(names) + [0x0e, 0x0f, 0x11, 0x18 + 4, 0xff]
        for source_code, to_code, op_code in itertools.product(types, types, [*sorted(ops), 10, 255]):
            source, to, op = names.get(source_code), names.get(to_code), ops.get(op_code)
            block = source in BLOCKS or to in BLOCKS
            types_fit = (source in FLOATS and to in FLOATS) or (source in INTS and to in INTS) or \
                (source in BLOCKS and (to == source or to in beside)) or (to in BLOCKS and source in beside)
            op_fits = op in ("sum", "max", "min", "copy") or (
                op in ("prod", "premul_sum") and not block) or (
                op == "avg" and not block) or (
                op in ("and", "or", "xor") and source in INTS)
            for modes, nsrc, own in itertools.product(range(8), (0, 1, 2, 64, 65), (0, 1)):
                flags_fit = not (modes & PROPAGATE_NAN and op not in ("max", "min")) and \
                    not (modes & SATURATE and to not in INTS and to not in ("float8_e4m3", "float8_e5m2")) and \
                    not (modes & EXACT and (op != "sum" or source != to or source not in FLOATS or
                                            bits_of(source) > 16))
                sources_fit = 1 <= nsrc <= 64 and own < nsrc and (op != "copy" or nsrc == 1)
                want = err["BAD_TYPE"] if not types_fit else err["BAD_REDOP"] if not op_fits else \
                    err["BAD_FLAGS"] if not flags_fit else err["BAD_SOURCES"] if not sources_fit else err["OK"]
                for has_exact in (True, False):
                    if not has_exact and modes & EXACT and want in (err["BAD_SOURCES"], err["OK"]):
                        want = err["BAD_FLAGS"]
                    got = numbers.LIB.numbers_check(source_code, to_code, op_code, modes, nsrc, own, has_exact)
                    self.assertEqual(got, want, (source, to, op, modes, nsrc, own, has_exact))
                accepted += want == err["OK"]
        self.assertGreater(accepted, 1000)

    def test_a_wrong_model_is_found_out(self):
        """The comparison above sees a fold in another order, a second rounding, and meets every flag."""
        rng, seen = random.Random(SEED), 0
        for kind in FLOATS:
            sources = float_sources(rng, kind, 5, 400)
            data = [pack(kind, s) for s in sources]
            got, flags = numbers.reduce(kind, kind, "sum", 0, 0, data, len(data[0]))
            turned, _ = self.floats(kind, kind, "sum", 0, sources[::-1], 0)
            right, right_flags = self.floats(kind, kind, "sum", 0, sources, 0)
            self.assertEqual((got, flags), (right, right_flags))
            if kind in ("bfloat16", "float32", "float64"):  # sums of the others are hardly ever inexact in binary32
                self.assertNotEqual(got, turned, kind)
            # Rounded to the type after every step.
            fmt, stepwise = FLOATS[kind], []
            for column in zip(*sources):
                model = Model("sum", fmt, 0, None)
                stepwise.append(model.rounded(model.exact_last([fmt.decode(x) for x in column]), fmt))
            if kind not in ("float32", "float64"):
                self.assertNotEqual(got, pack(kind, stepwise), kind)
            seen |= flags
        self.assertEqual(seen, INVALID | OVERFLOW | INEXACT)


if __name__ == "__main__":
    unittest.main()
