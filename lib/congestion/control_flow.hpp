// Flow under congestion control: one direction of a queue pair, from its connection to its reset. It contains the
// plugin's state, the current decision, and statistics.
//
// The sending worker creates it, passes events to it (by FlowRunner, or by ControlCore on a dedicated core) and reads
// the decisions. Each connection of a queue pair has a new flow, and memory is freed only after the thread that runs
// the plugin has released it. A decision therefore cannot reach another queue pair.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/containers/sparse_arena.hpp"
#include "base/time/timing_wheel.hpp"
#include "base/types.hpp"
#include "congestion/profile.hpp"
#include "roci/cc.h"

namespace roci {

// Decision in the transfer between threads: one writer, any number of readers (sequence lock).
class PublishedDecision {
 public:
  void publish(const roci_cc_decision& decision) {
    begin();
    finish(decision);
  }
  // Returns a consistent decision: the newest at the call, or a later one. Waits if the writer was preempted.
  [[nodiscard]] roci_cc_decision read() const;
  // The same without waiting: returns false after some tries if the writer was preempted; `decision` is then unchanged.
  bool try_read(roci_cc_decision& decision) const;

 protected:
  void begin();
  void finish(const roci_cc_decision& decision);

 private:
  static constexpr size_t kWords = sizeof(roci_cc_decision) / sizeof(uint64_t);
  static_assert(sizeof(roci_cc_decision) % sizeof(uint64_t) == 0);
  std::atomic<uint32_t> version_{0};  // odd during a write
  std::array<std::atomic<uint64_t>, kWords> words_{};
};

// State of one flow.
class ControlFlow final : public Timer {
 public:
  // Allocated in `arena`; null if there is no memory. Arena and profile must outlive the flow.
  static ControlFlow* create(SparseArena& arena, const Profile& profile, const roci_cc_flow& info,
                             uint32_t id);
  void destroy();

  const Profile& profile;
  const roci_cc_flow info;
  const uint32_t id;  // for traces; unique on a device until a worker has created 2^28 more flows

  // Owned by the thread that runs the plugin.
  roci_cc_decision decision{};
  Nanos in_state_since{0};
  Nanos last_event{0};
  // Values of the last event, for timer events.
  uint64_t acked = 0, next = 0, in_flight = 0;
  uint32_t least_rtt_ns = 0, hops = 0, flows_at_receiver = 0;
  uint64_t traced_from = 0;  // used by Trace
  [[nodiscard]] void* state() { return tail(); }

  // May be read by any thread.
  PublishedDecision published;
  // Total requests of the plugin. Counts, because a decision may be replaced before it is read.
  std::atomic<uint32_t> probes_requested{0};
  std::atomic<uint32_t> telemetry_requested{0};
  std::atomic<uint64_t> events{0};
  std::atomic<uint32_t> last_kinds{0};
  std::atomic<uint16_t> last_reason{0};  // of the last event that changed the decision
  [[nodiscard]] std::span<std::atomic<uint64_t>> state_nanos() const;
  [[nodiscard]] std::span<std::atomic<uint64_t>> reason_counts() const;
  // Memory of a flow of this profile.
  static size_t bytes_of(const Profile& profile);

  // Owned by the worker.
  void* owner = nullptr;  // set by the engine; null if the queue pair has released the flow
  uint32_t worker = 0;
  uint32_t probes_executed = 0;  // requests of probes_requested that were executed
  uint32_t telemetry_executed = 0;
  uint32_t direction() const { return info.direction; }
  // Newest decision. If the core is preempted while it writes one, the previous decision stays in force; the core
  // announces the flow when the write is complete.
  const roci_cc_decision& newest() {
    published.try_read(read_);
    return read_;
  }

  // Shared by worker and core (control_core.hpp).
  std::atomic<bool> announced{false};
  ControlFlow* next_announced = nullptr;
  ControlFlow* next_ended = nullptr;

 private:
  ControlFlow(const Profile& of, const roci_cc_flow& about, uint32_t number);
  [[nodiscard]] uint8_t* tail() const {
    return reinterpret_cast<uint8_t*>(const_cast<ControlFlow*>(this) + 1);
  }
  [[nodiscard]] std::atomic<uint64_t>* numbers() const;
  roci_cc_decision read_{};  // copy of the worker
};

}  // namespace roci
