// SPDX-License-Identifier: Apache-2.0
// The generated C++ header and SystemVerilog package agree with each other and with bytes written by hand,
// and the generator refuses descriptions that make no sense.
#include <unistd.h>

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "Vwire_fields.h"
#include "frames.h"
#include "weft_cfg.h"

using namespace weft::wire;
using namespace weft::test;

namespace {

struct Run {
  int status;
  std::string text;
};

Run run(const std::string& command) {
  Run r{-1, ""};
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) r.text.append(buffer, n);
  const int status = pclose(pipe);
  r.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return r;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

// Writes wire.yaml with one piece of text replaced into the build folder and runs the generator on it.
// Tests of one program run side by side, each in a process of its own.
std::filesystem::path own_dir() {
  return std::filesystem::path(WEFT_BUILD_DIR) / "tests" / ("wire_gen." + std::to_string(getpid()));
}

Run generate_with(const std::string& what, const std::string& by) {
  const auto dir = own_dir();
  std::filesystem::create_directories(dir);
  std::string text = read_file(std::filesystem::path(WEFT_SOURCE_DIR) / "sw/wire/wire.yaml");
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), by);
  std::ofstream(dir / "wire.yaml") << text;
  return run(std::string(WEFT_PYTHON) + " " + WEFT_SOURCE_DIR + "/sw/wire/gen.py --out " +
             (dir / "out").string() + " --wire " + (dir / "wire.yaml").string());
}

}  // namespace

TEST_CASE("wire: a work-queue entry is these bytes", "[wire][smoke]") {
  Wqe w{};
  w.opcode = WqeOp::REDUCE;
  w.has_dep1 = true;
  w.consume = true;
  w.dep0 = 0x0201;
  w.dep1 = 0x0403;
  w.dtype = Dtype::BFLOAT16;
  w.redop = Redop::PREMUL_SUM;
  w.length = 0x08070605;
  w.conn = 0x0a09;
  w.sem = 0x0c0b;
  w.src0 = 0x1716151413121110;
  w.src1 = 0x1f1e1d1c1b1a1918;
  w.dst = 0x2726252423222120;
  w.rkey = 0x33323130;
  w.value = 0x37363534;
  w.nsrc = 0x38;
  w.to = Dtype::FLOAT32;
  w.propagate_nan = true;
  w.exact = true;
  w.own = 0x39;
  w.stride = 0x3d3c3b3a;
  w.scalar = 0x4746454443424140;
  std::array<uint8_t, Wqe::kBytes> bytes;
  bytes.fill(0xee);
  w.pack(bytes.data());
  CHECK(std::vector<uint8_t>(bytes.begin(), bytes.end()) ==
        hex("02 42 0102 0304 0d 05 05060708 090a 0b0c 1011121314151617 18191a1b1c1d1e1f 2021222324252627"
            "30313233 34353637 38 0a 05 39 3a3b3c3d 4041424344454647"));
}

TEST_CASE("wire: headers are these bytes (case rtl 30)", "[wire][smoke]") {
  const auto bytes_of = [](const auto& h) {
    std::vector<uint8_t> v(h.kBytes, 0xee);
    h.pack(v.data());
    return v;
  };
  Bth b = make_bth(Opcode::WRITE_SIGNAL, 0x010203, 0x040506);
  b.pad = 3;
  b.mig = true;
  b.ackreq = true;
  CHECK(bytes_of(b) == hex("c4 70 ffff 00 010203 80 040506"));
  CHECK(bytes_of(Wth{1, 2, 0x0304, 0x05060708}) == hex("01 02 0304 05060708"));
  Wdh d{};
  d.retx = true;
  d.version = 1;
  d.stream = 0x0203;
  d.va = 0x0405060708090a0b;
  d.rkey = 0x0c0d0e0f;
  d.msg_no = 0x1011;
  d.sem = 0x1213;
  d.msg_len = 0x14151617;
  d.value = 0x18191a1b;
  CHECK(bytes_of(d) == hex("40 01 0203 0405060708090a0b 0c0d0e0f 1011 1213 14151617 18191a1b"));
  Wah a{};
  a.hist_words = 8;
  a.base = 0x010203;
  a.ce_bytes = 0x04050607;
  a.rx_bytes = 0x08090a0b;
  a.echo = 0x0c0d0e0f;
  a.share = 0x10111213;
  a.credits = 0x1415;
  a.status = 0x16;
  a.version = 0x17;
  CHECK(bytes_of(a) == hex("80 010203 04050607 08090a0b 0c0d0e0f 10111213 1415 16 17"));
}

