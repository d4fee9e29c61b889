// A flow under congestion control: one direction of a queue pair, from the moment it is connected until it is reset. It holds
// the plugin's state and decision, and what people want to see of them.
//
// The sending worker makes it, gives it events (FlowRunner, or ControlCore on a core of its own) and reads what was decided. A
// flow is one life of one queue pair: the next life has another one, and this one is not freed before whoever runs its plugin
// has let go of it. So no decision can reach a queue pair that it was not made for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/sparse_arena.hpp"
#include "base/timing_wheel.hpp"
#include "base/types.hpp"
#include "congestion/profile.hpp"
#include "roci/cc.h"

namespace roci {

// What was decided, as it crosses from one thread to another: one writer, any readers.
class PublishedDecision {
 public:
  void publish(const roci_cc_decision& decision) {
    begin();
    finish(decision);
  }
  // A whole one, the newest when the call began or a later one. Waits for a writer who was interrupted in the middle.
  [[nodiscard]] roci_cc_decision read() const;
  // The same for whoever may not wait: with such a writer it is false after some tries, and `decision` as it was.
  bool try_read(roci_cc_decision& decision) const;

 protected:
  void begin();
  void finish(const roci_cc_decision& decision);

 private:
  static constexpr size_t kWords = sizeof(roci_cc_decision) / sizeof(uint64_t);
  static_assert(sizeof(roci_cc_decision) % sizeof(uint64_t) == 0);
  std::atomic<uint32_t> version_{0};  // odd while it is written
  std::array<std::atomic<uint64_t>, kWords> words_{};
};

class ControlFlow final : public Timer {
 public:
  // In `arena`, which outlives it; null when it has no memory. The profile outlives it too.
  static ControlFlow* create(SparseArena& arena, const Profile& profile, const roci_cc_flow& info,
                             uint32_t id);
  void destroy();

  const Profile& profile;
  const roci_cc_flow info;
  const uint32_t id;  // in traces: of a device, not used again before 2^32 others

  // Whoever runs the plugin.
  roci_cc_decision decision{};
  Nanos in_state_since{0};
  Nanos last_event{0};
  // Of the last event, for those of timers.
  uint64_t acked = 0, next = 0, in_flight = 0;
  uint32_t least_rtt_ns = 0, hops = 0, flows_at_receiver = 0;
  uint64_t traced_from = 0;  // Trace's
  [[nodiscard]] void* state() { return tail(); }

  // Any thread reads these.
  PublishedDecision published;
  // Requests of the plugin so far: a decision may be displaced before it is read.
  std::atomic<uint32_t> probes_asked{0};
  std::atomic<uint32_t> telemetry_asked{0};
  std::atomic<uint64_t> events{0};
  std::atomic<uint32_t> last_kinds{0};
  std::atomic<uint16_t> last_reason{0};  // of the last event that changed something
  [[nodiscard]] std::span<std::atomic<uint64_t>> state_nanos() const;
  [[nodiscard]] std::span<std::atomic<uint64_t>> reason_counts() const;
  // Bytes that a flow of this profile takes.
  static size_t bytes_of(const Profile& profile);

  // The worker's.
  void* owner = nullptr;  // the engine's; null when the queue pair has gone on without it
  uint32_t worker = 0;
  uint32_t probes_made = 0;  // of those asked for
  uint32_t telemetry_made = 0;
  uint32_t direction() const { return info.direction; }
  // What is published. While a core is interrupted in the middle of another decision the one before goes on; the core says
  // when it is done.
  const roci_cc_decision& newest() {
    published.try_read(read_);
    return read_;
  }

  // Between the two (control_core.hpp).
  std::atomic<bool> announced{false};
  ControlFlow* next_announced = nullptr;
  ControlFlow* next_ended = nullptr;

 private:
  ControlFlow(const Profile& of, const roci_cc_flow& about, uint32_t number);
  [[nodiscard]] uint8_t* tail() const {
    return reinterpret_cast<uint8_t*>(const_cast<ControlFlow*>(this) + 1);
  }
  [[nodiscard]] std::atomic<uint64_t>* numbers() const;
  roci_cc_decision read_{};  // the worker's, latest
};

}  // namespace roci
