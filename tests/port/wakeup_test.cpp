// Model of the wake-up protocol of port/wakeup.hpp: explores every interleaving of the steps of senders and receiver.
#include "port/wakeup.hpp"

#include <gtest/gtest.h>

#include <array>
#include <compare>
#include <set>
#include <vector>

namespace roci {
namespace {

// Defects that cause a lost wake-up. The model must find each of them.
enum class Mistake : uint8_t {
  kNone,
  kDoesNotLook,
  // Not atomic with arming: the sender of an earlier frame may clear the flag in between.
  kReadsValueAfterArming,
  kReadsValueAfterLook,
  kReadsWordBeforePublishing,
};

struct WakeupScenario {
  WakeFor armed_for = WakeFor::kAllFrames;
  // Frames that each sender publishes; kAllFrames: only an acknowledgment.
  std::vector<std::vector<WakeFor>> frames;
  int own_wakes = 0;  // PortWakeup::wake(), at any time
  Mistake mistake = Mistake::kNone;
};

struct WakeupState {
  enum class At : uint8_t { kArm, kSetArmed, kValue, kLook, kWait, kAsleep, kReceive, kDisarm };
  enum class Send : uint8_t { kPublish, kFence, kRead, kDecide, kExchange, kWake };
  struct Sender {
    Send at = Send::kPublish;
    uint8_t frame = 0;
    uint32_t read = 0;
    auto operator<=>(const Sender&) const = default;
  };

  uint32_t word = 0;
  uint8_t acks = 0, others = 0;  // not yet read by the receiver
  At receiver = At::kArm;
  uint32_t seen = 0;
  uint8_t own_wakes = 0;
  std::array<Sender, 2> senders;
  auto operator<=>(const WakeupState&) const = default;
};

class WakeupModel {
 public:
  explicit WakeupModel(WakeupScenario scenario) : scenario_(std::move(scenario)) { explore({}); }

  size_t states() const { return seen_.size(); }
  size_t finals = 0;  // final states: no step is possible, all frames are sent, and the receiver sleeps
  size_t finals_with_acks = 0;    // with an unread acknowledgment
  size_t finals_with_others = 0;  // with another unread frame

 private:
  using At = WakeupState::At;
  using Send = WakeupState::Send;

  template <class Operation>
  static uint32_t changed(uint32_t value, Operation operation) {
    WakeupWord word;
    word.value.store(value);
    operation(word);
    return word.value.load();
  }

  void explore(const WakeupState& first) {
    std::vector<WakeupState> open{first};
    while (!open.empty()) {
      const WakeupState state = open.back();
      open.pop_back();
      if (!seen_.insert(state).second) continue;
      bool stuck = true;
      WakeupState next = state;
      if (receive_step(next)) {
        open.push_back(next);
        stuck = false;
      }
      for (size_t i = 0; i < scenario_.frames.size(); ++i) {
        next = state;
        if (!send_step(next, i)) continue;
        open.push_back(next);
        stuck = false;
      }
      if (state.own_wakes < scenario_.own_wakes) {
        next = state;
        ++next.own_wakes;
        next.word += WakeupWord::kOne;
        wake(next);
        open.push_back(next);  // the wake is optional, so a state with only this step is final
      }
      if (!stuck) continue;
      ++finals;
      finals_with_acks += state.acks != 0;
      finals_with_others += state.others != 0;
    }
  }

  static void wake(WakeupState& state) {
    if (state.receiver == At::kAsleep) state.receiver = At::kReceive;
  }

  bool receive_step(WakeupState& state) const {
    const bool late_value = scenario_.mistake == Mistake::kReadsValueAfterLook;
    At after_arm = At::kLook;
    if (scenario_.mistake == Mistake::kReadsValueAfterArming) after_arm = At::kValue;
    if (scenario_.mistake == Mistake::kDoesNotLook) after_arm = At::kWait;
    switch (state.receiver) {
      case At::kArm:
        if (scenario_.armed_for == WakeFor::kAllFrames) {
          state.word =
              changed(state.word, [&](WakeupWord& word) { state.seen = word.arm(WakeFor::kAllFrames); });
          state.receiver = after_arm;
        } else {
          state.word &= ~WakeupWord::kWithAcks;  // arm() consists of two steps here
          state.receiver = At::kSetArmed;
        }
        return true;
      case At::kSetArmed:
        state.seen = state.word |= WakeupWord::kArmed;
        state.receiver = after_arm;
        return true;
      case At::kValue:
        state.seen = state.word;
        state.receiver = late_value ? At::kWait : At::kLook;
        return true;
      case At::kLook:
        if (state.acks + state.others > 0) {
          state.receiver = At::kReceive;
        } else {
          state.receiver = late_value ? At::kValue : At::kWait;
        }
        return true;
      case At::kWait:  // the kernel compares and sleeps atomically
        state.receiver = state.word == state.seen ? At::kAsleep : At::kReceive;
        return true;
      case At::kAsleep:
        return false;
      case At::kReceive:
        state.acks = state.others = 0;
        state.receiver = At::kDisarm;
        return true;
      case At::kDisarm:
        state.word = changed(state.word, [](WakeupWord& word) { word.disarm(); });
        state.receiver = At::kArm;
        return true;
    }
    return false;
  }

