// Runs the plugins of many flows for one thread: a worker, or a core that does nothing else. Keeps their timers and traces
// what they were told and decided.
#pragma once

#include <cstdint>

#include "base/timing_wheel.hpp"
#include "base/types.hpp"
#include "congestion/control_flow.hpp"
#include "congestion/trace.hpp"

namespace roci {

// Owned by one thread.
class FlowRunner {
 public:
  // `trace`: events that are kept; 0 for none.
  explicit FlowRunner(uint32_t trace) : trace_(trace) {}

  // The flow begins; afterwards it has a decision, and belongs to nobody yet.
  static void begin(ControlFlow& flow, Nanos now);
  // Takes over a flow that has begun.
  void adopt(ControlFlow& flow);
  // Tells the flow's plugin; event.now_ns, kinds and the rest are set by the caller.
  void run(ControlFlow& flow, const roci_cc_event& event);
  // The flow has ended: its timers are gone.
  void stop(ControlFlow& flow);

  // Runs what is due and calls changed(ControlFlow&) for each flow that was told of a timer.
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

// What an engine makes of any decision before it is used: timers that are not past, labels that exist.
void sanitize(const roci_cc_plugin& plugin, uint64_t now, roci_cc_decision& decision);
// Calls the plugin as the engine does.
void call_plugin(const roci_cc_plugin& plugin, void* state, const roci_cc_flow& flow,
                 const roci_cc_event& event, const double* values, roci_cc_decision& decision);

}  // namespace roci
