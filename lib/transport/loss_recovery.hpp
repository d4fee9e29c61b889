// The window and the retransmission timer of a requester whose peer does not repeat selectively: Linux, a NIC, any standard
// responder. It drops everything behind a lost packet, so each loss costs what is in flight; a time-out without a loss costs as much.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

class LossRecovery {
 public:
  // A requester of Linux has as many packets in flight (RXE_MAX_UNACKED_PSNS).
  static constexpr uint16_t kFirstWindow = 128;

  // State after a silence or a time-out. One packet is sent again, and the rest only when the answer shows that it is missing:
  // packets that are only late would be sent again into the queue that delays them.
  enum class Probing : uint8_t {
    kNone,
    kFirst,   // the oldest packet has been sent again
    kSecond,  // it has been acknowledged, perhaps the first copy of it: the next packet has been sent again
  };
  [[nodiscard]] Probing probing() const { return static_cast<Probing>(probing_); }
  void set_probing(Probing state) { probing_ = static_cast<uint8_t>(state) & 3; }

  // Packets that may be in flight.
  [[nodiscard]] uint32_t window() const { return probing_ == 0 ? window_ : 1; }
  // Bytes that READs may request at a time.
  [[nodiscard]] uint64_t read_window(uint32_t mtu) const { return uint64_t{window_} * mtu; }

  // Ends a time-out. The attribute of the queue pair is the minimum: the round trip of a slow peer can be longer.
  [[nodiscard]] Nanos timeout(Nanos attribute) const {
    return attribute == kNever ? kNever : std::max(attribute * (1 << doublings_), 2 * smoothed_rtt());
  }
  [[nodiscard]] Nanos smoothed_rtt() const { return Nanos{smoothed_rtt_}; }
  // The longest silence of a peer that has lost nothing, of nearly all that it makes.
  [[nodiscard]] Nanos longest_silence() const {
    return std::max(
        kRoundTripsOfSilence * smoothed_rtt(),
        smoothed_rtt() + kDeviationsOfSilence * Nanos{int64_t{rtt_deviation_} << kDeviationShift});
  }

  // `attribute`: the time-out of the queue pair.
  void note_rtt(Nanos sample, Nanos least, Nanos attribute) {
    const auto value = static_cast<uint32_t>(std::clamp<int64_t>(sample.count(), 1, UINT32_MAX));
    if (smoothed_rtt_ == 0) smoothed_rtt_ = value;
    const uint32_t deviation =
        (value > smoothed_rtt_ ? value - smoothed_rtt_ : smoothed_rtt_ - value) >> kDeviationShift;
    rtt_deviation_ = static_cast<uint16_t>(
        std::min<uint32_t>(rtt_deviation_ - rtt_deviation_ / 4U + deviation / 4, UINT16_MAX));
    smoothed_rtt_ = smoothed_rtt_ - smoothed_rtt_ / 8 + value / 8;
    queued_ = sample > 2 * least + kQueueSlack ? 1 : 0;
    const Nanos part = attribute == kNever ? Nanos{0} : attribute / kPartOfTimeout;
    if (sample > std::max({part, 2 * least, kLeastDelay})) {
      shrink(window_ / 4);
    } else {
      doublings_ = 0;
    }
  }
  void note_acknowledged(uint32_t packets) {
    if (window_ < threshold_) {  // slow start after a time-out
      set_window(std::min<uint32_t>(window_ + packets, threshold_));
      return;
    }
    const uint32_t count = acknowledged_ + packets;
    const uint32_t frequent = window_ / kFrequentPart;
    if (count < window_ + frequent) {
      acknowledged_ = count & kMostAcknowledged;
      return;
    }
    set_window(std::min<uint32_t>(window_ + kGrowth, kLargestWindow));
    threshold_ = window_;
    acknowledged_ = frequent & kMostAcknowledged;
  }
  // A packet is missing. Single losses while nothing queues are the wire's, and a smaller window would not prevent them.
  void note_loss() {
    if (window_ >= threshold_) {
      const bool frequent = acknowledged_ < window_ / kFrequentPart;
      shrink(queued_ != 0 || frequent ? window_ / 2 : window_ / 16);
    }
    acknowledged_ = 0;
    set_probing(Probing::kNone);
  }
  // Answers to what has been sent again show that the rest is missing too.
  void note_missing() {
    set_probing(Probing::kNone);
    if (window_ >= threshold_) threshold_ = window_;
    window_ = kLeastWindow;
    acknowledged_ = 0;
  }
  // Nothing was heard for a whole time-out.
  void note_timeout() {
    threshold_ = std::max(std::max<uint32_t>(window_, threshold_) / 2, kLeastWindow) & kLargestWindow;
    window_ = kLeastWindow;
    acknowledged_ = 0;
  }
  // After a time-out of a queue pair whose peer answers others: whether it may pass without the cost of a retry. IBTA 9.7.6.1.3 allows
  // four times the attribute's time.
  [[nodiscard]] bool may_wait() {
    if (waits_ == kMostWaits) {
      waits_ = 0;
      return false;
    }
    ++waits_;
    return true;
  }
  void note_progress() {
    tail_probes = 0;
    waits_ = 0;
  }
  // Sooner than this after a packet has been sent again, its acknowledgment is that of the first copy. A round trip can be much shorter
  // than those before, where a queue has become empty: no answer follows the misjudged one, and the next time the answer counts.
  [[nodiscard]] Nanos earliest_answer() const { return judged_early_ != 0 ? Nanos{0} : smoothed_rtt() / 2; }
  // The oldest packet is sent again. `no_progress`: since note_late_answers().
  void begin_probing(bool no_progress) {
    set_probing(Probing::kFirst);
    judged_early_ = judged_early_ != 0 && no_progress ? 1 : 0;
  }
  // Answers to first copies have come. Not `certain`: as the time shows.
  void note_late_answers(bool certain) {
    set_probing(Probing::kNone);
    judged_early_ = certain ? 0 : 1;
    smoothed_rtt_ = std::min<uint32_t>(smoothed_rtt_, kLongestRtt / 2) *
                    2;  // no sample shows it, as a packet has been sent twice
    set_window(std::max<uint32_t>(window_, threshold_));
    if (doublings_ < kMostDoublings) ++doublings_;
  }

