# SPDX-License-Identifier: Apache-2.0
"""The reference arithmetic (sw/ref/numerics.h) and the C library SoftFloat for tests in Python.

Berkeley SoftFloat comes inside the extension module of the package softfloatpy. That exports the C functions;
here they are taken as pointers, for loops in C++ (numbers.cpp). A struct of one integer, as SoftFloat passes
its floats, travels as the integer does.
"""
import ctypes
import glob
import os

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD") or "build")

with open(os.path.join(ROOT, "sw/wire/wire.yaml"), encoding="utf-8") as _handle:
    _ENUMS = yaml.safe_load(_handle)["enums"]


def _codes(enum):
    return {name: entry["value"] for name, entry in _ENUMS[enum]["values"].items()}


TYPES = {name.lower(): code for name, code in _codes("dtype").items()}
OPS = {name.lower(): code for name, code in _codes("redop").items()}
ERRORS = _codes("err")
PROPAGATE_NAN, SATURATE, EXACT = 1, 2, 4
INVALID, OVERFLOW, INEXACT = 1, 2, 4

# Broken in nmc_cases.h.
BROKEN = ["none", "ties away", "truncates", "flushes inputs", "flushes results", "keeps NaN", "NaN wins",
          "zero sign", "zeros equal", "saturates"]


class Soft(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("second", ctypes.c_void_p), ("flags", ctypes.c_void_p)]


class Fault(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint64), ("b", ctypes.c_uint64), ("got", ctypes.c_uint64), ("want", ctypes.c_uint64),
                ("got_flags", ctypes.c_uint32), ("want_flags", ctypes.c_uint32)]

    def __str__(self):
        return (f"a {self.a:x} b {self.b:x}: got {self.got:x} flags {self.got_flags}, "
                f"SoftFloat says {self.want:x} flags {self.want_flags}")


LIB = ctypes.CDLL(os.path.join(BUILD, "tests", "libnmc_numbers.so"))
_U8, _U64, _UINT, _SIZE = ctypes.c_uint8, ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t
LIB.numbers_check.argtypes = [_U8, _U8, _U8, _UINT, _UINT, _UINT, ctypes.c_bool]
LIB.numbers_check.restype = _U8
LIB.numbers_reduce.argtypes = [_U8, _U8, _U8, _UINT, _U64, _UINT, ctypes.c_char_p, _SIZE, ctypes.c_char_p, _SIZE]
LIB.numbers_reduce.restype = _UINT
LIB.numbers_compare.argtypes = [_U8, _U8, Soft, _U64, _U64, _U64, _UINT, ctypes.POINTER(Fault)]
LIB.numbers_compare.restype = _U64
LIB.numbers_convert.argtypes = [_U8, _U8, Soft, _U64, _U64, _U64, ctypes.c_bool, ctypes.POINTER(Fault)]
LIB.numbers_convert.restype = _U64


def reduce(source, to, op, modes, scalar, sources, dst_bytes):
    """The reduction of a list of bytes, and its flags."""
    dst = ctypes.create_string_buffer(dst_bytes)
    flags = LIB.numbers_reduce(TYPES[source], TYPES[to], OPS[op], modes, scalar, len(sources), b"".join(sources),
                               len(sources[0]), dst, dst_bytes)
    return dst.raw, flags


SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
CONVERSIONS = [(a, b) for a in SHORT for b in SHORT if a != b and "bfloat16" not in (a, b)]
CONVERSIONS += [("bfloat16", "float32"), ("float32", "bfloat16")]


class SoftFloat:
    def __init__(self):
        import softfloatpy  # the package is only where tests were set up
        where = os.path.dirname(softfloatpy.__file__)
        self._lib = ctypes.CDLL(glob.glob(os.path.join(where, "_core*.so"))[0])
        self._flags = ctypes.addressof(ctypes.c_uint8.in_dll(self._lib, "softfloat_exceptionFlags"))

    def _pointer(self, name):
        return ctypes.cast(getattr(self._lib, name), ctypes.c_void_p).value

    def _soft(self, name, second=None):
        return Soft(self._pointer(name), self._pointer(second) if second else None, self._flags)

    def compare(self, kind, op, seed, first, count, broken="none"):
        """How many cases differ, and the first of them; seed 0: all pairs in order from number `first` on."""
        short = SHORT[kind]
        if kind == "bfloat16" and op in ("sum", "prod"):
            soft = self._soft("f32_add" if op == "sum" else "f32_mul", "f32_to_bf16")
        elif op in ("max", "min"):
            soft = self._soft(f"{short}_lt_quiet", f"{short}_eq")
        else:
            soft = self._soft(f"{short}_{'add' if op == 'sum' else 'mul'}")
        fault = Fault()
        wrong = LIB.numbers_compare(TYPES[kind], OPS[op], soft, seed, first, count, BROKEN.index(broken), fault)
        return wrong, fault

    def convert(self, source, to, seed, first, count, broken=False):
        fault = Fault()
        soft = self._soft(f"{SHORT[source]}_to_{SHORT[to]}")
        wrong = LIB.numbers_convert(TYPES[source], TYPES[to], soft, seed, first, count, broken, fault)
        return wrong, fault
