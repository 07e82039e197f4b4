// SPDX-License-Identifier: Apache-2.0
#include "sw/wccl/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "sw/ref/numerics.h"

namespace wccl {
namespace {

using weft::wire::Wqe;
using weft::wire::WqeOp;

constexpr int kNone = -1;                         // no dependency
constexpr std::uint64_t kSliceBytes = 16 * 1024;  // a slice is not smaller: below, per-entry work would show
// The fold of the last slice is behind all that the wire has brought, so a slice should be small; but each
// has its own messages.
constexpr int kMaxSlices = 8;
constexpr std::uint64_t kMostBytes = weft::wire::kMaxWqeLength;  // of one entry; whole elements of every type

std::uint64_t round_up(std::uint64_t x, std::uint64_t to) {
  return (x + to - 1) / to * to;
}

struct Range {
  std::uint64_t first = 0, count = 0;  // elements
};

// Part `i` of `parts` of `count` elements, as even as can be.
Range part(std::uint64_t count, int i, int parts) {
  const auto p = static_cast<std::uint64_t>(parts), k = static_cast<std::uint64_t>(i);
  const std::uint64_t base = count / p, more = count % p;
  return {k * base + std::min(k, more), base + (k < more ? 1 : 0)};
}

Range slice(Range chunk, int i, int slices) {
  Range s = part(chunk.count, i, slices);
  s.first += chunk.first;
  return s;
}

int slices_of(std::uint64_t chunk_bytes) {
  return static_cast<int>(std::clamp<std::uint64_t>(chunk_bytes / kSliceBytes, 1, kMaxSlices));
}

struct TypeInfo {
  Type type;
  const char* name;
  weft::wire::Dtype wire;
  bool is_float;
};
constexpr TypeInfo kTypes[] = {
    {Type::kFloat64, "float64", weft::wire::Dtype::FLOAT64, true},
    {Type::kFloat32, "float32", weft::wire::Dtype::FLOAT32, true},
    {Type::kFloat16, "float16", weft::wire::Dtype::FLOAT16, true},
    {Type::kBfloat16, "bfloat16", weft::wire::Dtype::BFLOAT16, true},
    {Type::kFloat8E4m3, "float8_e4m3", weft::wire::Dtype::FLOAT8_E4M3, true},
    {Type::kFloat8E5m2, "float8_e5m2", weft::wire::Dtype::FLOAT8_E5M2, true},
    {Type::kInt8, "int8", weft::wire::Dtype::INT8, false},
    {Type::kInt16, "int16", weft::wire::Dtype::INT16, false},
    {Type::kInt32, "int32", weft::wire::Dtype::INT32, false},
    {Type::kInt64, "int64", weft::wire::Dtype::INT64, false},
    {Type::kUint8, "uint8", weft::wire::Dtype::UINT8, false},
    {Type::kUint16, "uint16", weft::wire::Dtype::UINT16, false},
    {Type::kUint32, "uint32", weft::wire::Dtype::UINT32, false},
    {Type::kUint64, "uint64", weft::wire::Dtype::UINT64, false},
};
const TypeInfo& info(Type t) {
  for (const TypeInfo& i : kTypes)
    if (i.type == t) return i;
  return kTypes[0];
}

struct RedOpInfo {
  RedOp redop;
  const char* name;
  weft::wire::Redop wire;
};
constexpr RedOpInfo kRedOps[] = {
    {RedOp::kSum, "sum", weft::wire::Redop::SUM},
    {RedOp::kProd, "prod", weft::wire::Redop::PROD},
    {RedOp::kMin, "min", weft::wire::Redop::MIN},
    {RedOp::kMax, "max", weft::wire::Redop::MAX},
    {RedOp::kAvg, "avg", weft::wire::Redop::AVG},
    {RedOp::kPremulSum, "premul_sum", weft::wire::Redop::PREMUL_SUM},
    {RedOp::kAnd, "and", weft::wire::Redop::AND},
    {RedOp::kOr, "or", weft::wire::Redop::OR},
    {RedOp::kXor, "xor", weft::wire::Redop::XOR},
};
const RedOpInfo& info(RedOp r) {
  for (const RedOpInfo& i : kRedOps)
    if (i.redop == r) return i;
  return kRedOps[0];
}

// Collects entries; add() answers the index, which later entries name as their dependency.
class Graph {
 public:
  Graph(const Op& op, int ranks)
      : type_(wire_type(op.type)), redop_(wire_redop(op.redop)), scalar_(scalar_of(op, ranks)) {}

