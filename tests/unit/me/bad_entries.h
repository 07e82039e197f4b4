// SPDX-License-Identifier: Apache-2.0
//
// Every kind of flaw that docs/me.md lists, and its closest good relative: what the firmware and the engine's
// model must say of them.
#pragma once

#include <functional>

#include "graphs.h"

namespace me {

struct Bad {
  const char* what;
  std::function<void(Wqe&)> make;
  const char* status;  // "OK": must be accepted
};

inline Wqe good_write() {
  return write(0, 1);
}
inline Wqe good_reduce() {
  Wqe w = reduce(0, 1);
  w.dtype = w.to = Dtype::FLOAT32;
  w.redop = Redop::SUM;
  w.nsrc = 2;
  w.length = 256;
  return w;
}

inline const uint64_t kMax = ~uint64_t{0};

// What set_up() registers ends here:
inline const uint64_t kReadEnd = kReadBase + kRegionBytes, kWriteEnd = kWriteBase + kRegionBytes,
                      kBothEnd = kBothBase + kBothBytes;

inline const Bad kCases[] = {
    {"NOP", [](Wqe& w) { w = nop(); }, "OK"},
    {"unknown opcode", [](Wqe& w) { w.opcode = static_cast<WqeOp>(9); }, "BAD_OPCODE"},
    {"opcode 255", [](Wqe& w) { w.opcode = static_cast<WqeOp>(255); }, "BAD_OPCODE"},
    {"SEND", [](Wqe& w) { w.opcode = WqeOp::SEND; }, "BAD_OPCODE"},
    {"RECV", [](Wqe& w) { w.opcode = WqeOp::RECV; }, "BAD_OPCODE"},
    {"READ", [](Wqe& w) { w.opcode = WqeOp::READ; }, "BAD_OPCODE"},
    {"CALL", [](Wqe& w) { w.opcode = WqeOp::CALL; }, "BAD_OPCODE"},
    {"indirect", [](Wqe& w) { w.indirect = true; }, "BAD_FLAGS"},
    {"signal on REDUCE", [](Wqe& w) { w = good_reduce(), w.signal = true; }, "BAD_FLAGS"},
    {"signal on WAIT", [](Wqe& w) { w = wait(0, 0, false), w.signal = true; }, "BAD_FLAGS"},
    {"consume on WRITE", [](Wqe& w) { w.consume = true; }, "BAD_FLAGS"},
    {"consume on SET", [](Wqe& w) { w = set(0, 1), w.consume = true; }, "BAD_FLAGS"},
    {"consume on NOP", [](Wqe& w) { w = nop(), w.consume = true; }, "BAD_FLAGS"},
    {"reserved, lowest bit", [](Wqe& w) { w.resv0 = 1; }, "BAD_FLAGS"},
    {"reserved, highest bit", [](Wqe& w) { w.resv0 = 1 << 4; }, "BAD_FLAGS"},
    {"dep0 on itself", [](Wqe& w) { w.has_dep0 = true, w.dep0 = 5; }, "BAD_DEP"},
    {"dep0 on the next", [](Wqe& w) { w.has_dep0 = true, w.dep0 = 6; }, "BAD_DEP"},
    {"dep0 beyond the end", [](Wqe& w) { w.has_dep0 = true, w.dep0 = 0xffff; }, "BAD_DEP"},
    {"dep1 on itself", [](Wqe& w) { w.has_dep1 = true, w.dep1 = 5; }, "BAD_DEP"},
    {"deps on the entry before", [](Wqe& w) { w.has_dep0 = w.has_dep1 = true, w.dep0 = w.dep1 = 4; }, "OK"},
    {"dep fields without their flags", [](Wqe& w) { w.dep0 = w.dep1 = 0xffff; }, "OK"},
    {"dtype", [](Wqe& w) { w = good_reduce(), w.dtype = w.to = static_cast<Dtype>(14); }, "BAD_TYPE"},
    {"dtype 255", [](Wqe& w) { w = good_reduce(), w.dtype = w.to = static_cast<Dtype>(255); }, "BAD_TYPE"},
    {"to", [](Wqe& w) { w = good_reduce(), w.to = Dtype::INT32; }, "BAD_TYPE"},
    {"redop", [](Wqe& w) { w = good_reduce(), w.redop = static_cast<Redop>(10); }, "BAD_REDOP"},
    {"exact fp32", [](Wqe& w) { w = good_reduce(), w.exact = true; }, "BAD_FLAGS"},
    {"no source", [](Wqe& w) { w = good_reduce(), w.nsrc = 0; }, "BAD_SOURCES"},
    {"65 sources", [](Wqe& w) { w = good_reduce(), w.nsrc = 65; }, "BAD_SOURCES"},
    {"own of no source", [](Wqe& w) { w = good_reduce(), w.own = 2; }, "BAD_SOURCES"},
    {"COPY of two", [](Wqe& w) { w = good_reduce(), w.redop = Redop::COPY; }, "BAD_SOURCES"},
    {"COPY of one", [](Wqe& w) { w = good_reduce(), w.redop = Redop::COPY, w.nsrc = 1; }, "OK"},
    {"SUM of one", [](Wqe& w) { w = good_reduce(), w.nsrc = 1; }, "OK"},
    {"length off", [](Wqe& w) { w = good_reduce(), w.length = 258; }, "BAD_ALIGN"},
    {"src0 off", [](Wqe& w) { w = good_reduce(), w.src0 += 2; }, "BAD_ALIGN"},
    {"src1 off", [](Wqe& w) { w = good_reduce(), w.src1 += 1; }, "BAD_ALIGN"},
    {"dst off", [](Wqe& w) { w = good_reduce(), w.dst += 2; }, "BAD_ALIGN"},
    {"src1 off, not used", [](Wqe& w) { w = good_reduce(), w.src1 += 1, w.nsrc = 1; }, "OK"},
    {"bf16 at 2",
     [](Wqe& w) { w = good_reduce(), w.dtype = w.to = Dtype::BFLOAT16, w.src0 += 2, w.length = 258; }, "OK"},
    {"bf16 at 1", [](Wqe& w) { w = good_reduce(), w.dtype = w.to = Dtype::BFLOAT16, w.src0 += 1; },
     "BAD_ALIGN"},
    {"int32 at 2", [](Wqe& w) { w = good_reduce(), w.dtype = w.to = Dtype::INT32, w.dst += 2; }, "BAD_ALIGN"},
    {"WRITE at any byte", [](Wqe& w) { w.src0 += 1, w.dst += 3, w.length = 5; }, "OK"},
    {"WRITE longest", [](Wqe& w) { w.src0 = kReadBase, w.length = weft::wire::kMaxWqeLength; }, "OK"},
    {"WRITE longer", [](Wqe& w) { w.src0 = kReadBase, w.length = weft::wire::kMaxWqeLength + 1; },
     "BAD_LENGTH"},
    {"REDUCE longer", [](Wqe& w) { w = good_reduce(), w.length = weft::wire::kMaxWqeLength + 4; },
     "BAD_LENGTH"},
    {"remote wrap", [](Wqe& w) { w.dst = kMax - w.length + 2; }, "BAD_LENGTH"},
    {"remote end", [](Wqe& w) { w.dst = kMax - w.length; }, "OK"},
    {"local wrap", [](Wqe& w) { w.src0 = kMax - w.length + 2; }, "BAD_LENGTH"},
    {"no such connection", [](Wqe& w) { w.conn = kConnsUsed; }, "BAD_CONN"},
    {"connection out of range", [](Wqe& w) { w.conn = kNumConns; }, "BAD_CONN"},
    {"connection 65535", [](Wqe& w) { w.conn = 0xffff; }, "BAD_CONN"},
    {"connection of port 1 alone", [](Wqe& w) { w.conn = 4; }, "OK"},
    {"WAIT semaphore", [](Wqe& w) { w = wait(kNumSems, 0, false); }, "BAD_SEM"},
    {"SET semaphore", [](Wqe& w) { w = set(0xffff, 0); }, "BAD_SEM"},
    {"last semaphore", [](Wqe& w) { w = set(kNumSems - 1, 0); }, "OK"},
    {"semaphore of the peer", [](Wqe& w) { w.signal = true, w.sem = 0xffff; }, "OK"},
    {"src0 before the region", [](Wqe& w) { w.src0 = kReadBase - 1; }, "BAD_ADDR"},
    {"src0 in no region", [](Wqe& w) { w.src0 = 0; }, "BAD_ADDR"},
    {"src0 in another page", [](Wqe& w) { w.src0 += uint64_t{1} << 40; }, "BAD_ADDR"},
    {"src0 to the end", [](Wqe& w) { w.src0 = kReadEnd - w.length; }, "OK"},
    {"src0 past the end", [](Wqe& w) { w.src0 = kReadEnd - w.length + 1; }, "BAD_ADDR"},
    {"src0 at the end", [](Wqe& w) { w.src0 = kReadEnd; }, "BAD_ADDR"},
    {"src0 may not be read", [](Wqe& w) { w.src0 = kWriteBase; }, "BAD_ADDR"},
    {"nothing anywhere", [](Wqe& w) { w.src0 = 12345, w.length = 0; }, "OK"},
    {"REDUCE of nothing", [](Wqe& w) { w = good_reduce(), w.src0 = w.src1 = w.dst = w.length = 0; }, "OK"},
    {"dst may not be written", [](Wqe& w) { w = good_reduce(), w.dst = kReadBase; }, "BAD_ADDR"},
    {"dst past the end", [](Wqe& w) { w = good_reduce(), w.dst = kWriteEnd - w.length + 4; }, "BAD_ADDR"},
    {"dst to the end", [](Wqe& w) { w = good_reduce(), w.dst = kWriteEnd - w.length; }, "OK"},
    {"src1 in no region", [](Wqe& w) { w = good_reduce(), w.src1 = 0x1000; }, "BAD_ADDR"},
    {"src1 in no region, not used", [](Wqe& w) { w = good_reduce(), w.src1 = 0x1000, w.nsrc = 1; }, "OK"},
    {"src1 past the end", [](Wqe& w) { w = good_reduce(), w.src1 = kReadEnd - 4; }, "BAD_ADDR"},
    {"in place, both rights", [](Wqe& w) { w = good_reduce(), w.src0 = w.dst = kBothBase; }, "OK"},
    {"across 4 GB", [](Wqe& w) { w = good_reduce(), w.src0 = kBothBase + 0xff80; }, "OK"},
    {"across 4 GB and past the end", [](Wqe& w) { w.src0 = kBothBase + 8, w.length = kBothBytes; },
     "BAD_ADDR"},
    {"end behind 4 GB", [](Wqe& w) { w.src0 = kBothEnd - w.length; }, "OK"},
    {"past the end behind 4 GB", [](Wqe& w) { w.src0 = kBothEnd - w.length + 1; }, "BAD_ADDR"},
};

}  // namespace me
