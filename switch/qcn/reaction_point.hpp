// Reaction point of QCN (802.1Q 30.3 and 32.12, formerly 802.1Qau): limits a sender to a rate that falls with each CNM
// and rises again without CNMs.
//
//              CNM: target = rate, rate falls by Gd |Fb|
//   unlimited ----------------------------------------->  limited: in cycles of `byte_reset` and of `time_reset`
//             <-----------------------------------------    up to `threshold` cycles of both: fast recovery, halfway
//                    rate reaches the line rate             beyond it by one of them:         target += ai
//                                                           beyond it by both:                target += hai, 2 hai, ...
//
// A CNM with a rate change (L3QCN 6) sets the rate directly, up or down, and restarts recovery. The rate then rises by
// itself only when no further CNM arrives. cc/reaction_point.hpp has the increase, which the plugin `qcn` shares.
#pragma once

#include <cstdint>

#include "base/rng.hpp"
#include "base/types.hpp"
#include "cc/reaction_point.hpp"

namespace roci {

// Names and values are those of IEEE8021-CN-MIB (rpg...), which are intended for 10 Gb/s.
struct ReactionConfig {
  uint32_t threshold = 5;     // cycles of fast recovery
  Nanos time_reset = 15ms;    // half of it after `threshold` cycles
  Bytes byte_reset{150'000};  // as above
  BitsPerSec ai = 5_Mbps;
  BitsPerSec hai = 50_Mbps;
  BitsPerSec min = 5_Mbps;
  double gd = 1.0 / 128;  // decrease of the rate per unit of feedback

  friend bool operator==(const ReactionConfig&, const ReactionConfig&) = default;
};

// Owned by one thread.
class ReactionPoint {
 public:
  // Maximum decrease of the rate at once (rpgMinDecFac).
  static constexpr double kMaxDecrease = 0.5;

  // `line`: rate at which the limit ends. `seed` of the lengths of cycles, which vary by 15 %.
  ReactionPoint(const ReactionConfig& config, BitsPerSec line, uint64_t seed);

  [[nodiscard]] bool is_limiting() const { return state_.increase_due != 0; }
  // Current limit; the line rate if the sender is not limited.
  [[nodiscard]] BitsPerSec rate() const { return BitsPerSec{static_cast<uint64_t>(state_.current_rate)}; }

  // Processes a CNM with a feedback of 1 to 63. `sending`: current rate of the sender, used if it is not limited yet.
  void slow_down(uint8_t feedback, BitsPerSec sending, Nanos now);
  // Processes a CNM with a rate change `by` in b/s.
  void change(int64_t by, BitsPerSec sending, Nanos now);
  // Accounts for `bytes` that were sent.
  void sent(uint64_t bytes, Nanos now);
  // Applies all cycles that are due. Called before rate(), so that no timer is required.
  void advance(Nanos now);

 private:
  struct State {
    double current_rate;        // b/s
    double target_rate;         // b/s
    uint64_t increase_due = 0;  // ns: end of the time cycle; 0: not limiting
    uint64_t bytes_left = 0;    // of the byte cycle
    uint32_t time_stage = 0;
    uint32_t byte_stage = 0;
  };

  [[nodiscard]] rp::RateControl<State> rates() { return {state_, rules_}; }
  void begin(BitsPerSec sending);
  void start_over(Nanos now);
  [[nodiscard]] uint64_t time_cycle();  // ns
  [[nodiscard]] uint64_t byte_cycle();

  ReactionConfig config_;
  rp::Rules rules_;
  Rng rng_;
  State state_;
};

}  // namespace roci
