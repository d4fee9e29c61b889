// Priority-based flow control (802.1Q 36) of a host's port, for all its workers.
//
//   a pause comes in -> the first worker takes it -> every worker looks once a round which priorities are stopped
//   frames wait      -> every worker says whether it keeps up -> the first one tells the neighbour
//
// Queue pairs of a stopped priority are not served and are put aside (worker.hpp); the others go on.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/types.hpp"
#include "port/pause_state.hpp"
#include "roci/flow_control_config.hpp"
#include "telemetry/counters.hpp"
#include "wire/frame.hpp"
#include "wire/pause.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

// A frame to whoever is at the other end of the line, and not of the network.
constexpr bool is_mac_control(const EthernetHeader& ethernet) {
  return ethernet.ether_type.get() == kEtherTypeMacControl && ethernet.destination == kMacControlGroup;
}

class FlowControl {
 public:
  static constexpr BitsPerSec kAssumedRate = 100_Gbps;

  FlowControl(const FlowControlConfig& config, BitsPerSec link_rate, const MacAddress& mac);

  [[nodiscard]] bool enabled() const { return config_.enabled(); }
  // Whether the neighbour is told when this host does not keep up.
  [[nodiscard]] bool tells() const { return config_.enabled() && config_.xoff > 0; }
  [[nodiscard]] unsigned priority_of(const RocePath& path) const {
    return config_.trust_pcp ? path.priority : path.traffic_class >> 5;
  }

  // The first worker's. A MAC control frame has come in.
  void take(const rte_mbuf* frame, Nanos now, Counters& counters);
  // Ends what has been stopped for too long.
  void watch(Nanos now, Counters& counters);
  // Whether the neighbour is to be told something now; told() when it has been, which is what write() has written.
  [[nodiscard]] bool must_tell(Nanos now) const;
  void write(std::span<uint8_t, kPauseFrameBytes> out) const;
  void told(Nanos now);
  [[nodiscard]] Nanos tell_again_at() const { return again_; }

  // Any worker's. Priorities that are stopped, a bit for each, and when the first of some goes on.
  [[nodiscard]] uint8_t stopped(Nanos now) const;
  [[nodiscard]] Nanos over(uint8_t priorities) const;
  // So many frames wait for this worker.
  void note_waiting(uint32_t worker, uint32_t frames);

 private:
  // The longest pause there is, so that it is rarely said again; the end is said too.
  static constexpr uint16_t kQuanta = kMaxPauseQuanta;

  void publish(unsigned priority);
  [[nodiscard]] bool backed_up() const { return backed_up_.load(std::memory_order_relaxed) != 0; }

  const FlowControlConfig config_;
  const BitsPerSec rate_;
  const MacAddress mac_;
  const PauseWatchdogConfig watchdog_;
  // The first worker's.
  std::array<PauseState, kPriorities> heard_;
  bool told_to_stop_ = false;
  Nanos again_ = kNever;
  // Written by the first worker, read by all: when each priority goes on.
  std::array<std::atomic<int64_t>, kPriorities> over_{};
  std::atomic<uint32_t> backed_up_{0};  // workers that do not keep up, a bit for each
};

}  // namespace roci
