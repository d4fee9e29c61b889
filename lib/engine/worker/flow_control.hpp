// Priority-based flow control (802.1Q 36) of a host's port, shared by all its workers.
//
//   received pause -> processed by the first worker -> each worker reads the stopped priorities once per round
//   frames wait    -> each worker reports whether it is congested -> the first worker sends a pause to the link partner
//
// Queue pairs of a stopped priority are paused and not served (transmit_scheduler.hpp); other queue pairs continue.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/types.hpp"
#include "port/pause_state.hpp"
#include "roci/flow_control_config.hpp"
#include "telemetry/counters.hpp"
#include "wire/net/pause.hpp"
#include "wire/roce/frame.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

// Whether the frame is for the link partner only, and is not forwarded.
constexpr bool is_mac_control(const EthernetHeader& ethernet) {
  return ethernet.ether_type.get() == kEtherTypeMacControl && ethernet.destination == kMacControlGroup;
}

class FlowControl {
 public:
  static constexpr BitsPerSec kAssumedRate = 100_Gbps;

  FlowControl(const FlowControlConfig& config, BitsPerSec link_rate, const MacAddress& mac);

  [[nodiscard]] bool enabled() const { return config_.enabled(); }
  // Whether this host sends pauses when it is congested.
  [[nodiscard]] bool sends_pauses() const { return config_.enabled() && config_.xoff > 0; }
  [[nodiscard]] unsigned priority_of(const RocePath& path) const {
    return config_.trust_pcp ? path.priority : path.traffic_class >> 5;
  }

  // Called by the first worker for a received MAC control frame.
  void take(const rte_mbuf* frame, Nanos now, Counters& counters);
  // Ends pauses that exceed the watchdog's limit.
  void watch(Nanos now, Counters& counters);
  // Whether a pause frame must be sent now. After write() and transmission, the caller calls on_pause_sent().
  [[nodiscard]] bool must_send_pause(Nanos now) const;
  void write(std::span<uint8_t, kPauseFrameBytes> out) const;
  void on_pause_sent(Nanos now);
  [[nodiscard]] Nanos next_pause() const { return repeat_at_; }

  // Any worker: a queue pair of the priority waits for the end of a pause.
  void note_paused(unsigned priority) {
    starved_.fetch_or(static_cast<uint8_t>(1U << priority), std::memory_order_relaxed);
  }
  // Any worker: the queue pairs of the priorities were served, or none waits.
  void note_served(uint8_t priorities) {
    if ((starved_.load(std::memory_order_relaxed) & priorities) != 0)
      starved_.fetch_and(static_cast<uint8_t>(~priorities), std::memory_order_relaxed);
  }
  // Any worker: bitmap of the stopped priorities; and the time at which the first of `priorities` resumes.
  [[nodiscard]] uint8_t stopped(Nanos now) const;
  [[nodiscard]] Nanos resume_time(uint8_t priorities) const;
  // Sets the number of frames that wait for this worker.
  void note_waiting(uint32_t worker, uint32_t frames);

 private:
  // The longest possible pause, so that it rarely has to be repeated. The end of congestion is sent explicitly.
  static constexpr uint16_t kQuanta = kMaxPauseQuanta;

  void publish(unsigned priority);
  [[nodiscard]] bool is_congested() const { return congested_workers_.load(std::memory_order_relaxed) != 0; }

  const FlowControlConfig config_;
  const BitsPerSec rate_;
  const MacAddress mac_;
  const PauseWatchdogConfig watchdog_;
  // Used by the first worker.
  std::array<PauseState, kPriorities> pauses_;
  bool pause_sent_ = false;
  Nanos repeat_at_ = kNever;
  // Time at which each priority resumes. Written by the first worker, read by all workers.
  std::array<std::atomic<int64_t>, kPriorities> resume_times_{};
  std::atomic<uint32_t> congested_workers_{0};  // bitmap of the congested workers
  // Bitmap of the priorities with queue pairs that were paused and not served since.
  std::atomic<uint8_t> starved_{0};
};

}  // namespace roci