TEST_CASE("wire: SystemVerilog finds every field where C++ put it", "[wire][random]") {
  Rng rng;
  Bench<Vwire_fields> bench("wire_fields");
  const auto put_record = [&bench](const auto& record) {
    std::array<uint8_t, 64> bytes;
    record.pack(bytes.data());
    for (size_t i = 0; i < 16; ++i)
      bench->record_i[i] = static_cast<uint32_t>(detail::get_le<4>(&bytes[4 * i]));
    bench.eval();
  };
  const auto put_header = [](auto& port, const Frame& f, size_t bytes) {
    for (size_t i = 0; i < (bytes + 3) / 4; ++i) port[i] = 0;
    for (size_t i = 0; i < bytes; ++i) {
      const size_t from_right = bytes - 1 - i;
      port[from_right / 4] |= static_cast<uint32_t>(f[i]) << 8 * (from_right % 4);
    }
  };
  for (int i = 0; i < 500; ++i) {
    std::array<uint8_t, 64> noise;
    rng.fill(noise);
    const Wqe w = Wqe::unpack(noise.data());
    put_record(w);
    const unsigned flags = w.has_dep0 | w.has_dep1 << 1 | w.fence << 2 | w.rx_sync << 3 | w.sync << 4 |
                           w.signal << 5 | w.consume << 6 | w.indirect << 7;
    REQUIRE(bench->wqe_opcode_o == static_cast<uint8_t>(w.opcode));
    REQUIRE(bench->wqe_flags_o == flags);
    REQUIRE(bench->wqe_dep1_o == w.dep1);
    REQUIRE(bench->wqe_redop_o == static_cast<uint8_t>(w.redop));
    REQUIRE(bench->wqe_length_o == w.length);
    REQUIRE(bench->wqe_sem_o == w.sem);
    REQUIRE(bench->wqe_src1_o == w.src1);
    REQUIRE(bench->wqe_dst_o == w.dst);
    REQUIRE(bench->wqe_value_o == w.value);
    REQUIRE(bench->wqe_nsrc_o == w.nsrc);
    const Doorbell d = Doorbell::unpack(noise.data());
    put_record(d);
    REQUIRE(bench->db_subgraph_o == d.subgraph);
    REQUIRE(bench->db_count_o == d.count);
    REQUIRE(bench->db_cookie_o == d.cookie);
    const Cqe c = Cqe::unpack(noise.data());
    put_record(c);
    REQUIRE(bench->cqe_status_o == static_cast<uint8_t>(c.status));
    REQUIRE(bench->cqe_cycles_o == c.cycles);
    REQUIRE(bench->cqe_seq_o == c.seq);

    const Sample data = make_sample(rng, Opcode::WRITE_SIGNAL, rng.below(9));
    const Sample ack = make_sample(rng, Opcode::ACK, 0);
    put_header(bench->data_i, data.frame, kHdrDataBytes);
    put_header(bench->ack_i, ack.frame, kHdrAckBytes);
    bench.eval();
    REQUIRE(bench->eth_src_o == data.route.smac);
    REQUIRE(bench->ecn_o == data.route.ecn);
    REQUIRE(bench->pad_o == (-data.payload.size() & 3));
    REQUIRE(bench->dqpn_o == data.bth.dqpn);
    REQUIRE(bench->psn_o == data.bth.psn);
    REQUIRE(bench->incarnation_o == data.wth.incarnation);
    REQUIRE(bench->retx_o == data.wdh.retx);
    REQUIRE(bench->va_o == data.wdh.va);
    REQUIRE(bench->value_o == data.wdh.value);
    REQUIRE(bench->hist_words_o == ack.wah.hist_words);
    REQUIRE(bench->base_o == ack.wah.base);
    REQUIRE(bench->status_o == ack.wah.status);
  }
}

