// The script must decode any capture without Lua errors. ROCI_FIRST_SEED=S generates other frames.
#include <gtest/gtest.h>

#include <cstdlib>

#include "wire/wire_test_support.hpp"
#include "wireshark/random_frames.hpp"

namespace roci::test {
namespace {

constexpr const char* kMessages = "_ws.expert.message";

class WiresharkMalformedFrame : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Tshark::is_usable());
    const char* text = std::getenv("ROCI_FIRST_SEED");
    const uint64_t seed = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
    rng_ = Rng(seed);
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  }
  // One frame of each kind, and one of each opcode with an extension block.
  std::vector<RandomFrame> one_of_each() {
    auto frames = random_frames(rng_, 1, 0);
    for (const OpcodeInfo& info : opcode_table()) frames.push_back(random_block(rng_, info.opcode));
    return frames;
  }
  // Lengths at which a frame is truncated: all before the payload; for the many RoCEv2 packets only every fifth.
  static std::vector<size_t> ends_of(const RandomFrame& frame) {
    const bool many = frame.kind.find(" with a block") != std::string::npos && !frame.kind.starts_with("CC_");
    std::vector<size_t> out;
    for (size_t end = 12; end < std::min<size_t>(frame.bytes.size(), 400); end += many ? 5 : 1)
      out.push_back(end);
    return out;
  }
  // Expert messages of each frame.
  static std::vector<std::vector<std::string>> messages(const CaptureFile& file) {
    file.save();
    std::vector<std::vector<std::string>> out;
    for (Reading& reading : Tshark().read(file.path(), {"frame.number", kMessages}))
      out.push_back(std::move(reading[kMessages]));
    return out;
  }
  static size_t count(const std::vector<std::vector<std::string>>& messages, const std::string& text) {
    size_t found = 0;
    for (const auto& frame : messages) {
      for (const std::string& message : frame) found += message.find(text) != std::string::npos;
    }
    return found;
  }

  Rng rng_{1};
};

TEST_F(WiresharkMalformedFrame, truncated_frame_causes_no_lua_error) {
  CaptureFile file("short");
  for (const RandomFrame& frame : one_of_each()) {
    for (const size_t length : ends_of(frame))
      file.add({frame.bytes.begin(), frame.bytes.begin() + static_cast<std::ptrdiff_t>(length)});
  }
  const auto said = messages(file);
  EXPECT_GT(said.size(), 3000U);
  EXPECT_EQ(count(said, "Lua Error"), 0U);
  EXPECT_GT(count(said, "Malformed CNM: truncated"), 10U);
}

TEST_F(WiresharkMalformedFrame, fields_of_frame_cut_by_capture_match_whole_frame) {
  CaptureFile file("cut");
  struct Cut {
    const RandomFrame& frame;
    const Reading& whole;
    size_t length;
  };
  const auto frames = one_of_each();
  std::vector<Reading> wholes;
  for (const RandomFrame& frame : frames) wholes.push_back(our_reading(frame.bytes).fields);
  std::vector<Cut> cuts;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (our_reading(frames[i].bytes).refused) continue;  // random: a block is announced but missing
    for (const size_t length : ends_of(frames[i])) {
      file.add(frames[i].bytes, length);
      cuts.push_back({frames[i], wholes[i], length});
    }
  }
  file.save();
  std::vector<std::string> fields = {"frame.number", kMessages};
  fields.insert(fields.end(), Tshark::own_fields().begin(), Tshark::own_fields().end());
  auto readings = Tshark().read(file.path(), fields);
  ASSERT_EQ(readings.size(), cuts.size());
  size_t shown = 0, cut = 0;
  for (size_t i = 0; i < cuts.size() && shown < 10; ++i) {
    const std::string what = cuts[i].frame.kind + " cut at " + std::to_string(cuts[i].length) + ": ";
    for (const std::string& message : readings[i][kMessages]) {
      cut += message.find("cut by the capture") != std::string::npos;
      const bool wrong = message.find("Lua Error") != std::string::npos ||
                         (message.starts_with("Malformed ") && message.find(": ") != std::string::npos);
      if (wrong) ADD_FAILURE() << what << message;
      shown += wrong;
    }
    for (const auto& [name, values] : readings[i]) {
      if (!name.starts_with("roci.")) continue;
      const auto whole = cuts[i].whole.find(name);
      const bool same = whole != cuts[i].whole.end() && values.size() <= whole->second.size() &&
                        std::equal(values.begin(), values.end(), whole->second.begin());
      if (!same) ADD_FAILURE() << what << name << " is " << values[0];
      shown += !same;
    }
  }
  EXPECT_GT(cut, 1000U);
}

TEST_F(WiresharkMalformedFrame, random_bytes_cause_no_lua_error) {
  CaptureFile file("noise");
  for (int i = 0; i < 40; ++i) {
    for (const RandomFrame& frame : one_of_each()) {
      if (frame.end == 0) continue;
      Bytes bytes = frame.bytes;
      for (size_t at = frame.begin; at < frame.end; ++at) {
        if (rng_.chance(i % 4 == 0 ? 1 : 0.1)) bytes[at] = static_cast<uint8_t>(rng_.next());
      }
      file.add(bytes);
    }
  }
  const auto said = messages(file);
  EXPECT_GT(said.size(), 1000U);
  EXPECT_EQ(count(said, "Lua Error"), 0U);
}

TEST_F(WiresharkMalformedFrame, nesting_depth_is_limited) {
  const Bytes macs(12, 2);
  CaptureFile file("nested");
  Bytes tags = macs;  // 300 CN-TAGs
  for (int i = 0; i < 300; ++i) tags.insert(tags.end(), {0x22, 0xe9, 0, 1});
  file.add(tags);
  Bytes both = macs;  // with VLAN tags in between
  for (int i = 0; i < 300; ++i) both.insert(both.end(), {0x22, 0xe9, 0, 1, 0x81, 0, 0, 7});
  file.add(both);
  // 50 INT headers without hops, each of which announces another INT header.
  Bytes udp = {0xc0, 0, kIntPort >> 8, kIntPort & 0xff, 0, 0, 0, 0};
  for (int i = 0; i < 50; ++i) {
    udp.insert(udp.end(),
               {0x14, 3, kIntPort >> 8, kIntPort & 0xff, 0x20, 0, 4, 0, 0, 0, 0, 0, 0x80, 0, 0, 0});
  }
  udp[4] = static_cast<uint8_t>(udp.size() >> 8);
  udp[5] = static_cast<uint8_t>(udp.size());
  Bytes packet = macs;
  packet.insert(packet.end(), {0x08,
                               0,
                               0x45,
                               0,
                               static_cast<uint8_t>((udp.size() + 20) >> 8),
                               static_cast<uint8_t>(udp.size() + 20),
                               0,
                               0,
                               0,
                               0,
                               64,
                               17,
                               0,
                               0,
                               10,
                               0,
                               0,
                               1,
                               10,
                               0,
                               0,
                               2});
  packet.insert(packet.end(), udp.begin(), udp.end());
  file.add(packet);
  const auto said = messages(file);
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(count(said, "Lua Error"), 0U);
  EXPECT_EQ(count(said, "nested too deep"), 3U);
}

}  // namespace
}  // namespace roci::test
