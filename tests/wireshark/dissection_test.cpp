// Compares tshark with config/wireshark/roci.lua and the project's decoder, which share no code. ROCI_FIRST_SEED=S
// repeats a seed that a failure prints.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "wire/mad/capability_mad.hpp"
#include "wire/roce/packet.hpp"
#include "wire/wire_test_support.hpp"
#include "wireshark/random_frames.hpp"

namespace roci::test {
namespace {

constexpr size_t kShown = 10;  // number of differences that are printed per capture

// These heuristics interpret random payload as messages of their protocol.
constexpr const char* kNoGuesses =
    "--disable-heuristic rpcrdma_infiniband --disable-heuristic smb_direct_infiniband "
    "--disable-heuristic iser_infiniband --disable-heuristic sdp_infiniband --disable-heuristic lnet_ib "
    "--disable-heuristic eth_over_ib --disable-heuristic mellanox_eoib";

uint64_t seed() {
  const char* text = std::getenv("ROCI_FIRST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

std::string joined(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) out += (out.empty() ? "" : ", ") + value;
  return out.empty() ? "nothing" : out;
}

class WiresharkDissection : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Tshark::is_usable());
    fields_ = {"_ws.expert.message"};
    fields_.insert(fields_.end(), Tshark::own_fields().begin(), Tshark::own_fields().end());
    fields_.insert(fields_.end(), standard_fields().begin(), standard_fields().end());
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  }

  [[nodiscard]] std::vector<Reading> tshark_reads(const std::vector<Bytes>& frames) const {
    CaptureFile file("reading");
    for (const Bytes& frame : frames) file.add(frame);
    file.save();
    auto readings = Tshark(kNoGuesses).read(file.path(), fields_);
    EXPECT_EQ(readings.size(), frames.size());
    readings.resize(frames.size());
    return readings;
  }
  // Reasons for rejected messages.
  static std::vector<std::string> refusals(const Reading& reading) {
    std::vector<std::string> out;
    const auto messages = reading.find("_ws.expert.message");
    if (messages == reading.end()) return out;
    for (const std::string& message : messages->second) {
      if (message.starts_with("Malformed ") && message.find(": ") != std::string::npos)
        out.push_back(message);
    }
    return out;
  }
  // Describes the differences of two readings. `standard`: includes the fields that tshark decodes without the
  // script.
  [[nodiscard]] std::vector<std::string> differences(const Reading& theirs, const OurReading& ours,
                                                     bool standard) const {
    std::vector<std::string> out;
    const auto refused = ours.refused ? std::vector<std::string>{*ours.refused} : std::vector<std::string>{};
    if (const auto their = refusals(theirs); their != refused)
      out.push_back("refusal: tshark says " + joined(their) + ", we " + joined(refused));
    if (ours.refused) return out;
    for (const std::string& name : fields_) {
      if (name.starts_with("_ws.") || (!standard && !name.starts_with("roci."))) continue;
      const auto find = [&name](const Reading& in) {
        const auto found = in.find(name);
        return found == in.end() ? std::vector<std::string>{} : found->second;
      };
      const auto their = find(theirs), our = find(ours.fields);
      // A PFC frame contains times of all priorities, including those that are not enabled.
      if (name.starts_with("macc.cbfc.pause_time") && our.empty()) continue;
      if (their != our) out.push_back(name + ": tshark reads " + joined(their) + ", we " + joined(our));
    }
    return out;
  }
  void expect_same(const std::vector<RandomFrame>& frames, const std::vector<Reading>& readings,
                   const std::vector<OurReading>& ours, bool standard) const {
    size_t shown = 0;
    for (size_t i = 0; i < frames.size(); ++i) {
      for (const std::string& text : differences(readings[i], ours[i], standard)) {
        if (++shown > kShown) return;
        ADD_FAILURE() << "frame " << i + 1 << ", " << frames[i].kind << ": " << text
                      << "\nreplay it with ROCI_FIRST_SEED=" << seed();
      }
    }
  }

  std::vector<std::string> fields_;
};

TEST_F(WiresharkDissection, fields_match_rocinante_parser) {
  Rng rng(seed());
  const auto frames = random_frames(rng, 200, 8);
  std::vector<Bytes> bytes;
  std::vector<OurReading> ours;
  for (const RandomFrame& frame : frames) {
    bytes.push_back(frame.bytes);
    ours.push_back(our_reading(frame.bytes));
  }
  const auto readings = tshark_reads(bytes);
  expect_same(frames, readings, ours, true);
  // All fields were used.
  std::set<std::string> read;
  for (const OurReading& reading : ours) {
    for (const auto& [name, values] : reading.fields) read.insert(name);
  }
  for (const std::string& name : fields_) {
    EXPECT_TRUE(name.starts_with("_ws.") || read.contains(name)) << "no frame has the field " << name;
  }
  for (const std::string& name : read)
    EXPECT_NE(std::find(fields_.begin(), fields_.end(), name), fields_.end())
        << "tshark has no field " << name;
}

