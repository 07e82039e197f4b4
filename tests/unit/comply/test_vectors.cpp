// SPDX-License-Identifier: Apache-2.0
// The vectors of tests/compliance/vectors against parse, decode and encode. test_vectors.py there holds the
// files to a second routine.
#include <fstream>
#include <nlohmann/json.hpp>

#include "sw/ref/packet.h"
#include "weft_test.h"

using namespace weft;

namespace {

nlohmann::json vectors(const char* name) {
  std::ifstream in(std::string(WEFT_SOURCE_DIR) + "/tests/compliance/vectors/" + name);
  REQUIRE(in);
  return nlohmann::json::parse(in)["vectors"];
}

std::vector<std::uint8_t> unhex(const std::string& s) {
  std::vector<std::uint8_t> out(s.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint8_t>(std::stoul(s.substr(2 * i, 2), nullptr, 16));
  return out;
}

}  // namespace

TEST_CASE("comply: packets of others have the ICRC of the vectors", "[comply][smoke]") {
  for (const auto& v : vectors("roce.json")) {
    INFO(v["name"].get<std::string>());
    std::vector<std::uint8_t> frame(14);
    const auto packet = unhex(v["packet"].get<std::string>());
    frame.insert(frame.end(), packet.begin(), packet.end());
    std::uint8_t icrc[4];
    wire::detail::put_le<4>(icrc, wire::icrc(frame));
    CHECK(std::vector<std::uint8_t>(icrc, icrc + 4) == unhex(v["icrc"].get<std::string>()));
  }
}

TEST_CASE("comply: the frame of every opcode is read as its vector says, and written back the same",
          "[comply][smoke]") {
  for (const auto& v : vectors("weft.json")) {
    INFO(v["name"].get<std::string>());
    const auto bytes = unhex(v["frame"].get<std::string>());
    wire::RxPort port;
    port.whole_protocol = true;
    const wire::ParseResult r = wire::parse(bytes, port);
    REQUIRE(r);
    const wire::Parsed& f = r.frame;
    const auto is = [&](const char* header, const char* field) {
      const auto& h = v["fields"][header];
      return h.contains(field) ? h[field].get<std::uint64_t>() : 0;
    };
    CHECK(f.eth.dst == is("eth", "dst"));
    CHECK(f.ipv4.dscp == is("ipv4", "dscp"));
    CHECK(f.udp.sport == is("udp", "sport"));
    CHECK(f.bth.opcode == is("bth", "opcode"));
    CHECK(f.bth.pad == is("bth", "pad"));
    CHECK(f.bth.dqpn == is("bth", "dqpn"));
    CHECK(f.bth.psn == is("bth", "psn"));
    CHECK(f.wth.path == is("wth", "path"));
    CHECK(f.wth.epoch == is("wth", "epoch"));
    CHECK(f.wth.incarnation == is("wth", "incarnation"));
    CHECK(f.wth.timestamp == is("wth", "timestamp"));
    if (f.layout == wire::Layout::DATA) {
      CHECK(f.wdh.more == is("wdh", "more"));
      CHECK(f.wdh.retx == is("wdh", "retx"));
      CHECK(f.wdh.stream == is("wdh", "stream"));
      CHECK(f.wdh.va == is("wdh", "va"));
      CHECK(f.wdh.rkey == is("wdh", "rkey"));
      CHECK(f.wdh.msg_no == is("wdh", "msg_no"));
      CHECK(f.wdh.sem == is("wdh", "sem"));
      CHECK(f.wdh.msg_len == is("wdh", "msg_len"));
      CHECK(f.wdh.value == is("wdh", "value"));
      CHECK(std::vector<std::uint8_t>(f.payload.begin(), f.payload.end()) ==
            unhex(v["payload"].get<std::string>()));
    } else if (f.layout == wire::Layout::ACK) {
      CHECK(f.wah.base == is("wah", "base"));
      CHECK(f.wah.ce_bytes == is("wah", "ce_bytes"));
      CHECK(f.wah.rx_bytes == is("wah", "rx_bytes"));
      CHECK(f.wah.echo == is("wah", "echo"));
      CHECK(f.wah.share == is("wah", "share"));
      CHECK(f.wah.credits == is("wah", "credits"));
      CHECK(f.wah.status == is("wah", "status"));
      for (std::size_t i = 0; i < v["hist"].size(); ++i)
        CHECK(f.hist[i] == v["hist"][i].get<std::uint32_t>());
    }

    wire::Route route;
    route.smac = f.eth.src;
    route.dmac = f.eth.dst;
    route.sip = f.ipv4.src;
    route.dip = f.ipv4.dst;
    route.dscp = f.ipv4.dscp;
    route.id = f.ipv4.id;
    const ref::Packet p = ref::decode(f);
    std::vector<std::uint8_t> again(wire::kMaxFrameBytes);
    again.resize(ref::encode(again.data(), route, p));
    CHECK(again == bytes);
  }
}
