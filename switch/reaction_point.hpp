// The reaction point of QCN (802.1Q 30.3 and 32.12, once 802.1Qau): holds a sender to a rate that falls with each CNM and
// rises again by itself.
//
//                CNM: target = rate, rate falls by Gd |Fb|
//   unlimited  ------------------------------------------->  limited: in cycles of `byte_reset` and of `time_reset`
//              <-------------------------------------------     up to `threshold` cycles of both   fast recovery: halfway
//                       the rate is the line's again            beyond it by one of them           target += ai
//                                                               by both                            target += hai, 2 hai, ...
//
// A CNM that says by how much to change (L3QCN 6) is obeyed instead, up or down, and recovery begins anew: who is told
// keeps to that, and goes up by himself only when he is not told any more.
#pragma once

#include <cstdint>

#include "base/rng.hpp"
#include "base/types.hpp"

namespace roci {

// Names and values are those of IEEE8021-CN-MIB (rpg...), made for 10 Gb/s.
struct ReactionConfig {
  uint32_t threshold = 5;     // cycles of fast recovery
  Nanos time_reset = 15ms;    // half of it beyond `threshold`
  Bytes byte_reset{150'000};  // the same
  BitsPerSec ai = 5_Mbps;
  BitsPerSec hai = 50_Mbps;
  BitsPerSec min = 5_Mbps;
  double gd = 1.0 / 128;  // of the rate for one unit of feedback

  friend bool operator==(const ReactionConfig&, const ReactionConfig&) = default;
};

// Owned by one thread.
class ReactionPoint {
 public:
  // Never less than half of the rate goes at once (rpgMinDecFac).
  static constexpr double kMostDecrease = 0.5;

  // `line`: the rate at which there is no limit any more. `seed`: of the lengths of cycles, which vary by 15 %.
  ReactionPoint(const ReactionConfig& config, BitsPerSec line, uint64_t seed);

  [[nodiscard]] bool is_limiting() const { return limiting_; }
  // When it limits; the line's when not.
  [[nodiscard]] BitsPerSec rate() const { return BitsPerSec{static_cast<uint64_t>(rate_)}; }

  // A CNM with a feedback of 1 to 63. `sending`: how fast the sender is, if it is not limited yet.
  void slow_down(uint8_t feedback, BitsPerSec sending, Nanos now);
  // One that says by how many bits a second to change.
  void change(int64_t by, BitsPerSec sending, Nanos now);
  // So many bytes have gone.
  void sent(uint64_t bytes, Nanos now);
  // Does what has been due by now. Asked before its rate is, so nobody has to wake it up.
  void advance(Nanos now);

 private:
  void begin(BitsPerSec sending);
  void start_over(Nanos now);
  void rise();
  [[nodiscard]] Nanos time_cycle();
  [[nodiscard]] int64_t byte_cycle();

  ReactionConfig config_;
  double line_;
  Rng rng_;
  bool limiting_ = false;
  double rate_;    // b/s
  double target_;  // b/s
  uint32_t byte_stage_ = 0, time_stage_ = 0;
  int64_t bytes_left_ = 0;
  Nanos timer_{0};
};

}  // namespace roci
