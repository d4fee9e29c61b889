// Runs the plugins of many flows in one thread, a worker or a dedicated core. Manages their timers and records events
// and decisions in a trace.
#pragma once

#include <cstdint>

#include "base/time/timing_wheel.hpp"
#include "base/types.hpp"
#include "congestion/control_flow.hpp"
#include "congestion/trace.hpp"

namespace roci {

// Owned by one thread.
class FlowRunner {
 public:
  // `trace`: number of events that are recorded; 0: none.
  explicit FlowRunner(uint32_t trace) : trace_(trace) {}

  // Starts a flow and computes its first decision. The flow is not yet assigned to a runner.
  static void begin(ControlFlow& flow, Nanos now);
  // Adds a started flow to this runner.
  void adopt(ControlFlow& flow);
  // Passes an event to the flow's plugin; the caller sets all members of `event`.
  void run(ControlFlow& flow, const roci_cc_event& event);
  // Removes an ended flow and cancels its timers.
  void stop(ControlFlow& flow);

  // Runs expired timers and calls changed(ControlFlow&) for each flow that received a timer event.
  template <class Changed>
  bool advance(Nanos now, Changed&& changed) {
    return timers_.advance(now, [&](Timer& timer) {
      auto& flow = static_cast<ControlFlow&>(timer);
      run_timers(flow, now);
      changed(flow);
    }) > 0;
  }
  [[nodiscard]] Nanos next_deadline() const { return timers_.next_deadline(); }
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] uint64_t events() const { return events_; }

 private:
  void run_timers(ControlFlow& flow, Nanos now);
  void set_timer(ControlFlow& flow);

  TimingWheel timers_;
  Trace trace_;
  uint64_t events_ = 0;
};

// Corrects a decision before use: expired timers are moved to the future, unknown states and reasons become 0.
void sanitize(const roci_cc_plugin& plugin, uint64_t now, roci_cc_decision& decision);
// Calls the plugin exactly as the engine does.
void call_plugin(const roci_cc_plugin& plugin, void* state, const roci_cc_flow& flow,
                 const roci_cc_event& event, const double* values, roci_cc_decision& decision);

}  // namespace roci
