// SPDX-License-Identifier: Apache-2.0
//
// The formats of elements, and which wire::Dtype names which. An element is handled as its bits, in
// an unsigned integer; a format is a type without values that says what the bits mean.
//
//   Float   sign | exponent field | fraction          Int   two's complement or unsigned
//
// Sources: IEEE 754-2019 (binary64, 32, 16), OCP OFP8 1.0 (e4m3, e5m2), OCP MX 1.0 (e2m1); bfloat16
// is the upper half of binary32. docs/numerics.md has the rules as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weft_wire.h"

namespace weft::num {

/// What the codes with the highest exponent field mean.
enum class Top : uint8_t {
  Ieee,    ///< infinity, and NaNs
  OneNan,  ///< numbers, but for all ones, which is the NaN (e4m3)
  Finite,  ///< numbers (e2m1)
};

/// A binary float: one sign bit, kExpBits of exponent, kFracBits of fraction, in the low bits of Bits.
template <class Bits, int kExpBits, int kFracBits, Top kTopMeans = Top::Ieee>
struct Float {
  using bits_type = Bits;
  static constexpr Top kTop = kTopMeans;
  static constexpr int kExp = kExpBits, kFrac = kFracBits, kBias = (1 << (kExp - 1)) - 1;
  static constexpr int kLow = 1 - kBias - kFrac;  ///< the smallest subnormal is 2^kLow
  static constexpr Bits kHidden = static_cast<Bits>(Bits{1} << kFrac);
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kExp + kFrac));
  /// Infinity; in a format without one a code that no magnitude equals.
  static constexpr Bits kInf = kTop == Top::Ieee ? static_cast<Bits>(kSign - kHidden) : kSign;
  /// The largest finite number.
  static constexpr Bits kMax = static_cast<Bits>(kTop == Top::Finite   ? kSign - 1
                                                 : kTop == Top::OneNan ? kSign - 2
                                                                       : kInf - 1);
  /// The NaN that comes out, whatever went in; meaningless in a format without NaN.
  static constexpr Bits kNan =
      kTop == Top::Ieee ? static_cast<Bits>(kInf | kHidden >> 1) : static_cast<Bits>(kSign - 1);
  /// Exponent of the largest number: it lies in [2^kEmax, 2^(kEmax + 1)).
  static constexpr int kEmax = static_cast<int>(kMax >> kFrac) - kBias;

  static constexpr Bits magnitude(Bits x) { return static_cast<Bits>(x & (kSign - 1)); }
  static constexpr bool negative(Bits x) { return (x & kSign) != 0; }
  static constexpr bool is_finite(Bits x) { return magnitude(x) <= kMax; }
  static constexpr bool is_inf(Bits x) { return magnitude(x) == kInf; }
  static constexpr bool is_nan(Bits x) { return magnitude(x) > kMax && magnitude(x) != kInf; }
};

using Float64 = Float<uint64_t, 11, 52>;
using Float32 = Float<uint32_t, 8, 23>;
using Float16 = Float<uint16_t, 5, 10>;
using Bfloat16 = Float<uint16_t, 8, 7>;
using Float8E4m3 = Float<uint8_t, 4, 3, Top::OneNan>;
using Float8E5m2 = Float<uint8_t, 5, 2>;
using Float4E2m1 = Float<uint8_t, 2, 1, Top::Finite>;  ///< only an element of MXFP4

/// An integer of the width and signedness of Value.
template <class Value>
struct Int {
  using value_type = Value;
  using bits_type = std::make_unsigned_t<Value>;
};

using Int8 = Int<int8_t>;
using Int16 = Int<int16_t>;
using Int32 = Int<int32_t>;
using Int64 = Int<int64_t>;
using Uint8 = Int<uint8_t>;
using Uint16 = Int<uint16_t>;
using Uint32 = Int<uint32_t>;
using Uint64 = Int<uint64_t>;

template <class Format>
concept IsFloat = requires {
  Format::kFrac;
};
template <class Format>
concept IsInt = requires {
  typename Format::value_type;
};

/// What an entry met in any of its elements, in any step. A NaN among the sources raises nothing.
struct Flags {
  bool invalid = false;   ///< infinity minus infinity, zero times infinity: a NaN out of what was none
  bool overflow = false;  ///< out of the result's range: infinity, NaN or the range's end came out
  bool inexact = false;   ///< a float that came out is not the exact result

  constexpr Flags& operator|=(const Flags& o) {
    invalid |= o.invalid;
    overflow |= o.overflow;
    inexact |= o.inexact;
    return *this;
  }
  constexpr bool operator==(const Flags&) const = default;
};

/// What kind of numbers a type holds, which decides the operations and conversions it has.
enum class Kind : uint8_t { Unknown, Integer, Float, Block };

constexpr Kind kind_of(wire::Dtype type) {
  using enum wire::Dtype;
  switch (type) {
    case UINT8:
    case UINT16:
    case UINT32:
    case UINT64:
    case INT8:
    case INT16:
    case INT32:
    case INT64: return Kind::Integer;
    case FLOAT8_E4M3:
    case FLOAT8_E5M2:
    case FLOAT16:
    case BFLOAT16:
    case FLOAT32:
    case FLOAT64: return Kind::Float;
    case MXFP8_E4M3:
    case MXFP8_E5M2:
    case MXFP4_E2M1: return Kind::Block;
  }
  return Kind::Unknown;
}

/// Bytes of an element, which its address is a multiple of; 1 for the blocks of MX, which may lie
/// anywhere; 0 for an unknown type.
constexpr size_t bytes_of(wire::Dtype type) {
  switch (kind_of(type)) {
    case Kind::Integer:
    case Kind::Float: return size_t{1} << (static_cast<unsigned>(type) & 3);
    case Kind::Block: return 1;
    case Kind::Unknown: break;
  }
  return 0;
}

/// fn(Float32{}) and so on: runs fn with the format of a float `type`.
template <class Fn>
constexpr decltype(auto) with_float(wire::Dtype type, Fn&& fn) {
  using enum wire::Dtype;
  switch (type) {
    case FLOAT64: return fn(Float64{});
    case FLOAT16: return fn(Float16{});
    case BFLOAT16: return fn(Bfloat16{});
    case FLOAT8_E4M3: return fn(Float8E4m3{});
    case FLOAT8_E5M2: return fn(Float8E5m2{});
    default: return fn(Float32{});
  }
}

/// The same with the format of an integer `type`.
template <class Fn>
constexpr decltype(auto) with_int(wire::Dtype type, Fn&& fn) {
  using enum wire::Dtype;
  switch (type) {
    case UINT8: return fn(Uint8{});
    case UINT16: return fn(Uint16{});
    case UINT32: return fn(Uint32{});
    case UINT64: return fn(Uint64{});
    case INT8: return fn(Int8{});
    case INT16: return fn(Int16{});
    case INT64: return fn(Int64{});
    default: return fn(Int32{});
  }
}

/// The same with the format of the elements of a block `type`.
template <class Fn>
constexpr decltype(auto) with_block(wire::Dtype type, Fn&& fn) {
  switch (type) {
    case wire::Dtype::MXFP8_E5M2: return fn(Float8E5m2{});
    case wire::Dtype::MXFP4_E2M1: return fn(Float4E2m1{});
    default: return fn(Float8E4m3{});
  }
}

}  // namespace weft::num
