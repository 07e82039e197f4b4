// SPDX-License-Identifier: Apache-2.0
#include "tb/comply/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "sw/tools/place.h"
#include "tb/comply/body.h"
#include "tb/comply/fault.h"
#include "weft_wire.h"

namespace weft::comply {
namespace {

using Keys = std::set<std::string>;

const Keys kCommonKeys = {"path", "epoch", "incarnation", "ts", "conn", "psn", "port", "sport", "ecn"};
const Keys kDataKeys = {"stream", "va",  "rkey",  "msg", "msg_len", "value",  "sem",     "more",
                        "retx",   "len", "bytes", "op",  "to",      "to_key", "operand", "compare"};
constexpr unsigned kBlockHistBits = 32;  // that a block tells of
// pN: what an ack tells of path N, as its own or in a block; in `send`, a block.
const Keys kAckKeys = {"base",   "hist",    "ce_bytes", "rx_bytes", "echo",
                       "share",  "credits", "status",   "stream",   "words",
                       "blocks", "pN.base", "pN.hist",  "pN.epoch", "pN.ce_bytes"};
// How a frame is made wrong; they work on the finished frame, in this order: opcode .. set, cut, grow,
// corrupt.
const Keys kWrongKeys = {"opcode", "pad",     "tver", "version", "words",     "set",    "cut",
                         "grow",   "corrupt", "seal", "copies",  "mac_error", "pN.path"};
const Keys kSetupKeys = {"ports",    "paths",       "streams",     "mtu",  "distance", "psn",
                         "body_psn", "caps",        "incarnation", "conn", "rtt_init", "probe_min",
                         "give_up",  "packet_life", "retries",     "line"};
const Keys kRefuseKeys = {"magic",   "version",  "cap_bits",    "needs", "mtu",   "ports", "paths",
                          "streams", "distance", "incarnation", "resv0", "resv1", "resv2"};
// Numbers that every script has.
const char* const kNumbers[] = {"body.psn",    "body.conn", "peer.psn", "peer.conn",
                                "incarnation", "port1",     "now",      "mtu"};
const Keys kPostKeys = {"stream", "id",    "local", "local_key", "len",     "to",
                        "key",    "value", "sem",   "operand",   "compare", "gives"};

// Names of frames in scripts: those of the opcodes in small letters, and "data" for any of the data layout.
std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}
bool frame_kind(const std::string& word, std::optional<wire::Layout>* layout) {
  if (word == "data") {
    *layout = wire::Layout::DATA;
    return true;
  }
  for (unsigned op = 0; op < 256; ++op) {
    const char* n = wire::name(static_cast<wire::Opcode>(op));
    if (n != nullptr && lower(n) == word) {
      *layout = wire::layout_of(static_cast<std::uint8_t>(op));
      return true;
    }
  }
  return false;
}

struct Bad {
  std::string text;
};

// The design rules of docs/protocol.md.
constexpr unsigned kDesignRules = 11;
bool is_rule(const std::string& s) {
  for (unsigned n = 1; n <= kDesignRules; ++n)
    if (s == fmt::format("R{}", n) || s == fmt::format("W{}", n)) return true;
  return false;
}

bool is_name(const std::string& s) {
  return !s.empty() && (std::isalpha(static_cast<unsigned char>(s[0])) || s[0] == '_') &&
         std::all_of(s.begin(), s.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

class Parser {
 public:
  Parser(std::string file, const std::string& text) : text_(text) {
    script_.file = std::move(file);
    script_.name = std::filesystem::path(script_.file).stem().string();
    for (const char* name : kNumbers) names_.insert(name);
  }

  Result<Script> run() {
    try {
      lines();
    } catch (const Bad& b) {
      return Status::error(fmt::format("{}:{}: {}", script_.file, line_, printable(b.text)));
    }
    return std::move(script_);
  }

 private:
  [[noreturn]] static void bad(std::string text) { throw Bad{std::move(text)}; }
  template <class Set>
  static std::string list(const Set& names) {
    std::string out;
    for (const auto& n : names) out += (out.empty() ? "" : " ") + std::string(n);
    return out;
  }

  void lines() {
    std::size_t at = 0;
    std::vector<std::vector<Statement>*> open{&script_.steps};
    std::vector<int> opened;
    while (at < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      const std::string line = text_.substr(at, end - at);
      at = end + 1;
      ++line_;
      words_.clear();
      word_ = 0;
      std::size_t i = 0;
      while (i < line.size()) {
        if (std::isspace(static_cast<unsigned char>(line[i]))) {
          ++i;
          continue;
        }
        if (line[i] == '#') {
          std::string comment = line.substr(std::min(line.size(), i + 2));
          if (script_.title.empty() && words_.empty() && comment.rfind("SPDX-", 0) != 0)
            script_.title = printable(comment);
          break;
        }
        std::size_t j = i;
        while (j < line.size() && !std::isspace(static_cast<unsigned char>(line[j]))) ++j;
        words_.push_back(line.substr(i, j - i));
        i = j;
      }
      if (words_.empty()) continue;
      if (words_[0] == "end") {
        ++word_;
        done();
        if (open.size() == 1) bad("end: nothing is open here");
        open.pop_back();
        opened.pop_back();
        continue;
      }
      if (head()) continue;
      Statement s = step();
      done();
      const bool group = s.what == Do::kUnordered || s.what == Do::kRepeat;
      open.back()->push_back(std::move(s));
      if (group) {
        open.push_back(&open.back()->back().inner);
        opened.push_back(line_);
      }
    }
    if (open.size() != 1) {
      line_ = opened.back();
      bad(fmt::format("{}: never closed, expected a line 'end'",
                      open[open.size() - 2]->back().what == Do::kRepeat ? "repeat" : "unordered"));
    }
    line_ = 0;
    if (script_.title.empty()) bad("no title: expected a comment that says what the exchange shows");
    if (script_.steps.empty()) bad("no step: expected at least one");
  }

  const std::string& take(const char* expected) {
    if (word_ == words_.size()) bad(fmt::format("{}: ends, expected {}", words_[0], expected));
    return words_[word_++];
  }
  bool accept(const char* word) {
    if (word_ < words_.size() && words_[word_] == word) {
      ++word_;
      return true;
    }
    return false;
  }
  void done() const {
    if (word_ < words_.size()) bad(fmt::format("{}: not understood here", words_[word_]));
  }

  // Lines that say what the script is about rather than what happens.
  bool head() {
    const std::string& w = words_[0];
    word_ = 1;
    if (w == "rules") {
      while (word_ < words_.size()) {
        const std::string& name = words_[word_++];
        if (!is_rule(name))
          bad(fmt::format("rules {}: no such rule, expected R1 to R{} or W1 to W{}", name, kDesignRules,
                          kDesignRules));
        script_.rules.push_back(name);
      }
    } else if (w == "catches") {
      while (word_ < words_.size()) {
        const std::string& name = words_[word_++];
        if (!find_fault(name))
          bad(fmt::format("catches {}: no such wrong body, expected of: {}", name, fault_names()));
        script_.catches.push_back(name);
      }
    } else if (w == "needs") {
      while (word_ < words_.size()) need(words_[word_++]);
    } else if (w == "setup") {
      if (!script_.steps.empty()) bad("setup: expected before the first step");
      script_.setup = args(kSetupKeys);
      script_.setup_line = line_;
      for (const Arg& a : script_.setup)
        if (a.key == "body_psn") script_.abilities |= kStartPsn;
      for (const Bounds& b : kSetupBounds)
        for (const Arg& a : script_.setup)
          if (a.key == b.key) limit(a.key, b, a.value.lo);
    } else {
      word_ = 0;
      return false;
    }
    return true;
  }

  void need(const std::string& name) {
    for (unsigned n = 0; n < 32; ++n) {
      const char* is = wire::name(static_cast<wire::Cap>(n));
      if (is != nullptr && name == is) {
        script_.caps |= 1u << n;
        return;
      }
    }
    static const std::map<std::string, std::uint32_t> kAbilities = {
        {"FRAMES", kFrames}, {"CONTROL", kControl}, {"COUNTERS", kCounters}, {"STATE", kState},
        {"PSN", kStartPsn},  {"SETUP", kSetup},     {"MAC_ERROR", kMac},     {"JOINT_ACKS", kJointAcks}};
    const auto it = kAbilities.find(name);
    if (it == kAbilities.end())
      bad(fmt::format(
          "needs {}: no such capability, expected one of enum cap or FRAMES CONTROL COUNTERS STATE PSN "
          "SETUP MAC_ERROR JOINT_ACKS",
          name));
    script_.abilities |= it->second;
  }

  Expr expression(const std::string& text, bool may_be_relative) {
    Expr e;
    std::size_t i = 0;
    if (text.empty()) bad("a value is missing");
    if (text[0] == '+' || text[0] == '-') {
      if (!may_be_relative) bad(fmt::format("{}: a sign in front is for PSNs only", text));
      e.relative = true;
    }
    while (i < text.size()) {
      Expr::Term t;
      if (text[i] == '+' || text[i] == '-') {
        t.minus = text[i] == '-';
        ++i;
      } else if (!e.terms.empty()) {
        bad(fmt::format("{}: not an expression", text));
      }
      for (;;) {
        std::size_t j = i;
        while (j < text.size() && std::strchr("+-*", text[j]) == nullptr) ++j;
        t.factors.push_back(factor(text.substr(i, j - i)));
        i = j;
        if (i == text.size() || text[i] != '*') break;
        ++i;
      }
      e.terms.push_back(std::move(t));
    }
    return e;
  }
  Expr::Factor factor(const std::string& text) {
    Expr::Factor f;
    if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0]))) {
      const bool hex = text.size() > 2 && text[0] == '0' && text[1] == 'x';
      const char* begin = text.data() + (hex ? 2 : 0);
      const auto [end, error] = std::from_chars(begin, text.data() + text.size(), f.value, hex ? 16 : 10);
      if (error != std::errc{} || end != text.data() + text.size())
        bad(fmt::format("{}: not a number", text));
      return f;
    }
    f.literal = false;
    f.name = text;
    const std::size_t dot = text.find('.');
    const std::string stem = text.substr(0, dot);
    if (names_.count(text) == 0 && !(dot != std::string::npos && frames_.count(stem) != 0) &&
        !(dot != std::string::npos && regions_.count(stem) != 0 && text.substr(dot) == ".key"))
      bad(fmt::format("{}: no number, and nothing before this line has that name",
                      text.empty() ? "''" : text));
    return f;
  }

  Value value(const std::string& key, const std::string& text) {
    static const Keys kWords = {"status", "hist", "pN.hist", "set",  "corrupt",
                                "seal",   "op",   "gives",   "kind", "caps"};
    Value v;
    if (text == "?") {
      v.kind = Value::Kind::kAny;
      return v;
    }
    if (kWords.count(key) != 0) {
      v.kind = Value::Kind::kWord;
      v.text = key == "hist" || key == "pN.hist" ? history(text) : text;
      check_word(key, v.text);
      return v;
    }
    tb::Ps time;
    if (parse_time(text, &time)) {
      v.kind = Value::Kind::kWord;
      v.text = text;
      return v;
    }
    const bool psn = key == "psn" || key == "base" || key == "pN.base";
    if (key == "bytes") {
      if (text == "zero") {
        v.kind = Value::Kind::kWord;
        v.text = text;
        return v;
      }
      v.kind = Value::Kind::kPattern;
      const std::size_t at = text.find('@');
      v.lo = expression(text.substr(0, at), false);
      v.hi = expression(at == std::string::npos ? "0" : text.substr(at + 1), false);
      return v;
    }
    const std::size_t dots = text.find("..");
    if (dots != std::string::npos) {
      v.kind = Value::Kind::kRange;
      v.lo = expression(text.substr(0, dots), psn);
      v.hi = expression(text.substr(dots + 2), psn);
    } else if (text[0] == '!') {
      v.kind = Value::Kind::kNot;
      v.lo = expression(text.substr(1), psn);
    } else {
      v.lo = expression(text, psn);
    }
    return v;
  }
  // "10*3,1" is 10001.
  std::string history(const std::string& text) {
    std::string bits;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '*' || bits.empty()) {
        if (text[i] != ',') bits += text[i];
        continue;
      }
      unsigned times = 0;
      const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + text.size(), times);
      if (error != std::errc{} || times == 0 || times > wire::kHistBits)
        bad(fmt::format("hist = {}: expected a number of 1 to {} behind '*'", text, wire::kHistBits));
      bits.append(times - 1, bits.back());
      i = static_cast<std::size_t>(end - text.data()) - 1;
    }
    return bits;
  }
  void check_word(const std::string& key, const std::string& text) {
    const auto one_of = [&](std::initializer_list<const char*> names) {
      if (std::none_of(names.begin(), names.end(), [&](const char* n) { return text == n; }))
        bad(fmt::format("{} = {}: expected one of: {}", key, text, list(names)));
    };
    if (key == "status" || key == "gives") {
      for (unsigned n = 0; n < 256; ++n)
        if (const char* is = wire::name(static_cast<wire::Err>(n)); is != nullptr && text == is) return;
      bad(fmt::format("{} = {}: expected a status of enum err", key, text));
    } else if (key == "hist" || key == "pN.hist") {
      const unsigned most = key == "hist" ? wire::kHistBits : kBlockHistBits;
      if (text.size() > most || text.find_first_not_of("01") != std::string::npos)
        bad(fmt::format("{} = {}: expected up to {} of 0 and 1, that of PSN base-1 first", key, text, most));
    } else if (key == "set") {
      const std::size_t colon = text.find(':');
      if (colon == std::string::npos || (text.size() - colon - 1) % 2 != 0 || colon + 1 == text.size() ||
          text.substr(0, colon).find_first_not_of("0123456789") != std::string::npos || colon == 0 ||
          text.substr(colon + 1).find_first_not_of("0123456789abcdef") != std::string::npos)
        bad(fmt::format("set = {}: expected BYTE:HEX", text));
    } else if (key == "corrupt") {
      one_of({"icrc", "payload", "ip"});
    } else if (key == "seal") {
      one_of({"yes", "no"});
    } else if (key == "kind") {
      one_of({"request", "recv", "connection"});
    } else if (key == "op") {
      std::optional<wire::Layout> layout;
      if (!frame_kind(text, &layout) || layout != wire::Layout::DATA)
        bad(fmt::format("op = {}: expected an operation of the data layout", text));
    } else if (key == "caps") {
      std::size_t at = 0;
      while (at <= text.size()) {
        const std::size_t end = std::min(text.find('+', at), text.size());
        const std::string one = text.substr(at, end - at);
        at = end + 1;
        bool known = one == "none";
        for (unsigned n = 0; n < 32 && !known; ++n) {
          const char* is = wire::name(static_cast<wire::Cap>(n));
          known = is != nullptr && one == is;
        }
        if (!known)
          bad(fmt::format("caps = {}: {} is no capability, expected names of enum cap with + between", text,
                          one));
      }
    }
  }

  std::vector<Arg> args(const Keys& keys) {
    std::vector<Arg> out;
    while (word_ < words_.size()) {
      const std::string& w = words_[word_];
      const std::size_t equals = w.find('=');
      if (equals == std::string::npos) break;
      ++word_;
      const std::string key = w.substr(0, equals), text = w.substr(equals + 1);
      // Of blocks there is one set of keys for each path, which stand as that of pN in the lists.
      const auto block = block_key(key);
      const std::string kind = block ? "pN." + block->second : key;
      if (keys.count(kind) == 0 || key.rfind("pN.", 0) == 0)
        bad(fmt::format("{}: no such key here, expected of: {}", key, list(keys)));
      for (const Arg& a : out)
        if (a.key == key) bad(fmt::format("{}: given twice", key));
      if (text.empty()) bad(fmt::format("{} = '': a value is missing", key));
      // What makes a frame wrong in a header below the BTH needs a body that takes such headers.
      if (key == "set" || key == "cut" || key == "grow" || (key == "corrupt" && text == "ip"))
        script_.abilities |= kFrames;
      if (key == "mac_error") script_.abilities |= kMac;
      out.push_back({key, value(kind, text)});
      if (&keys == &kSetupKeys || &keys == &kRefuseKeys) continue;  // the whole record may be anything there
      if (const Bounds* b = bounds_of(key)) {
        const Value& v = out.back().value;
        const bool range = v.kind == Value::Kind::kRange;
        if (range || v.kind == Value::Kind::kNumber || v.kind == Value::Kind::kNot) limit(key, *b, v.lo);
        if (range) limit(key, *b, v.hi);
      }
    }
    return out;
  }
  // A number that stands in the script; what names hold shows when it runs.
  void limit(const std::string& key, const Bounds& b, const Expr& e) {
    if (e.terms.size() != 1 || e.terms[0].factors.size() != 1 || !e.terms[0].factors[0].literal) return;
    const std::uint64_t value = e.terms[0].factors[0].value;
    if (value < b.least || value > b.most)
      bad(fmt::format("{} = {}: expected a number of {} to {}", key, value, b.least, b.most));
  }
  tb::Ps time(const std::string& text) {
    tb::Ps t;
    if (!parse_time(text, &t)) bad(fmt::format("{}: expected a time such as 20us, 1.5ms or 300ns", text));
    return t;
  }
  // A name stands for one kind of thing in a script, and a region's for one region.
  enum class Named { kNumber, kFrame, kRegion };
  std::string define(const std::string& name, Named what) {
    if (!is_name(name)) bad(fmt::format("{}: not a name", name));
    for (const std::string number : kNumbers)
      if (name == number.substr(0, number.find('.')))
        bad(fmt::format("{}: is a name of every script, expected another", name));
    const auto [known, fresh] = defined_.emplace(name, std::pair{what, line_});
    if (!fresh && (known->second.first != what || what == Named::kRegion))
      bad(fmt::format("{}: already a name in line {}, expected another", name, known->second.second));
    return name;
  }
  Keys frame_keys(const std::string& kind) {
    std::optional<wire::Layout> layout;
    if (!frame_kind(kind, &layout))
      bad(fmt::format(
          "{}: no such frame, expected data, ack, probe or an opcode of wire.yaml in small letters", kind));
    Keys keys = kCommonKeys;
    if (layout == wire::Layout::DATA) keys.insert(kDataKeys.begin(), kDataKeys.end());
    if (layout == wire::Layout::ACK) {
      keys.insert(kAckKeys.begin(), kAckKeys.end());
      keys.erase("psn");
    }
    return keys;
  }

  Statement step() {
    Statement s;
    s.line = line_;
    const std::string w = take("a statement");
    if (w == "region") {
      s.what = Do::kRegion;
      s.word = define(take("a name"), Named::kRegion);
      s.args = args({"len", "rights"});
      if (!s.arg("len")) bad("region: len is missing");
      regions_.insert(s.word);
      names_.insert(s.word);
      script_.abilities |= kControl;
    } else if (w == "fill" || w == "check") {
      s.what = w == "fill" ? Do::kFill : Do::kCheck;
      s.where = expression(take("where"), false);
      s.args = args({"len", "bytes"});
      if (!s.arg("len") || !s.arg("bytes")) bad(w + ": expected len and bytes");
      script_.abilities |= kControl;
    } else if (w == "let") {
      s.what = Do::kLet;
      const std::string& all = take("NAME=VALUE");
      const std::size_t equals = all.find('=');
      if (equals == std::string::npos) bad(fmt::format("let {}: expected NAME=VALUE", all));
      s.word = define(all.substr(0, equals), Named::kNumber);
      s.where = expression(all.substr(equals + 1), false);
      names_.insert(s.word);
    } else if (w == "wait") {
      s.what = Do::kWait;
      s.time = time(take("a time"));
    } else if (w == "at") {
      s.what = Do::kAt;
      s.time = time(take("a time"));
    } else if (w == "send") {
      send(s);
    } else if (w == "expect") {
      expect(s);
    } else if (w == "unordered") {
      s.what = Do::kUnordered;
    } else if (w == "repeat") {
      s.what = Do::kRepeat;
      s.where = expression(take("how often"), false);
      limit("repeat", {"repeat", 0, kMostSteps}, s.where);
      if (accept("as")) {
        s.word = define(take("a name"), Named::kNumber);
        names_.insert(s.word);
      }
    } else if (w == "auto") {
      s.what = Do::kAuto;
      s.word = take("ack or off");
      if (s.word != "ack" && s.word != "off") bad(fmt::format("auto {}: expected ack or off", s.word));
      s.args = args({"credits", "path"});
    } else if (w == "body") {
      body(s);
    } else if (w == "state") {
      s.what = Do::kState;
      s.args = args({"path"});
      if (!s.arg("path")) bad("state: path is missing");
      s.word = take("a state");
      if (s.word != "good" && s.word != "suspect" && s.word != "fencing" && s.word != "failed" &&
          s.word != "probation")
        bad(fmt::format("state {}: expected good, suspect, fencing, failed or probation", s.word));
      s.time = accept("within") ? time(take("a time")) : 0;
      script_.abilities |= kState;
    } else if (w == "counters") {
      s.what = Do::kCounters;
      Keys reasons;
      for (unsigned n = 0; n < wire::kDropCount; ++n) reasons.insert(wire::name(static_cast<wire::Drop>(n)));
      s.args = args(reasons);
      script_.abilities |= kCounters;
    } else if (w == "refuse") {
      s.what = Do::kRefuse;
      s.word = take("a refusal");
      bool known = false;
      for (unsigned n = 0; n < 256 && !known; ++n) {
        const char* is = wire::name(static_cast<wire::Refusal>(n));
        known = is != nullptr && s.word == is;
      }
      if (!known) bad(fmt::format("refuse {}: expected a reason of enum refusal", s.word));
      s.args = args(kRefuseKeys);
      script_.abilities |= kSetup;
    } else if (w == "ignore") {
      s.what = Do::kIgnore;
      s.word = take("data or completions");
      if (s.word != "data" && s.word != "completions")
        bad(fmt::format("ignore {}: expected data or completions", s.word));
    } else {
      bad(
          fmt::format("{}: no such statement, expected of: at auto body catches check counters end expect "
                      "fill ignore let "
                      "needs refuse region repeat rules send setup state unordered wait",
                      w));
    }
    return s;
  }

  void send(Statement& s) {
    s.what = Do::kSend;
    s.word = take("a frame");
    if (s.word == "hex") {
      s.what = Do::kSendHex;
      s.args = args({"port"});
      std::string all;
      while (word_ < words_.size()) all += words_[word_++];
      if (all.empty() || all.size() % 2 != 0 ||
          all.find_first_not_of("0123456789abcdef") != std::string::npos)
        bad("send hex: expected an even number of digits 0 to 9 and a to f");
      for (std::size_t i = 0; i < all.size(); i += 2)
        s.bytes.push_back(static_cast<std::uint8_t>(std::stoul(all.substr(i, 2), nullptr, 16)));
      script_.abilities |= kFrames;
      return;
    }
    if (s.word == "data") bad("send data: expected the operation, such as send write");
    Keys keys = frame_keys(s.word);
    keys.insert(kWrongKeys.begin(), kWrongKeys.end());
    keys.erase("op");
    s.args = args(keys);
    for (const Arg& a : s.args)
      if (a.value.kind == Value::Kind::kAny || a.value.kind == Value::Kind::kNot ||
          a.value.kind == Value::Kind::kRange)
        bad(fmt::format("{}: a frame that is sent needs one value", a.key));
    const bool has_psn = s.arg("psn") != nullptr;
    const bool ack = s.word == "ack" || s.word == "fence_answer";
    if (!has_psn && !ack) bad(fmt::format("send {}: psn is missing", s.word));
    if (ack && !s.arg("base")) bad(fmt::format("send {}: base is missing", s.word));
    std::set<std::uint8_t> blocks;
    for (const Arg& a : s.args)
      if (const auto block = block_key(a.key)) blocks.insert(block->first);
    for (const unsigned path : blocks)
      if (!s.arg(fmt::format("p{}.base", path).c_str())) bad(fmt::format("p{}.base is missing", path));
    if (blocks.size() > wire::kMaxAckBlocks)
      bad(fmt::format("send {}: blocks of {} paths, expected at most {}", s.word, blocks.size(),
                      wire::kMaxAckBlocks));
  }

  void expect(Statement& s) {
    if (accept("no")) {
      s.what = Do::kExpectNone;
      s.word = take("what");
      if (s.word != "frame" && s.word != "completion") s.args = args(frame_keys(s.word));
      if (!accept("for")) bad("expect no: expected 'for' and a time");
      s.time = time(take("a time"));
      return;
    }
    s.what = Do::kExpect;
    s.strict = accept("next");
    s.word = take("a frame or completion");
    if (s.word == "completion") {
      s.what = Do::kExpectCompletion;
      s.args = args({"id", "status", "kind", "bytes_in", "imm", "stream"});
      script_.abilities |= kControl;
    } else {
      s.args = args(frame_keys(s.word));
    }
    s.time = 100 * tb::kUs;
    for (;;) {
      if (accept("within")) {
        s.time = time(take("a time"));
      } else if (accept("as")) {
        if (s.what == Do::kExpectCompletion) bad("as: a completion has no name");
        s.as = define(take("a name"), Named::kFrame);
        frames_.insert(s.as);
      } else {
        break;
      }
    }
  }

  void body(Statement& s) {
    const std::string w = take("what the body does");
    script_.abilities |= kControl;
    if (w == "post") {
      s.what = Do::kPost;
      s.word = take("an operation");
      static const Keys kOps = {"send",         "send_imm", "write",     "write_imm",
                                "write_signal", "read",     "fetch_add", "compare_swap"};
      if (kOps.count(s.word) == 0) bad(fmt::format("body post {}: expected one of: {}", s.word, list(kOps)));
      s.args = args(kPostKeys);
      if (!s.arg("id")) bad("body post: id is missing");
    } else if (w == "recv") {
      s.what = Do::kRecv;
      s.args = args({"stream", "id", "at", "len", "gives"});
      if (!s.arg("id")) bad("body recv: id is missing");
    } else if (w == "wait") {
      s.what = Do::kBodyWait;
      s.args = args({"sem", "value", "id"});
      if (!s.arg("id") || !s.arg("sem") || !s.arg("value")) bad("body wait: expected sem, value and id");
    } else if (w == "close") {
      s.what = Do::kClose;
    } else if (w == "sport") {
      s.what = Do::kSport;
      s.args = args({"path"});
      if (!s.arg("path")) bad("body sport: path is missing");
    } else {
      bad(fmt::format("body {}: expected post, recv, wait, close or sport", w));
    }
  }

  const std::string& text_;
  Script script_;
  int line_ = 0;
  std::vector<std::string> words_;
  std::size_t word_ = 0;
  Keys names_, frames_, regions_;
  std::map<std::string, std::pair<Named, int>> defined_;  // and in which line
};

}  // namespace

