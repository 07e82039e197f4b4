// SPDX-License-Identifier: Apache-2.0
//
// weft_crc32_beat, weft_crc32_undo and the constants of weft_crc32_pkg against zlib and against frames seen
// on a wire.
#include <zlib.h>

#include <cstring>
#include <vector>

#include "Vcrc_flat.h"
#include "weft_test.h"

namespace {

using weft::test::Bench;
using weft::test::Rng;
using weft::test::seed;

using Bytes = std::vector<uint8_t>;
constexpr unsigned kBeat = 64;

/// The CRC of eight bytes of ones and then the message: what an ICRC is.
uint32_t zlib_crc(const Bytes& message) {
  Bytes all(8, 0xff);
  all.insert(all.end(), message.begin(), message.end());
  return static_cast<uint32_t>(::crc32(0, all.data(), static_cast<uInt>(all.size())));
}

struct Answer {
  uint32_t crc;
  bool good;
};

/// Puts `message` at byte `front` of the first beat, gaps of random length between beats.
Answer run(Bench<Vcrc_flat>& b, const Bytes& message, unsigned front, Rng* gaps) {
  Bytes text(front, 0);
  text.insert(text.end(), message.begin(), message.end());
  REQUIRE(text.size() % 4 == 2);
  const auto end_word = static_cast<uint8_t>((text.size() - 2) / 4 % 16);
  const size_t beats = (text.size() + kBeat - 1) / kBeat;
  text.resize(beats * kBeat);
  b.eval();
  for (unsigned i = 0; i < 4; ++i) text[front + i] ^= static_cast<uint8_t>(b->seed_o >> (8 * i));
  Answer answer{};
  unsigned answers = 0;
  for (size_t sent = 0, idle = 0; answers < 2;) {
    REQUIRE(idle < 8);
    b->valid_i = sent < beats && !(gaps && gaps->below(3) == 0);
    if (b->valid_i) {
      std::memcpy(&b->data_i[0], text.data() + sent * kBeat, kBeat);
      b->first_i = sent == 0;
      b->last_i = sent + 1 == beats;
      b->end_word_i = end_word;
      ++sent;
    } else {
      idle += sent == beats;
      b->first_i = b->last_i = 1;  // mean nothing without valid
    }
    b.eval();
    if (b->good_valid_o) {
      answer.good = b->good_o;
      ++answers;
    }
    if (b->crc_valid_o) {
      answer.crc = b->crc_o;
      ++answers;
    }
    b.tick();
  }
  return answer;
}

Bytes hex(const char* text) {
  Bytes out;
  unsigned value = 0, digits = 0;
  for (const char* c = text; *c; ++c) {
    if (*c == ' ') continue;
    value = value << 4 | static_cast<unsigned>(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    if (++digits % 2 == 0) out.push_back(static_cast<uint8_t>(value));
  }
  return out;
}

}  // namespace

TEST_CASE("crc: any length, any number of beats, with and without gaps, is zlib's", "[crc][random]") {
  Bench<Vcrc_flat> b("crc");
  b.reset();
  Rng rng(seed(), 1), gaps(seed(), 2);
  for (unsigned round = 0; round < 3000; ++round) {
    const unsigned front = static_cast<unsigned>(rng.below(61));
    size_t end = (front + 4 + 3) / 4 * 4 + 2 + 4 * rng.below(round % 4 == 0 ? 1024 : 40);
    Bytes message(end - front);
    rng.fill(message);
    const uint32_t want = zlib_crc(message);
    Answer answer = run(b, message, front, round % 2 ? &gaps : nullptr);
    b.progress();
    INFO("length " << message.size() << " from byte " << front);
    REQUIRE(answer.crc == want);
    REQUIRE(!answer.good);
    // The receiver's side: the same message with its CRC behind it, and with one bit of it wrong.
    for (unsigned i = 0; i < 4; ++i) message.push_back(static_cast<uint8_t>(want >> (8 * i)));
    REQUIRE(run(b, message, front, round % 2 ? &gaps : nullptr).good);
    message[rng.below(message.size())] ^= static_cast<uint8_t>(1u << rng.below(8));
    REQUIRE(!run(b, message, front, nullptr).good);
  }
}

TEST_CASE("crc: frames with a known ICRC", "[crc]") {
  Bench<Vcrc_flat> b("crc");
  b.reset();
  // From the IP header on; the fields a switch may change are already ones. First a congestion notification
  // captured from a ConnectX-4 Lx, then two RC writes made by scapy, one of them with a pad byte.
  const struct {
    const char* covered;
    uint32_t icrc;
  } frames[] = {
      {"45ff003c718c4000ff11ffff0a0011010a001201 000012b70028ffff 8100ffffff00011800000000"
       "00000000000000000000000000000000",
       0x2a00fd82},
      {"45ff004412344000ff11ffff0a0000010a000002 c12312b70030ffff 0a40ffffff12345680fffffe"
       "0000001122334400deadbeef00000008 0001020304050607",
       0x05585b7f},
      {"45ff004012344000ff11ffff0a0000010a000002 c12312b7002cffff 0a50ffffff12345680fffffe"
       "0000001122334400deadbeef00000003 61626300",
       0xca32fc82},
  };
  for (const auto& frame : frames) REQUIRE(run(b, hex(frame.covered), 14, nullptr).crc == frame.icrc);
}