  int add(Wqe w, std::initializer_list<int> deps = {}) {
    std::array<int, 4> named{};
    std::size_t n = 0;
    for (int d : deps)
      if (d != kNone && std::find(named.begin(), named.begin() + n, d) == named.begin() + n) named[n++] = d;
    while (n > 2) {  // an entry names two: a NOP stands for two others
      Wqe join;
      join.opcode = WqeOp::NOP;
      const int j = add(join, {named[n - 2], named[n - 1]});
      named[n - 2] = j;
      --n;
    }
    if (n > 0) {
      w.has_dep0 = true;
      w.dep0 = static_cast<std::uint16_t>(named[0]);
    }
    if (n > 1) {
      w.has_dep1 = true;
      w.dep1 = static_cast<std::uint16_t>(named[1]);
    }
    entries_.push_back(w);
    return static_cast<int>(entries_.size()) - 1;
  }

  // The signal acts when all of it has arrived: messages of a connection complete in their order, so the
  // last piece of what is too long for one entry speaks for all.
  int write(std::uint16_t conn, std::uint64_t src, std::uint64_t dst, std::uint32_t key, std::uint64_t bytes,
            std::uint16_t sem, std::initializer_list<int> deps, std::uint32_t value = 1) {
    Wqe w;
    w.opcode = WqeOp::WRITE;
    w.conn = conn;
    w.rkey = key;
    for (; bytes > kMostBytes; bytes -= kMostBytes, src += kMostBytes, dst += kMostBytes) {
      w.src0 = src;
      w.dst = dst;
      w.length = static_cast<std::uint32_t>(kMostBytes);
      add(w, deps);
    }
    w.src0 = src;
    w.dst = dst;
    w.length = static_cast<std::uint32_t>(bytes);
    w.signal = true;
    w.sem = sem;
    w.value = value;
    return add(w, deps);
  }

  int notify(std::uint16_t conn, std::uint16_t sem, std::initializer_list<int> deps,
             std::uint32_t value = 1) {
    return write(conn, 0, 0, 0, 0, sem, deps, value);
  }

  // Waits on one semaphore follow each other, else a later one could take what an earlier one waits for.
  int wait(std::uint16_t sem, std::uint32_t value, std::initializer_list<int> deps = {}) {
    if (last_wait_.size() <= sem) last_wait_.resize(sem + 1U, kNone);
    Wqe w;
    w.opcode = WqeOp::WAIT;
    w.sem = sem;
    w.value = value;
    w.consume = true;
    int before = kNone;
    for (int d : deps) before = d;  // at most one
    return last_wait_[sem] = add(w, {last_wait_[sem], before});
  }

  // One step of a fold of what has been scaled; the last one makes an average of a sum of integers.
  int reduce(std::uint64_t dst, std::uint64_t acc, std::uint64_t next, std::uint64_t bytes, bool last,
             std::initializer_list<int> deps) {
    Wqe w = reduction(dst, acc, bytes);
    w.nsrc = 2;
    w.src1 = next;
    if (scales() || (w.redop == weft::wire::Redop::AVG && !last)) {
      w.redop = weft::wire::Redop::SUM;
      w.scalar = 0;
    }
    return add(w, deps);
  }

  // `n` sources at once, all but the own one `stride` apart, when every wait so far is over.
  int reduce_all(std::uint64_t dst, std::uint64_t own_at, int own, std::uint64_t others, std::uint64_t stride,
                 int n, std::uint64_t bytes, std::initializer_list<int> deps) {
    Wqe w = reduction(dst, own_at, bytes);
    w.nsrc = static_cast<std::uint8_t>(n);
    w.own = static_cast<std::uint8_t>(own);
    w.src1 = others;
    w.stride = static_cast<std::uint32_t>(stride);
    w.rx_sync = true;
    return add(w, deps);
  }