bool parse_time(const std::string& text, tb::Ps* out) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number >= 0)) return false;
  const std::string unit(end, text.data() + text.size());
  const double ps = unit == "ns" ? 1e3 : unit == "us" ? 1e6 : unit == "ms" ? 1e9 : unit == "s" ? 1e12 : 0;
  if (ps == 0 || number * ps > 1e15) return false;
  *out = std::llround(number * ps);
  return true;
}

std::optional<std::pair<std::uint8_t, std::string>> block_key(const std::string& key) {
  const std::size_t dot = key.find('.');
  std::uint8_t path = 0;
  if (dot == std::string::npos || key[0] != 'p') return std::nullopt;
  const auto [end, error] = std::from_chars(key.data() + 1, key.data() + dot, path);
  if (error != std::errc{} || end != key.data() + dot) return std::nullopt;
  return std::pair{path, key.substr(dot + 1)};
}

const Bounds* bounds_of(const std::string& key) {
  const auto block = block_key(key);
  const Bounds* found = nullptr;
  for (const Bounds& b : kBounds) {
    if (block ? "pN." + block->second == b.key : key == b.key) return &b;
    if (block && block->second == b.key) found = &b;
  }
  return found;
}

Result<Script> parse_script(const std::string& file, const std::string& text) {
  return Parser(file, text).run();
}

Result<Script> load_script(const std::string& file) {
  auto text = tools::read_file(file);
  if (!text.ok()) return text.status();
  return parse_script(file, text.value());
}

}  // namespace weft::comply
