// Window and retransmission timer of a requester whose peer has no selective repeat: Linux, a NIC, any standard
// responder. Such a peer drops all packets after a lost one, so each loss costs the packets in flight. A time-out
// without a loss costs the same.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

// Loss recovery state of one requester.
class LossRecovery {
 public:
  // The same limit as that of the Linux requester (RXE_MAX_UNACKED_PSNS).
  static constexpr uint16_t kFirstWindow = 128;

  // State after a silence or a time-out. One packet is retransmitted, and the rest only when the acknowledgment shows
  // that it is missing. Packets that are only late would otherwise be sent again into the queue that delays them.
  enum class Probing : uint8_t {
    kNone,
    kFirst,   // the oldest packet was retransmitted
    kSecond,  // it was acknowledged, possibly its first copy; the next packet was retransmitted
  };
  [[nodiscard]] Probing probing() const { return static_cast<Probing>(probing_); }
  void set_probing(Probing state) { probing_ = static_cast<uint8_t>(state) & 3; }

  // Limit of packets in flight.
  [[nodiscard]] uint32_t window() const { return probing_ == 0 ? window_ : 1; }
  // Limit of the bytes that outstanding READs request.
  [[nodiscard]] uint64_t read_window(uint32_t mtu) const { return uint64_t{window_} * mtu; }

  // Duration of the time-out. The attribute of the queue pair is the minimum, since round trips of a slow peer can be
  // longer.
  [[nodiscard]] Nanos timeout(Nanos attribute) const {
    return attribute == kNever ? kNever : std::max(attribute * (1 << doublings_), 2 * smoothed_rtt());
  }
  [[nodiscard]] Nanos smoothed_rtt() const { return Nanos{smoothed_rtt_}; }
  // Silence that a peer without losses hardly ever exceeds.
  [[nodiscard]] Nanos longest_silence() const {
    return std::max(kSilenceRoundTrips * smoothed_rtt(),
                    smoothed_rtt() + kSilenceDeviations * Nanos{int64_t{rtt_deviation_} << kDeviationShift});
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
    if (sample > std::max({part, 2 * least, kMinDelay})) {
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
      acknowledged_ = count & kMaxAcknowledged;
      return;
    }
    set_window(std::min<uint32_t>(window_ + kGrowth, kLargestWindow));
    threshold_ = window_;
    acknowledged_ = frequent & kMaxAcknowledged;
  }
  // A packet is missing. Single losses without queueing are due to the link, and a smaller window would not prevent
  // them.
  void note_loss() {
    if (window_ >= threshold_) {
      const bool frequent = acknowledged_ < window_ / kFrequentPart;
      shrink(queued_ != 0 || frequent ? window_ / 2 : window_ / 16);
    }
    acknowledged_ = 0;
    set_probing(Probing::kNone);
  }
  // Acknowledgments of retransmitted packets show that the following packets are missing too.
  void note_missing() {
    set_probing(Probing::kNone);
    if (window_ >= threshold_) threshold_ = window_;
    window_ = kMinWindow;
    acknowledged_ = 0;
  }
  // A time-out has expired without an acknowledgment.
  void note_timeout() {
    threshold_ = std::max(std::max<uint32_t>(window_, threshold_) / 2, kMinWindow) & kLargestWindow;
    window_ = kMinWindow;
    acknowledged_ = 0;
  }
  // After a time-out while the peer acknowledges other queue pairs: whether it costs no retry, up to kMaxWaits times
  // in a row. IBTA 9.7.6.1.3 permits four times the attribute's time.
  [[nodiscard]] bool may_wait() {
    if (waits_ == kMaxWaits) {
      waits_ = 0;
      return false;
    }
    ++waits_;
    return true;
  }
  void record_progress() {
    tail_probes = 0;
    waits_ = 0;
  }
  // An acknowledgment that follows a retransmission sooner than this is for the first copy. The round trip can be much
  // shorter than before, if a queue has drained. After such a misjudgment no further acknowledgment arrives, and the
  // limit is 0 the next time.
  [[nodiscard]] Nanos earliest_acknowledgment() const {
    return assumed_early_ != 0 ? Nanos{0} : smoothed_rtt() / 2;
  }
  // The oldest packet is retransmitted. `no_progress`: since note_late_acknowledgments().
  void begin_probing(bool no_progress) {
    set_probing(Probing::kFirst);
    assumed_early_ = assumed_early_ != 0 && no_progress ? 1 : 0;
  }
  // Acknowledgments of first copies have arrived. Not `certain`: concluded from the time only.
  void note_late_acknowledgments(bool certain) {
    set_probing(Probing::kNone);
    assumed_early_ = certain ? 0 : 1;
    // A packet that was sent twice yields no sample.
    smoothed_rtt_ = std::min<uint32_t>(smoothed_rtt_, kMaxRtt / 2) * 2;
    set_window(std::max<uint32_t>(window_, threshold_));
    if (doublings_ < kMaxDoublings) ++doublings_;
  }

 private:
  static constexpr uint32_t kMinWindow = 2;
  static constexpr uint32_t kLargestWindow = (1 << 10) - 1;
  // At least kLargestWindow * (1 + 1 / kFrequentPart).
  static constexpr uint32_t kMaxAcknowledged = (1 << 12) - 1;
  static constexpr uint32_t kMaxRtt = 1'000'000'000;  // ns
  static constexpr uint32_t kGrowth = 4;              // packets, for each acknowledged window
  // Losses with fewer than window / kFrequentPart packets between them are congestion.
  static constexpr uint32_t kFrequentPart = 8;
  // A round trip of more than this fraction of the time-out reduces the window.
  static constexpr int kPartOfTimeout = 4;
  static constexpr Nanos kQueueSlack{100'000};  // variation of round trips on idle machines
  static constexpr Nanos kMinDelay{1'000'000};  // a shorter round trip does not reduce the window
  static constexpr int kSilenceRoundTrips = 4;
  static constexpr int kSilenceDeviations = 8;
  static constexpr int kDeviationShift = 10;
  static constexpr uint8_t kMaxWaits = 3;
  // A time-out is at most four times the attribute (IBTA 9.7.6.1.3).
  static constexpr uint8_t kMaxDoublings = 2;

  void set_window(uint32_t packets) { window_ = packets & kLargestWindow; }
  void shrink(uint32_t by) {
    set_window(std::max<uint32_t>(window_ - by, kMinWindow));
    threshold_ = window_;
  }

  uint8_t probing_ : 2 = 0;
  uint8_t doublings_ : 2 = 0;  // of the time-out's duration
  uint8_t waits_ : 2 = 0;      // time-outs in a row that cost no retry
  uint8_t assumed_early_ : 1 = 0;
  uint8_t queued_ : 1 = 0;  // the latest round trip was longer than on an idle path

 public:
  uint8_t tail_probes = 0;  // in the current silence

 private:
  uint16_t rtt_deviation_ = 0;  // mean, in 1,024 ns
  uint32_t window_ : 10 = kFirstWindow;
  uint32_t threshold_ : 10 = kFirstWindow;  // end of slow start
  uint32_t acknowledged_ : 12 = 0;          // packets since the last loss or growth
  uint32_t smoothed_rtt_ = 0;               // ns; 0: no sample
};

}  // namespace roci