  // Whether each contribution is multiplied before it is added.
  bool scales() const { return weft::num::scales({.from = type_, .to = type_, .op = redop_}); }
  int scale(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    return add(reduction(dst, src, bytes));
  }

  // Of one rank: what the operation makes of a single source.
  void reduce_one(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    if (redop_ != weft::wire::Redop::PREMUL_SUM) return copy(dst, src, bytes);
    in_pieces(reduction(dst, src, bytes), bytes);
  }

  void copy(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) {
    if (dst == src) return;
    Wqe w = reduction(dst, src, bytes);
    w.redop = weft::wire::Redop::COPY;
    w.scalar = 0;
    in_pieces(w, bytes);
  }

  std::vector<Wqe> take() {
    if (entries_.empty()) entries_.emplace_back();  // a subgraph has at least one entry: a NOP
    return std::move(entries_);
  }

 private:
  // A reduction of one source, in as many entries as its length takes.
  void in_pieces(Wqe w, std::uint64_t bytes) {
    while (bytes != 0) {
      const std::uint64_t piece = std::min(bytes, kMostBytes);
      w.length = static_cast<std::uint32_t>(piece);
      add(w);
      w.src0 += piece;
      w.dst += piece;
      bytes -= piece;
    }
  }

  Wqe reduction(std::uint64_t dst, std::uint64_t src, std::uint64_t bytes) const {
    Wqe w;
    w.opcode = WqeOp::REDUCE;
    w.dtype = w.to = type_;
    w.redop = redop_;
    w.scalar = scalar_;
    w.nsrc = 1;
    w.src0 = src;
    w.dst = dst;
    w.length = static_cast<std::uint32_t>(bytes);
    return w;
  }

  weft::wire::Dtype type_;
  weft::wire::Redop redop_;
  std::uint64_t scalar_;
  std::vector<Wqe> entries_;
  std::vector<int> last_wait_;
};

struct Context {
  const Op& op;
  int me, n;
  const Target& t;
  Graph& g;
  std::uint64_t es;

  std::uint16_t conn(int p) const { return t.conn[static_cast<std::size_t>(p)]; }
  const RankMemory& mem(int p) const { return t.memory[static_cast<std::size_t>(p)]; }
  // Semaphore at this rank that peer p raises; at peer p, the one this rank raises.
  std::uint16_t from(Sem s, int p) const { return sem(s, p); }
  std::uint16_t at_peer(Sem s) const { return sem(s, me); }
  int left(int k) const { return ((me - k) % n + n) % n; }
  int right(int k) const { return (me + k) % n; }