TEST_CASE("wire: SystemVerilog finds every configuration field where C++ put it", "[wire][random]") {
  namespace cfg = weft::cfg;
  Rng rng(seed(), 3);
  Bench<Vwire_fields> bench("wire_fields");
  const auto put = [&bench](const cfg::Words& words) {
    for (size_t i = 0; i < 16; ++i) bench->record_i[i] = words[i];
    bench.eval();
  };
  for (int i = 0; i < 200; ++i) {
    const cfg::Port p{rng() >> 16, static_cast<uint32_t>(rng())};
    put(p.words());
    REQUIRE(bench->port_mac_o == p.mac);
    REQUIRE(bench->port_ip_o == p.ip);
    cfg::Conn c;
    c.valid = rng.chance(0.5);
    c.rmac = rng() >> 16;
    c.rip = static_cast<uint32_t>(rng());
    c.rconn = rng() & 0xffffff;
    c.incarnation = static_cast<uint16_t>(rng());
    c.sport = static_cast<uint16_t>(rng());
    c.num_paths = static_cast<uint8_t>(rng());
    c.tx_psn = rng() & 0xffffff;
    c.rx_psn = rng() & 0xffffff;
    c.share = static_cast<uint16_t>(rng());
    c.init_cap = rng() & 0xffffff;
    put(c.words());
    REQUIRE(bench->conn_valid_o == c.valid);
    REQUIRE(bench->conn_rmac_o == c.rmac);
    REQUIRE(bench->conn_rconn_o == c.rconn);
    REQUIRE(bench->conn_num_paths_o == c.num_paths);
    REQUIRE(bench->conn_tx_psn_o == c.tx_psn);
    REQUIRE(bench->conn_init_cap_o == c.init_cap);
    cfg::Region r;
    r.valid = rng.chance(0.5);
    r.key = static_cast<uint32_t>(rng());
    r.remote_write = rng.chance(0.5);
    r.local_read = rng.chance(0.5);
    r.local_write = rng.chance(0.5);
    r.base = rng();
    r.limit = rng();
    put(r.words());
    REQUIRE(bench->region_valid_o == r.valid);
    REQUIRE(bench->region_key_o == r.key);
    REQUIRE(bench->region_rights_o ==
            (r.remote_write << 2 | r.local_read << 1 | static_cast<int>(r.local_write)));
    REQUIRE(bench->region_base_o == r.base);
    REQUIRE(bench->region_limit_o == r.limit);
    const cfg::Sem s{static_cast<uint32_t>(rng())};
    put(s.words());
    REQUIRE(bench->sem_value_o == s.value);
    const cfg::Cq q{static_cast<uint32_t>(rng()), rng()};
    put(q.words());
    REQUIRE(bench->cq_last_o == q.last);
    REQUIRE(bench->cq_base_o == q.base);
    cfg::Global g;
    g.mtu_log2 = rng() & 15;
    g.retry_limit = static_cast<uint8_t>(rng());
    g.probe_min = static_cast<uint32_t>(rng());
    g.rtt_init = static_cast<uint32_t>(rng());
    g.ack_hold = rng() & 0xffffff;
    put(g.words());
    REQUIRE(bench->global_mtu_log2_o == g.mtu_log2);
    REQUIRE(bench->global_rtt_init_o == g.rtt_init);
    REQUIRE(bench->global_ack_hold_o == g.ack_hold);
  }
}

TEST_CASE("wire: records unpack to what was packed, in every bit", "[wire][random]") {
  Rng rng;
  const auto same = [&rng](auto record) {
    std::array<uint8_t, 64> in, out;
    rng.fill(in);
    decltype(record)::unpack(in.data()).pack(out.data());
    REQUIRE(in == out);
  };
  for (int i = 0; i < 100; ++i) {
    same(Wqe{});
    same(Doorbell{});
    same(Cqe{});
  }
}

TEST_CASE("wire: the generator refuses a description that makes no sense", "[wire][smoke]") {
  struct Case {
    const char *what, *by, *expected;
  };
  const Case cases[] = {
      {"PROBE:        {value: 0xd1", "PROBE:        {value: 0xd0",
       "enums.opcode.PROBE: value 0xd0 is also that of ACK"},
      {"MEM:         {value: 25", "MEM:         {value: 32", "enums.drop.MEM: value 32 does not fit 5 bits"},
      {"{name: nsrc, bits: 8", "{name: nsrc, bits: 16", "records.wqe: fields are 520 bits, bytes says 512"},
      {"{name: se, bits: 1}", "{name: se, bits: 3}", "crosses a byte boundary"},
      {"{name: credits, bits: 16", "{name: share, bits: 16", "headers.wah.share: name used twice"},
      {"{name: epoch, bits: 8", "{name: union, bits: 8", "name 'union' is a keyword"},
      {"enum: dtype}", "enum: dtyp}", "records.wqe.dtype: no enum 'dtyp'"},
      {"HDR_ACK_BYTES:    {value: 86", "HDR_ACK_BYTES:    {value: 85", "constant HDR_ACK_BYTES says 85"},
      {"layout: probe}", "layout: prob}", "enums.opcode.PROBE: no layout 'prob'"},
      {"bytes: 64\n    doc: \"work", "byte: 64\n    doc: \"work", "records.wqe: unknown key 'byte'"},
      {"  MSG_WINDOW:", "  HIST_BITS:", "key 'HIST_BITS' given twice"},
  };
  for (const auto& c : cases) {
    INFO(c.by);
    const Run r = generate_with(c.what, c.by);
    INFO(r.text);
    CHECK(r.status == 2);
    CHECK(r.text.find(c.expected) != std::string::npos);
    CHECK(r.text.find("Traceback") == std::string::npos);
  }
  std::filesystem::remove_all(own_dir());
}

TEST_CASE("wire: the generator leaves unchanged files alone", "[wire][smoke]") {
  const auto out = own_dir() / "out" / "weft_wire.h";
  REQUIRE(generate_with("MAX_PAYLOAD:      {value: 4096", "MAX_PAYLOAD:      {value: 4095").status == 0);
  const std::string changed = read_file(out);
  REQUIRE(generate_with("MAX_PAYLOAD:      {value: 4096", "MAX_PAYLOAD:      {value: 4096").status == 0);
  CHECK(read_file(out) != changed);
  const auto written = std::filesystem::last_write_time(out);
  REQUIRE(generate_with("MAX_PAYLOAD:      {value: 4096", "MAX_PAYLOAD:      {value: 4096").status == 0);
  CHECK(std::filesystem::last_write_time(out) == written);
  std::filesystem::remove_all(own_dir());
}