  bool send_step(WakeupState& state, size_t index) const {
    auto& sender = state.senders[index];
    const auto& frames = scenario_.frames[index];
    if (sender.frame == frames.size()) return false;
    const WakeFor kind = frames[sender.frame];
    const uint32_t wanted = kind == WakeFor::kAllFrames ? WakeupWord::kWithAcks : WakeupWord::kArmed;
    const bool early_read = scenario_.mistake == Mistake::kReadsWordBeforePublishing;
    const auto finish = [&] { sender = {Send::kPublish, static_cast<uint8_t>(sender.frame + 1), 0}; };
    switch (sender.at) {
      case Send::kPublish:
        if (early_read) sender.read = state.word;
        sender.at = early_read ? Send::kRead : Send::kFence;
        if (!early_read) ++(kind == WakeFor::kAllFrames ? state.acks : state.others);
        return true;
      case Send::kFence:  // this model does not reorder accesses
        sender.at = Send::kRead;
        return true;
      case Send::kRead:
        if (early_read) {
          ++(kind == WakeFor::kAllFrames ? state.acks : state.others);
        } else {
          sender.read = state.word;
        }
        sender.at = Send::kDecide;
        return true;
      case Send::kDecide:
        if ((sender.read & wanted) == 0) {
          finish();
        } else {
          sender.at = Send::kExchange;
        }
        return true;
      case Send::kExchange:
        if (state.word == sender.read) {
          state.word = changed(state.word, [&](WakeupWord& word) { EXPECT_TRUE(word.claim(kind)); });
          sender.at = Send::kWake;
        } else {
          sender.read = state.word;
          sender.at = Send::kDecide;
        }
        return true;
      case Send::kWake:
        wake(state);
        finish();
        return true;
    }
    return false;
  }

  const WakeupScenario scenario_;
  std::set<WakeupState> seen_;
};

constexpr WakeFor kAck = WakeFor::kAllFrames, kOther = WakeFor::kNonAckFrames;

std::vector<std::vector<std::vector<WakeFor>>> sendings() {
  return {{{kAck}},
          {{kOther}},
          {{kAck, kAck}},
          {{kAck, kOther}},
          {{kOther, kAck}},
          {{kOther, kOther}},
          {{kAck}, {kAck}},
          {{kAck}, {kOther}},
          {{kOther}, {kOther}},
          {{kOther, kAck}, {kOther}},
          {{kOther, kOther}, {kOther, kAck}}};
}

TEST(WakeupProtocol, no_interleaving_leaves_an_unread_frame_with_a_sleeping_receiver) {
  size_t states = 0;
  for (const auto& frames : sendings()) {
    for (const int own_wakes : {0, 1}) {
      const WakeupModel model{{WakeFor::kAllFrames, frames, own_wakes, Mistake::kNone}};
      EXPECT_GT(model.finals, 0U);
      EXPECT_EQ(model.finals_with_acks, 0U);
      EXPECT_EQ(model.finals_with_others, 0U);
      states += model.states();
    }
  }
  EXPECT_GT(states, 10'000U);
}

TEST(WakeupProtocol, only_acknowledgments_wait_for_a_receiver_not_armed_for_them) {
  for (const auto& frames : sendings()) {
    for (const int own_wakes : {0, 1}) {
      const WakeupModel model{{WakeFor::kNonAckFrames, frames, own_wakes, Mistake::kNone}};
      EXPECT_GT(model.finals, 0U);
      EXPECT_EQ(model.finals_with_others, 0U);
    }
  }
  EXPECT_GT((WakeupModel{{WakeFor::kNonAckFrames, {{kAck}}, 0, Mistake::kNone}}.finals_with_acks), 0U);
}

class WakeupProtocolDefects : public testing::TestWithParam<Mistake> {};

TEST_P(WakeupProtocolDefects, each_defect_loses_a_wakeup) {
  for (const WakeFor armed_for : {WakeFor::kAllFrames, WakeFor::kNonAckFrames}) {
    const WakeupModel one{{armed_for, {{kOther, kOther}}, 0, GetParam()}};
    EXPECT_GT(one.finals_with_others, 0U);
    const WakeupModel two{{armed_for, {{kOther}, {kOther}}, 0, GetParam()}};
    EXPECT_GT(two.finals_with_others, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, WakeupProtocolDefects,
                         testing::Values(Mistake::kDoesNotLook, Mistake::kReadsValueAfterArming,
                                         Mistake::kReadsValueAfterLook, Mistake::kReadsWordBeforePublishing));

TEST(WakeupWordTest, operations_change_the_word_as_modeled) {
  for (uint32_t value = 0; value < 64; ++value) {
    WakeupWord word;
    word.value.store(value);
    uint32_t seen = word.arm(WakeFor::kAllFrames);
    EXPECT_EQ(seen, word.value.load());
    EXPECT_EQ(word.value.load(), value | WakeupWord::kArmed | WakeupWord::kWithAcks);
    word.value.store(value);
    seen = word.arm(WakeFor::kNonAckFrames);
    EXPECT_EQ(seen, word.value.load());
    EXPECT_EQ(word.value.load(), (value & ~WakeupWord::kWithAcks) | WakeupWord::kArmed);
    word.disarm();
    EXPECT_EQ(word.value.load(), value & ~(WakeupWord::kArmed | WakeupWord::kWithAcks));
    for (const WakeFor published : {kAck, kOther}) {
      const uint32_t wanted = published == kAck ? WakeupWord::kWithAcks : WakeupWord::kArmed;
      const bool claims = (value & wanted) != 0;
      word.value.store(value);
      EXPECT_EQ(word.claim(published), claims);
      EXPECT_EQ(word.value.load(), claims ? (value & ~3U) + WakeupWord::kOne : value);
    }
  }
}

TEST(WakeupWordTest, wake_count_wraps_at_its_largest_value) {
  WakeupWord word;
  word.value.store(UINT32_MAX);
  EXPECT_TRUE(word.claim(kOther));
  EXPECT_EQ(word.value.load(), 0U);
}

}  // namespace
}  // namespace roci