TEST_F(WiresharkDissection, invalid_messages_are_rejected_for_the_same_reason) {
  Rng rng(seed());
  constexpr size_t kinds = 5;
  std::vector<RandomFrame> frames;
  for (unsigned i = 0; i < 600; ++i) {
    const auto table = opcode_table();
    frames.push_back(random_block(rng, table[rng.below(table.size())].opcode));
    for (auto* make : {random_cnm, random_l3_cnm, random_int, random_capabilities})
      frames.push_back(make(rng));
  }
  std::vector<Bytes> bytes;
  std::vector<OurReading> ours;
  std::set<std::string> reasons;
  for (const RandomFrame& frame : frames) {
    bytes.push_back(damaged(rng, frame, bytes.size() / kinds));
    ours.push_back(our_reading(bytes.back()));
    if (ours.back().refused) reasons.insert(*ours.back().refused);
  }
  expect_same(frames, tshark_reads(bytes), ours, false);
  EXPECT_GE(reasons.size(), 36U) << joined({reasons.begin(), reasons.end()});
}

// Values at and beyond the limits of extension blocks, which random values rarely reach.
TEST_F(WiresharkDissection, limit_values_match_rocinante_parser) {
  std::vector<RandomFrame> frames;
  std::vector<Bytes> bytes;
  std::vector<OurReading> ours;
  const auto add = [&](const std::string& what, const ByteVector& block) {
    Packet p = make_packet(Opcode::kRcSendOnly);
    p.bth.reserved7 = Bth::kExtensions;
    frames.push_back({.kind = what, .bytes = {}});
    bytes.push_back(encode_packet(p.with_payload(block).finish()));
    ours.push_back(our_reading(bytes.back()));
  };
  for (const uint8_t hops : std::initializer_list<uint8_t>{0, 1, 16, 17, 255}) {
    ByteVector block = {0x10, static_cast<uint8_t>(2 + 4 * hops), 0x01, 0x00, hops, 0, 0, 0};
    block.resize(8U + 16U * hops, 0xff);
    add(std::to_string(hops) + " hops", block);
  }
  for (const uint32_t rate :
       {0x0fffffffU, 0x08000000U, 0x07ffffffU, 0x8fffffffU, 0x88000000U, 0x87ffffffU, 0x80000000U}) {
    ByteVector block = {0x10, 2, 0x00, 0x80};
    for (unsigned shift = 32; shift > 0; shift -= 8)
      block.push_back(static_cast<uint8_t>(rate >> (shift - 8)));
    add("rate " + std::to_string(rate), block);
  }
  add("nothing in it", from_hex("10010000"));
  add("not even its own header", from_hex("10000001"));
  expect_same(frames, tshark_reads(bytes), ours, true);
  EXPECT_EQ(ours[2].fields.at("roci.int_echo.hop.queue").size(), 16U);
  EXPECT_EQ(ours[3].refused, "Malformed extension block: too many hops");
}

TEST_F(WiresharkDissection, invalid_capability_offers_are_rejected_by_both_parsers) {
  CapabilityMessage right;
  right.transaction = 1;
  right.offer.incarnation = 2;
  std::vector<CapabilityMessage> messages(9, right);
  messages[1].offer.time_unit = 0;
  messages[2].offer.incarnation = 0;
  messages[3].offer.capabilities = bit_of(ExtensionType::kAuth);  // without a key
  messages[4].offer.auth[15] = 1;                                 // without AUTH
  messages[5].response = true;                                    // without an addressee
  messages[6].peer_incarnation = 3;                               // in a request
  for (const size_t i : {7U, 8U}) {
    messages[i].offer.version = kSignedCapabilityVersion;
    messages[i].offer.capabilities = static_cast<uint32_t>(Capability::kNetworkAuth);
  }
  messages[8].offer.network_auth[3] = 1;  // valid
  messages[8].mac = 0x0102030405060708;
  std::vector<RandomFrame> frames;
  std::vector<Bytes> bytes;
  std::vector<OurReading> ours;
  for (const CapabilityMessage& message : messages) {
    const CapabilityMad mad = build_capability_mad(message);
    const auto* begin = reinterpret_cast<const uint8_t*>(&mad);
    Packet p = make_packet(Opcode::kUdSendOnly);
    bytes.push_back(encode_packet(p.to(kManagementQp, Psn{0}).with_payload({begin, sizeof mad}).finish()));
    frames.push_back({.kind = "offer " + std::to_string(frames.size()), .bytes = {}});
    ours.push_back(our_reading(bytes.back()));
  }
  expect_same(frames, tshark_reads(bytes), ours, true);
  EXPECT_FALSE(ours[0].refused);
  EXPECT_FALSE(ours[8].refused);
  for (size_t i = 1; i < 8; ++i) EXPECT_EQ(ours[i].refused, "Malformed capability exchange: bad value") << i;
}

}  // namespace
}  // namespace roci::test
