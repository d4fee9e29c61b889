// tshark with config/wireshark/roci.lua, and our decoder: two programs that share no line read the same frames.
// ROCI_FIRST_SEED=S replays a seed that a failure prints.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "wireshark/random_frames.hpp"

namespace roci::test {
namespace {

constexpr size_t kShown = 10;  // differences of a capture that are printed

// Of which heuristics take random payload for messages of their protocol.
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

class WiresharkReading : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!Tshark::is_usable()) return;
    own_ = Tshark::own_fields();
    fields_ = {"_ws.expert.message"};
    fields_.insert(fields_.end(), own_.begin(), own_.end());
    fields_.insert(fields_.end(), standard_fields().begin(), standard_fields().end());
  }
  void SetUp() override {
    ASSERT_FALSE(own_.empty()) << "tshark is not usable";
    RecordProperty("seed", std::to_string(seed()));
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed()));
  }

  static std::vector<Reading> tshark_reads(const std::vector<Bytes>& frames) {
    CaptureFile file("reading");
    for (const Bytes& frame : frames) file.add(frame);
    file.save();
    auto readings = Tshark(kNoGuesses).read(file.path(), fields_);
    EXPECT_EQ(readings.size(), frames.size());
    readings.resize(frames.size());
    return readings;
  }
  // Why one of our messages is refused.
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
  // The sentences that say how the readings differ. `standard`: also in what tshark reads without the script.
  static std::vector<std::string> differences(const Reading& theirs, const OurReading& ours, bool standard) {
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
      // A PFC frame says times of all priorities, those that it does not tell anything too.
      if (name.starts_with("macc.cbfc.pause_time") && our.empty()) continue;
      if (their != our) out.push_back(name + ": tshark reads " + joined(their) + ", we " + joined(our));
    }
    return out;
  }
  static void expect_same(const std::vector<RandomFrame>& frames, const std::vector<Reading>& readings,
                          const std::vector<OurReading>& ours, bool standard) {
    size_t shown = 0;
    for (size_t i = 0; i < frames.size(); ++i) {
      for (const std::string& text : differences(readings[i], ours[i], standard)) {
        if (++shown > kShown) return;
        ADD_FAILURE() << "frame " << i + 1 << ", " << frames[i].kind << ": " << text
                      << "\nreplay it with ROCI_FIRST_SEED=" << seed();
      }
    }
  }

  static std::vector<std::string> own_, fields_;
};
std::vector<std::string> WiresharkReading::own_, WiresharkReading::fields_;

TEST_F(WiresharkReading, every_field_of_every_kind_of_frame_is_what_we_read) {
  Rng rng(seed());
  const auto frames = random_frames(rng, 120, 8);
  std::vector<Bytes> bytes;
  std::vector<OurReading> ours;
  for (const RandomFrame& frame : frames) {
    bytes.push_back(frame.bytes);
    ours.push_back(our_reading(frame.bytes));
  }
  const auto readings = tshark_reads(bytes);
  expect_same(frames, readings, ours, true);
  // And none of the fields was left out.
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

TEST_F(WiresharkReading, a_message_that_is_wrong_in_one_byte_is_refused_for_the_same_reason) {
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

}  // namespace
}  // namespace roci::test
