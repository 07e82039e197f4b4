// SPDX-License-Identifier: Apache-2.0
// Collective compiler: turns one collective into the work-queue entries of every rank. Pure functions, no
// device.
//
// Counts are elements and mean what they mean in NCCL: per rank for all_reduce and broadcast, received per
// rank for reduce_scatter, sent per rank for all_gather, per pair for all_to_all. Results depend on plan and
// rank order only: fold_order() tells in which order which reductions make them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sw/weft/result.h"
#include "weft_wire.h"

namespace wccl {

enum class Kind { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kAllToAllV, kBroadcast, kBarrier };
enum class Type {
  kFloat32,
  kBfloat16,
  kInt32,
  kInt64,
  kFloat64,
  kFloat16,
  kFloat8E4m3,
  kFloat8E5m2,
  kInt8,
  kInt16,
  kUint8,
  kUint16,
  kUint32,
  kUint64
};
// kPremulSum adds what each rank gives times Op::scalar. kAvg of floats is the same by 1 / ranks, so that no
// mean overflows; of integers the sum, which wraps, divided by the ranks, towards zero. kAnd, kOr, kXor:
// integers only.
enum class RedOp { kSum, kMax, kMin, kProd, kAvg, kPremulSum, kAnd, kOr, kXor };
enum class Algo { kAuto, kDirect, kRing };

const char* name(Kind k);
const char* name(Type t);
const char* name(RedOp r);
const char* name(Algo a);
std::size_t size_of(Type t);  // bytes of one element
bool is_float(Type t);
std::span<const Type> all_types();
std::span<const RedOp> all_redops();
weft::wire::Dtype wire_type(Type t);
weft::wire::Redop wire_redop(RedOp r);
// `x` as a factor of elements of `t`, as entries hold it: a float64 for float64, else a float32; an integer.
std::uint64_t scalar_bits(Type t, double x);
// An empty string when `x` is a factor of elements of `t`, else what is expected instead.
std::string check_scalar(Type t, double x);

inline constexpr int kMaxRanks = 16;

struct Op {
  Kind kind = Kind::kBarrier;
  Type type = Type::kFloat32;
  RedOp redop = RedOp::kSum;  // all_reduce, reduce_scatter
  std::uint64_t scalar = 0;   // kPremulSum: scalar_bits()
  std::uint64_t count = 0;    // elements
  int root = 0;               // broadcast
  bool in_place = false;
  Algo algo = Algo::kAuto;                              // all_reduce; the others are direct
  std::vector<std::vector<std::uint64_t>> send_counts;  // all_to_allv: [sender][receiver], elements
};

// An empty string when `op` is legal for `ranks` ranks, else what is wrong with it.
std::string check(const Op& op, int ranks);

// Bytes of the buffers `rank` must have.
struct Sizes {
  std::uint64_t send = 0;     // bytes read
  std::uint64_t recv = 0;     // bytes of the receive buffer
  std::uint64_t scratch = 0;  // bytes of the communicator's scratch area
};
Sizes sizes(const Op& op, int rank, int ranks);

// Where an in-place operation's send buffer lies inside its receive buffer (bytes), and the other way round
// for reduce_scatter (receive inside send).
std::uint64_t in_place_offset(const Op& op, int rank);

// What a plan must know of a rank's memory. Addresses are byte addresses at that rank.
struct RankMemory {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
  std::uint32_t recv_key = 0;
  std::uint64_t scratch = 0;
  std::uint32_t scratch_key = 0;
};

// Semaphores of a communicator: the first kSemsPerComm of the node, one per purpose and peer.
inline constexpr int kSemsPerComm = 5 * kMaxRanks;
enum class Sem { kReduce = 0, kGather = 1, kCredit = 2, kStart = 3, kCheck = 4 };
const char* name(Sem s);
inline std::uint16_t sem(Sem purpose, int peer) {
  return static_cast<std::uint16_t>(static_cast<int>(purpose) * kMaxRanks + peer);
}
// Semaphores kCredit of every peer start at 1 (its scratch area is free); all others at 0. Every plan returns
// them there.

// A plan has a number, the same at all ranks. Every plan raises at every peer kStart by that number and
// kCheck by kPlanNumbers less the number, and ends only when both from every peer were there: of two ranks
// that run different plans each lacks one of the two, so no plan ends anywhere unless all ranks have started
// it.
inline constexpr std::uint32_t kPlanNumbers = 1U << 30;  // numbers are 1 to kPlanNumbers - 1

struct Target {
  std::vector<RankMemory> memory;   // of every rank, for this operation
  std::vector<std::uint16_t> conn;  // conn[p]: this rank's connection to rank p
  std::uint32_t number = 1;
};

// The entries of `rank`. Errors name the argument.
weft::Result<std::vector<weft::wire::Wqe>> compile(const Op& op, int rank, int ranks, const Target& target);

// Op::scalar, or what stands for it in an average over `ranks`.
std::uint64_t scalar_of(const Op& op, int ranks);
// Algorithm that kAuto chooses.
Algo choose(const Op& op, int ranks);

// A run of elements that is reduced in one order.
struct Fold {
  std::uint64_t first = 0;  // element of the full vector
  std::uint64_t count = 0;
  std::vector<int> order;  // ranks, leftmost first: ((order[0] op order[1]) op order[2]) ...
  // All in one entry: rounded once, at the end, if the type is a small one. Else an entry for each step, each
  // of which rounds to the type, as does the product of a contribution that is scaled; of kAvg of integers
  // the last one divides.
  bool at_once = false;
};
// all_reduce: folds that cover the vector; reduce_scatter: folds that cover ranks*count elements.
std::vector<Fold> fold_order(const Op& op, int ranks);

}  // namespace wccl
