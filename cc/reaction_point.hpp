// Rate control of a QCN or DCQCN reaction point (RP): decrease at feedback, increase without feedback. Used by qcn.cpp,
// dcqcn.cpp and the shapers of the switch. These determine the size of a decrease and the lengths of cycles.
//
// RC is the current rate, TR the target rate. Feedback decreases RC and restarts the rate timer and the byte counter.
// Each cycle of the timer or of the counter increases its stage by 1 and then the rates:
//
//   fast recovery           larger stage below `active_from`                                   RC = (RC + TR) / 2
//   active increase         otherwise                                      TR += R_AI          RC = (RC + TR) / 2
//   hyper-active increase   smaller stage above `hyper_above`, by i        TR += i * R_HAI     RC = (RC + TR) / 2
//
// The limit ends when RC reaches the maximum rate.
//
// Sources: IEEE 802.1Q 30.3 and 32.12 (802.1Qau); Zhu et al., SIGCOMM 2015 (DCQCN). The header includes only standard
// headers, because the switch includes it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>

namespace roci::rp {

// The tables of states of the plugins have this order.
enum class Phase : uint16_t { kLineRate, kFastRecovery, kActiveIncrease, kHyperIncrease };

struct Rules {
  double max = 0;               // bit/s: maximum rate
  double min = 0;               // bit/s: minimum of RC after a decrease
  double ai = 0;                // bit/s: R_AI
  double hai = 0;               // bit/s: R_HAI
  double active_from = 0;       // stage
  double hyper_above = 0;       // stage
  bool hyper_grows = true;      // hyper-active increase i adds i * R_HAI; otherwise each adds R_HAI
  bool counts_bytes = true;     // otherwise the timer alone determines the phase
  bool reduces_target = false;  // the first cycle reduces a TR far above RC (802.1Q 32.12.2)
  uint32_t max_cycles = 64;     // maximum number of cycles that one call applies
};

// Members that RateControl uses. The caller owns the state.
template <class State>
concept HasRates = requires(State& state) {
  { state.current_rate } -> std::same_as<double&>;    // RC, bit/s
  { state.target_rate } -> std::same_as<double&>;     // TR, bit/s
  { state.increase_due } -> std::same_as<uint64_t&>;  // ns: end of the timer's cycle; 0: no limit
  { state.time_stage } -> std::same_as<uint32_t&>;    // cycles of the timer since the last decrease
  { state.byte_stage } -> std::same_as<uint32_t&>;
};

template <HasRates State>
class RateControl {
 public:
  RateControl(State& state, const Rules& rules) : s_(state), rules_(rules) {}

  [[nodiscard]] bool is_limiting() const { return s_.increase_due != 0; }

  [[nodiscard]] Phase phase() const {
    if (!is_limiting()) return Phase::kLineRate;
    const uint32_t larger = std::max(s_.time_stage, s_.byte_stage);
    if (larger == 0 || larger < rules_.active_from) return Phase::kFastRecovery;
    return smaller_stage() > rules_.hyper_above ? Phase::kHyperIncrease : Phase::kActiveIncrease;
  }

  // Decreases RC to the fraction `left`. `sets_target`: TR becomes the RC before it. The caller then restarts timer and
  // counter.
  void cut(double left, bool sets_target) {
    if (sets_target) s_.target_rate = s_.current_rate;
    s_.current_rate = std::max(s_.current_rate * left, rules_.min);
  }

  // Byte counter: `bytes` were sent, and `left` bytes remained in its cycle. `next()` returns the length of the next
  // cycle. Subtracts the cycles that have ended from `bytes`, and sets `left` to the length of the cycle that has not.
  // Returns the phase of the last increase, if there was one; kLineRate: the increase has ended the limit.
  template <class Cycle>
  std::optional<Phase> count(uint64_t& bytes, uint64_t& left, const Cycle& next) {
    std::optional<Phase> last;
    for (uint32_t i = 0; i < rules_.max_cycles && is_limiting() && bytes >= left; ++i) {
      bytes -= left;
      s_.byte_stage = std::min(s_.byte_stage + 1, kMaxStage);
      left = next();
      last = increase();
    }
    return last;
  }

  // Rate timer: applies the cycles that have ended by `now`. `next` and the result are those of count().
  template <class Cycle>
  std::optional<Phase> pass_time(uint64_t now, const Cycle& next) {
    std::optional<Phase> last;
    for (uint32_t i = 0; i < rules_.max_cycles && is_limiting() && s_.increase_due <= now; ++i) {
      s_.time_stage = std::min(s_.time_stage + 1, kMaxStage);
      s_.increase_due += next();
      last = increase();
    }
    // Cycles above the maximum are skipped.
    if (is_limiting() && s_.increase_due <= now) s_.increase_due = now + next();
    return last;
  }

 private:
  static constexpr uint32_t kMaxStage = 1U << 20;
  // Distance from the maximum that counts as reached, as a fraction of it: halving the distance never reaches it.
  static constexpr double kReachedDistance = 1e-3;
  // A TR of more than kTargetTooFar * RC is divided by kTargetCut.
  static constexpr double kTargetTooFar = 10;
  static constexpr double kTargetCut = 8;

  [[nodiscard]] uint32_t smaller_stage() const {
    return rules_.counts_bytes ? std::min(s_.time_stage, s_.byte_stage) : s_.time_stage;
  }

  Phase increase() {
    Phase now = phase();
    if (rules_.reduces_target && std::max(s_.time_stage, s_.byte_stage) == 1 &&
        s_.target_rate > kTargetTooFar * s_.current_rate) {
      s_.target_rate /= kTargetCut;
      now = Phase::kFastRecovery;
    } else if (now == Phase::kHyperIncrease) {
      s_.target_rate += rules_.hai * (rules_.hyper_grows ? smaller_stage() - rules_.hyper_above : 1);
    } else if (now == Phase::kActiveIncrease) {
      s_.target_rate += rules_.ai;
    }
    s_.target_rate = std::min(s_.target_rate, rules_.max);
    s_.current_rate = std::min((s_.current_rate + s_.target_rate) / 2, rules_.max);
    if (rules_.max - s_.current_rate >= rules_.max * kReachedDistance) return now;
    s_.current_rate = s_.target_rate = rules_.max;
    s_.increase_due = 0;
    return Phase::kLineRate;
  }

  State& s_;
  const Rules& rules_;
};

}  // namespace roci::rp