 private:
  static constexpr uint32_t kLeastWindow = 2;
  static constexpr uint32_t kLargestWindow = (1 << 10) - 1;
  static constexpr uint32_t kMostAcknowledged =
      (1 << 12) - 1;                                      // above kLargestWindow * (1 + 1 / kFrequentPart)
  static constexpr uint32_t kLongestRtt = 1'000'000'000;  // ns
  static constexpr uint32_t kGrowth = 4;                  // packets, for each window that is acknowledged
  static constexpr uint32_t kFrequentPart =
      8;  // of a window: losses with fewer packets in between are congestion
  static constexpr int kPartOfTimeout =
      4;  // a queue that delays by more of the time-out needs a smaller window
  static constexpr Nanos kQueueSlack{100'000};    // of round trips on idle machines
  static constexpr Nanos kLeastDelay{1'000'000};  // that reduces a window
  static constexpr int kRoundTripsOfSilence = 4;
  static constexpr int kDeviationsOfSilence = 8;
  static constexpr int kDeviationShift = 10;
  static constexpr uint8_t kMostWaits = 3;
  static constexpr uint8_t kMostDoublings =
      2;  // a time-out is at most four times the attribute's (IBTA 9.7.6.1.3)

  void set_window(uint32_t packets) { window_ = packets & kLargestWindow; }
  void shrink(uint32_t by) {
    set_window(std::max<uint32_t>(window_ - by, kLeastWindow));
    threshold_ = window_;
  }

  uint8_t probing_ : 2 = 0;
  uint8_t doublings_ : 2 = 0;  // of the time-out
  uint8_t waits_ : 2 = 0;      // time-outs that have cost no retry
  uint8_t judged_early_ : 1 = 0;
  uint8_t queued_ : 1 = 0;  // the latest round trip was longer than those of an idle path

 public:
  uint8_t tail_probes = 0;  // in this silence

 private:
  uint16_t rtt_deviation_ = 0;  // mean, in 1,024 ns
  uint32_t window_ : 10 = kFirstWindow;
  uint32_t threshold_ : 10 = kFirstWindow;  // at which slow start ends
  uint32_t acknowledged_ : 12 = 0;          // packets, since the last loss or growth
  uint32_t smoothed_rtt_ = 0;               // ns; 0: none known
};

}  // namespace roci