  // Tells every peer which plan this is.
  void tell() const {
    for (int k = 1; k < n; ++k) {
      const int p = left(k);
      g.notify(conn(p), at_peer(Sem::kStart), {}, t.number);
      g.notify(conn(p), at_peer(Sem::kCheck), {}, kPlanNumbers - t.number);
    }
  }
  // Done when peer p has told that it runs this plan too.
  int same(int p) const {
    const int number = g.wait(from(Sem::kStart, p), t.number);
    return g.wait(from(Sem::kCheck, p), kPlanNumbers - t.number, {number});
  }
};

// Bytes of a rank's part of the scratch area, which an entry counts in 32 bits.
std::uint64_t slot_bytes(const Op& op, int n) {
  const std::uint64_t whole =
      op.kind == Kind::kReduceScatter
          ? op.count
          : (op.count + static_cast<std::uint64_t>(n) - 1) / static_cast<std::uint64_t>(n);
  const std::uint64_t es = size_of(op.type), most = std::numeric_limits<std::uint32_t>::max() / es * es;
  return std::min(round_up(whole * es, 64), most);
}

Range chunk_of(const Op& op, int i, int n) {
  if (op.kind == Kind::kReduceScatter) return {static_cast<std::uint64_t>(i) * op.count, op.count};
  return part(op.count, i, n);
}

// Direct: every rank sends chunk p to rank p, where one entry folds the contributions of all, by rank; for
// all_reduce that rank then writes the result into everybody's receive buffer. Slices keep wire and reducer
// busy at once. All contributions are sent ahead of the first fold: they wait for nobody, so the window of
// the engine never fills with waits while the peers wait for this rank's data, and no result that goes out
// delays a contribution that the last fold needs.
void direct_reduce(const Context& c) {
  const bool gather = c.op.kind == Kind::kAllReduce;
  const RankMemory& my = c.mem(c.me);
  const std::uint64_t slot = slot_bytes(c.op, c.n);
  const Range own = chunk_of(c.op, c.me, c.n);
  const int slices = slices_of(slot);
  const std::uint64_t own_recv =
      gather ? my.recv : my.recv - own.first * c.es;  // reduce_scatter: result at recv[0]

  std::vector<int> credit(static_cast<std::size_t>(c.n), kNone);
  auto send = [&](int s) {
    for (int k = 1; k < c.n; ++k) {
      const int p = c.right(k);
      const Range chunk = chunk_of(c.op, p, c.n), r = slice(chunk, s, slices);
      if (r.count == 0) continue;
      int& cr = credit[static_cast<std::size_t>(p)];
      if (cr == kNone) cr = c.g.wait(c.from(Sem::kCredit, p), 1);
      c.g.write(c.conn(p), my.send + r.first * c.es,
                c.mem(p).scratch + static_cast<std::uint64_t>(c.me) * slot + (r.first - chunk.first) * c.es,
                c.mem(p).scratch_key, r.count * c.es, c.at_peer(Sem::kReduce), {cr});
    }
  };

  int folded = kNone;  // the fold of the slice before: folds end in slice order, so that their signals do too
  // What this plan is is told behind what the first fold waits for, and no later: signals act in the order of
  // the messages, and the results of the first slice wait for it.
  send(0);
  c.tell();
  for (int s = 1; s < slices; ++s) send(s);
  std::vector<int> same(static_cast<std::size_t>(c.n), kNone);
  const auto same_as = [&](int p) {
    int& s = same[static_cast<std::size_t>(p)];
    return s == kNone ? s = c.same(p) : s;
  };
  for (int s = 0; s < slices; ++s) {
    const Range r = slice(own, s, slices);
    if (r.count == 0) continue;
    const std::uint64_t bytes = r.count * c.es, dst = own_recv + r.first * c.es;
    for (int k = 1; k < c.n; ++k) c.g.wait(c.from(Sem::kReduce, c.left(k)), 1);
    folded = c.g.reduce_all(dst, my.send + r.first * c.es, c.me, my.scratch + (r.first - own.first) * c.es,
                            slot, c.n, bytes, {folded});
    if (!gather) continue;
    for (int k = 1; k < c.n; ++k) {
      const int p = c.right(k);
      c.g.write(c.conn(p), dst, c.mem(p).recv + r.first * c.es, c.mem(p).recv_key, bytes,
                c.at_peer(Sem::kGather), {folded, same_as(p)});
    }
  }
  // The fold of the last slice ends after all others: every peer's part of the scratch area has been read.
  for (int k = 1; folded != kNone && k < c.n; ++k)
    c.g.notify(c.conn(c.left(k)), c.at_peer(Sem::kCredit), {folded});
  for (int k = 1; k < c.n; ++k) same_as(c.right(k));
  if (!gather) return;
  for (int k = 1; k < c.n; ++k) {
    const int p = c.left(k);
    std::uint32_t parts = 0;
    for (int s = 0; s < slices; ++s) parts += slice(chunk_of(c.op, p, c.n), s, slices).count != 0;
    if (parts != 0) c.g.wait(c.from(Sem::kGather, p), parts);
  }
}

// Ring: in step k rank r sends chunk r-k on to r+1, which adds its own part; after n-1 steps rank r holds
// chunk r+1 whole and passes it round. Every slice is a chain of its own. Step k's data lands in slot k of
// the scratch area. Where contributions are scaled, each rank first scales its own into its receive buffer
// and goes on as if in place: a step adds what the ranks before have scaled to what this one has.
void ring_reduce(const Context& c) {
  const RankMemory& my = c.mem(c.me);
  const int next = c.right(1), prev = c.left(1);
  const RankMemory& to = c.mem(next);
  const std::uint64_t slot = slot_bytes(c.op, c.n);
  const int slices = slices_of(slot);
  c.tell();
  const int credit = c.g.wait(c.from(Sem::kCredit, next), 1);
  const std::uint64_t mine = c.g.scales() ? my.recv : my.send;
  const auto scaled = [&](Range r) {
    return c.g.scales() ? c.g.scale(my.recv + r.first * c.es, my.send + r.first * c.es, r.count * c.es)
                        : kNone;
  };
  std::vector<int> ready(static_cast<std::size_t>(slices),
                         kNone);  // slice s of the chunk to pass on is in place
  int folded = kNone;

  for (int k = 0; k < c.n - 1; ++k) {
    const int chunk = c.left(k);
    for (int s = 0; s < slices; ++s) {
      const Range whole = chunk_of(c.op, chunk, c.n), r = slice(whole, s, slices);
      if (r.count == 0) continue;
      if (k == 0) ready[static_cast<std::size_t>(s)] = scaled(r);
      const std::uint64_t src = (k == 0 ? mine : my.recv) + r.first * c.es;
      c.g.write(c.conn(next), src,
                to.scratch + static_cast<std::uint64_t>(k) * slot + (r.first - whole.first) * c.es,
                to.scratch_key, r.count * c.es, c.at_peer(Sem::kReduce),
                {credit, ready[static_cast<std::size_t>(s)]});
    }
    const int in = c.left(k + 1);
    for (int s = 0; s < slices; ++s) {
      const Range whole = chunk_of(c.op, in, c.n), r = slice(whole, s, slices);
      ready[static_cast<std::size_t>(s)] = kNone;
      if (r.count == 0) continue;
      const int own = scaled(r), arrived = c.g.wait(c.from(Sem::kReduce, prev), 1);
      folded = c.g.reduce(my.recv + r.first * c.es,
                          my.scratch + static_cast<std::uint64_t>(k) * slot + (r.first - whole.first) * c.es,
                          mine + r.first * c.es, r.count * c.es, k == c.n - 2, {arrived, folded, own});
      ready[static_cast<std::size_t>(s)] = folded;
    }
  }
  c.g.notify(c.conn(prev), c.at_peer(Sem::kCredit), {folded});
  const int same = c.same(next);
  for (int k = 0; k < c.n - 1; ++k) {
    const int chunk = c.left(k - 1);  // me+1, me, me-1 ...
    for (int s = 0; s < slices; ++s) {
      const Range r = slice(chunk_of(c.op, chunk, c.n), s, slices);
      if (r.count == 0) continue;
      c.g.write(c.conn(next), my.recv + r.first * c.es, to.recv + r.first * c.es, to.recv_key, r.count * c.es,
                c.at_peer(Sem::kGather), {ready[static_cast<std::size_t>(s)], same});
    }
    for (int s = 0; s < slices; ++s) {
      const Range r = slice(chunk_of(c.op, c.left(k), c.n), s, slices);
      // Behind the last fold: else this slice could be passed on ahead of one whose fold is late, and the
      // next rank, which counts arrivals, would take one for the other.
      ready[static_cast<std::size_t>(s)] =
          r.count == 0 ? kNone : c.g.wait(c.from(Sem::kGather, prev), 1, {folded});
    }
  }
  for (int k = 2; k < c.n; ++k) c.same(c.right(k));
}

// Personalised exchange: rank `s` sends `bytes(s, r)` bytes from src(s, r) to dst(s, r). Nobody writes before
// the receiver told that it has started too: from then on its buffer may be written. Barrier, and whatever
// moves no data, is the exchange of those words alone.
template <class Bytes, class Src, class Dst>
void exchange(const Context& c, Bytes bytes, Src src, Dst dst) {
  c.tell();
  for (int k = 1; k < c.n; ++k) {
    const int p = c.right(k);
    const int same = c.same(p);
    if (bytes(c.me, p) == 0) continue;
    c.g.write(c.conn(p), src(c.me, p), dst(c.me, p), c.mem(p).recv_key, bytes(c.me, p),
              c.at_peer(Sem::kGather), {same});
  }
  c.g.copy(dst(c.me, c.me), src(c.me, c.me), bytes(c.me, c.me));
  for (int k = 1; k < c.n; ++k) {
    const int p = c.left(k);
    if (bytes(p, c.me) != 0) c.g.wait(c.from(Sem::kGather, p), 1);
  }
}

void barrier(const Context& c) {
  c.tell();
  for (int k = 1; k < c.n; ++k) c.same(c.right(k));
}

std::uint64_t sum_row(const Op& op, int sender, int upto) {
  std::uint64_t s = 0;
  for (int r = 0; r < upto; ++r)
    s += op.send_counts[static_cast<std::size_t>(sender)][static_cast<std::size_t>(r)];
  return s;
}

std::uint64_t sum_col(const Op& op, int receiver, int upto) {
  std::uint64_t s = 0;
  for (int r = 0; r < upto; ++r)
    s += op.send_counts[static_cast<std::size_t>(r)][static_cast<std::size_t>(receiver)];
  return s;
}

bool reduces(Kind k) {
  return k == Kind::kAllReduce || k == Kind::kReduceScatter;
}

bool is_signed(Type t) {
  return t == Type::kInt8 || t == Type::kInt16 || t == Type::kInt32 || t == Type::kInt64;
}

}  // namespace

const char* name(Kind k) {
  switch (k) {
    case Kind::kAllReduce: return "all_reduce";
    case Kind::kReduceScatter: return "reduce_scatter";
    case Kind::kAllGather: return "all_gather";
    case Kind::kAllToAll: return "all_to_all";
    case Kind::kAllToAllV: return "all_to_allv";
    case Kind::kBroadcast: return "broadcast";
    case Kind::kBarrier: return "barrier";
  }
  return "?";
}
const char* name(Type t) {
  return info(t).name;
}
const char* name(RedOp r) {
  return info(r).name;
}
const char* name(Sem s) {
  switch (s) {
    case Sem::kReduce: return "reduce";
    case Sem::kGather: return "gather";
    case Sem::kCredit: return "credit";
    case Sem::kStart: return "start";
    case Sem::kCheck: return "check";
  }
  return "?";
}
const char* name(Algo a) {
  switch (a) {
    case Algo::kAuto: return "auto";
    case Algo::kDirect: return "direct";
    case Algo::kRing: return "ring";
  }
  return "?";
}

std::size_t size_of(Type t) {
  return std::size_t{1} << (static_cast<unsigned>(wire_type(t)) & 3);
}
bool is_float(Type t) {
  return info(t).is_float;
}
weft::wire::Dtype wire_type(Type t) {
  return info(t).wire;
}
weft::wire::Redop wire_redop(RedOp r) {
  return info(r).wire;
}
std::span<const Type> all_types() {
  static constexpr auto all = [] {
    std::array<Type, std::size(kTypes)> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = kTypes[i].type;
    return out;
  }();
  return all;
}
std::span<const RedOp> all_redops() {
  static constexpr auto all = [] {
    std::array<RedOp, std::size(kRedOps)> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = kRedOps[i].redop;
    return out;
  }();
  return all;
}
std::uint64_t scalar_of(const Op& op, int ranks) {
  if (op.redop != RedOp::kAvg) return op.scalar;
  return is_float(op.type) ? scalar_bits(op.type, 1.0 / ranks) : static_cast<std::uint64_t>(ranks);
}
std::uint64_t scalar_bits(Type t, double x) {
  if (t == Type::kFloat64) return std::bit_cast<std::uint64_t>(x);
  if (is_float(t)) return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
}

std::string check_scalar(Type t, double x) {
  if (is_float(t)) {
    const double most = t == Type::kFloat64 ? std::numeric_limits<double>::max()
                                            : static_cast<double>(std::numeric_limits<float>::max());
    return std::abs(x) <= most ? std::string() : fmt::format("a finite factor for {}", name(t));
  }
  constexpr double kWhole = 9007199254740992;  // 2^53: whole numbers beyond are not exact
  const auto bits = static_cast<int>(8 * size_of(t));
  const double low = is_signed(t) ? std::max(-kWhole, -std::ldexp(1, bits - 1)) : 0;
  const double high = std::min(kWhole, std::ldexp(1, is_signed(t) ? bits - 1 : bits) - 1);
  if (x == std::trunc(x) && x >= low && x <= high) return {};
  return fmt::format("a whole number from {:.0f} to {:.0f} for {}", low, high, name(t));
}

namespace {
// What the operation does not mean for the type.
std::string check_reduction(const Op& op) {
  const bool logic = op.redop == RedOp::kAnd || op.redop == RedOp::kOr || op.redop == RedOp::kXor;
  if (logic && is_float(op.type))
    return fmt::format("type: {} has no {}, expected an integer type for {}", name(op.type), name(op.redop),
                       name(op.redop));
  if (op.redop == RedOp::kPremulSum && !is_float(op.type) && size_of(op.type) < 8) {
    const auto bits = static_cast<unsigned>(8 * size_of(op.type));
    const auto x = static_cast<std::int64_t>(op.scalar);
    const std::int64_t low = is_signed(op.type) ? -(std::int64_t{1} << (bits - 1)) : 0;
    const std::int64_t high = (std::int64_t{1} << (is_signed(op.type) ? bits - 1 : bits)) - 1;
    if (x < low || x > high)
      return fmt::format("scalar: {}, expected a whole number from {} to {} for {}", x, low, high,
                         name(op.type));
  }
  return {};
}
}  // namespace

std::string check(const Op& op, int ranks) {
  if (ranks < 1 || ranks > kMaxRanks) return fmt::format("ranks: {}, expected 1 to {}", ranks, kMaxRanks);
  if (reduces(op.kind))
    if (std::string why = check_reduction(op); !why.empty()) return why;
  if (op.kind == Kind::kBroadcast && (op.root < 0 || op.root >= ranks))
    return fmt::format("root: {}, expected 0 to {}", op.root, ranks - 1);
  if (op.in_place && (op.kind == Kind::kAllToAll || op.kind == Kind::kAllToAllV))
    return fmt::format("in_place: true, but {} needs separate buffers", name(op.kind));
  if (op.kind != Kind::kAllReduce && op.algo == Algo::kRing)
    return fmt::format("algo: ring, but {} has no ring form", name(op.kind));
  if (op.kind == Kind::kAllToAllV) {
    const auto n = static_cast<std::size_t>(ranks);
    if (op.send_counts.size() != n)
      return fmt::format("send_counts: {} rows, expected one for each of {} ranks", op.send_counts.size(),
                         ranks);
    for (std::size_t r = 0; r < n; ++r)
      if (op.send_counts[r].size() != n)
        return fmt::format("send_counts[{}]: {} counts, expected one for each of {} ranks", r,
                           op.send_counts[r].size(), ranks);
  } else if (!op.send_counts.empty()) {
    return fmt::format("send_counts: given for {}, which takes count", name(op.kind));
  }
  const std::uint64_t limit = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t largest = op.count;
  for (const auto& row : op.send_counts)
    for (std::uint64_t v : row) largest = std::max(largest, v);
  if (largest > limit / size_of(op.type))
    return fmt::format("count: {} elements of {} bytes, expected less than 4 GiB to one peer", largest,
                       size_of(op.type));
  return {};
}

Sizes sizes(const Op& op, int rank, int ranks) {
  const std::uint64_t es = size_of(op.type), n = static_cast<std::uint64_t>(ranks), one = op.count * es;
  const std::uint64_t scratch = reduces(op.kind) && ranks > 1 ? n * slot_bytes(op, ranks) : 0;
  switch (op.kind) {
    case Kind::kAllReduce: return {one, one, scratch};
    case Kind::kReduceScatter: return {n * one, one, scratch};
    case Kind::kAllGather: return {one, n * one, 0};
    case Kind::kAllToAll: return {n * one, n * one, 0};
    case Kind::kAllToAllV: return {sum_row(op, rank, ranks) * es, sum_col(op, rank, ranks) * es, 0};
    case Kind::kBroadcast: return {rank == op.root ? one : 0, one, 0};
    case Kind::kBarrier: return {};
  }
  return {};
}

std::uint64_t in_place_offset(const Op& op, int rank) {
  const std::uint64_t one = op.count * size_of(op.type);
  if (op.kind == Kind::kAllGather || op.kind == Kind::kReduceScatter)
    return static_cast<std::uint64_t>(rank) * one;
  return 0;
}

Algo choose(const Op& op, int ranks) {
  if (op.algo != Algo::kAuto) return op.algo;
  (void)ranks;
  return Algo::kDirect;  // two steps whatever the rank count; the fabric carries all pairs at once
}

weft::Result<std::vector<Wqe>> compile(const Op& op, int rank, int ranks, const Target& target) {
  if (std::string why = check(op, ranks); !why.empty()) return weft::Status::error(why);
  if (rank < 0 || rank >= ranks)
    return weft::Status::error(fmt::format("rank: {}, expected 0 to {}", rank, ranks - 1));
  const auto n = static_cast<std::size_t>(ranks);
  if (target.memory.size() != n || target.conn.size() != n)
    return weft::Status::error(fmt::format("target: {} memories and {} connections, expected {} of each",
                                           target.memory.size(), target.conn.size(), ranks));
  if (target.number == 0 || target.number >= kPlanNumbers)
    return weft::Status::error(fmt::format("number: {}, expected 1 to {}", target.number, kPlanNumbers - 1));

  Graph g(op, ranks);
  const Context c{op, rank, ranks, target, g, size_of(op.type)};
  const RankMemory& my = c.mem(rank);
  const std::uint64_t one = op.count * c.es;
  switch (op.kind) {
    case Kind::kAllReduce:
      if (ranks == 1)
        g.reduce_one(my.recv, my.send, one);
      else if (op.count == 0)
        barrier(c);
      else if (choose(op, ranks) == Algo::kRing)
        ring_reduce(c);
      else
        direct_reduce(c);
      break;
    case Kind::kReduceScatter:
      if (ranks == 1)
        g.reduce_one(my.recv, my.send, one);
      else if (op.count == 0)
        barrier(c);
      else
        direct_reduce(c);
      break;
    case Kind::kAllGather:
      exchange(
          c, [&](int, int) { return one; }, [&](int s, int) { return c.mem(s).send; },
          [&](int s, int r) { return c.mem(r).recv + static_cast<std::uint64_t>(s) * one; });
      break;
    case Kind::kAllToAll:
      exchange(
          c, [&](int, int) { return one; },
          [&](int s, int r) { return c.mem(s).send + static_cast<std::uint64_t>(r) * one; },
          [&](int s, int r) { return c.mem(r).recv + static_cast<std::uint64_t>(s) * one; });
      break;
    case Kind::kAllToAllV:
      exchange(
          c,
          [&](int s, int r) {
            return op.send_counts[static_cast<std::size_t>(s)][static_cast<std::size_t>(r)] * c.es;
          },
          [&](int s, int r) { return c.mem(s).send + sum_row(op, s, r) * c.es; },
          [&](int s, int r) { return c.mem(r).recv + sum_col(op, r, s) * c.es; });
      break;
    case Kind::kBroadcast:
      exchange(
          c, [&](int s, int) { return s == op.root ? one : 0; }, [&](int s, int) { return c.mem(s).send; },
          [&](int, int r) { return c.mem(r).recv; });
      break;
    case Kind::kBarrier: barrier(c); break;
  }
  std::vector<Wqe> out = g.take();
  if (out.size() > std::numeric_limits<std::uint16_t>::max())
    return weft::Status::error(fmt::format("plan: {} entries, expected at most 65535", out.size()));
  return out;
}

std::vector<Fold> fold_order(const Op& op, int ranks) {
  std::vector<Fold> out;
  const bool ring = op.kind == Kind::kAllReduce && choose(op, ranks) == Algo::kRing;
  for (int i = 0; i < ranks; ++i) {
    const Range r = chunk_of(op, i, ranks);
    if (r.count == 0) continue;
    Fold f{r.first, r.count, {}, !ring};
    for (int k = 0; k < ranks; ++k) f.order.push_back(ring ? (i + k) % ranks : k);
    out.push_back(std::move(f));
  }
  return out;
}

}  // namespace wccl
