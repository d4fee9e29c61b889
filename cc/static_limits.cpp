// Algorithms with a fixed rate or a fixed window: static_rate and static_window. They test the send gates without a
// control loop, and limit flows on paths with reserved bandwidth or a shaper.
//
// State: none. Units: bit/s, bytes on the line.
#include <algorithm>
#include <iterator>

#include "cc/plugin.hpp"

namespace {

using roci::cc::NoState;

// In double: products of rates and times do not fit into 64 bits, and a double is exact to a byte for real values.
uint64_t bytes_in(double rate, uint64_t nanos) {
  return static_cast<uint64_t>(rate * static_cast<double>(nanos) / 8e9);
}

void ignore(NoState& /*state*/, const roci_cc_flow& /*flow*/, const roci_cc_event& /*event*/,
            const double* /*parameters*/, roci_cc_decision& /*decision*/) {}

constexpr roci_cc_label kStates[] = {{"fixed", "the limit does not change"}};
constexpr roci_cc_label kReasons[] = {{"nothing", "no change"}};

// -------------------------------------------------------------------------------------------------- static_rate

enum RateParameter { kRate, kRateCount };
constexpr roci_cc_parameter kRateParameters[] = {
    {"rate", "bit/s", 0, 0, 1e13, "rate limit; 0: line rate of the port"},
};
static_assert(std::size(kRateParameters) == kRateCount);

void start_rate(NoState& /*state*/, const roci_cc_flow& flow, uint64_t /*now*/, const double* parameters,
                roci_cc_decision& decision) {
  decision.rate = parameters[kRate] > 0 ? static_cast<uint64_t>(parameters[kRate]) : flow.line_rate;
}

// ------------------------------------------------------------------------------------------------ static_window

enum WindowParameter { kWindow, kWindowCount };
constexpr roci_cc_parameter kWindowParameters[] = {
    {"window", "bytes", 0, 0, 1e12, "limit of bytes in flight; 0: line rate * base_rtt"},
};
static_assert(std::size(kWindowParameters) == kWindowCount);

const char* check_window(const roci_cc_flow* flow, const double* parameters) {
  if (parameters[kWindow] > 0 || flow == nullptr || flow->base_rtt_ns > 0) return nullptr;
  return "window: 0 requires base_rtt";
}

void start_window(NoState& /*state*/, const roci_cc_flow& flow, uint64_t /*now*/, const double* parameters,
                  roci_cc_decision& decision) {
  const uint64_t whole = bytes_in(static_cast<double>(flow.line_rate), flow.base_rtt_ns);
  decision.window = parameters[kWindow] > 0 ? static_cast<uint64_t>(parameters[kWindow])
                                            : std::max<uint64_t>(whole, flow.packet_bytes);
}

}  // namespace

extern "C" constinit const roci_cc_plugin roci_cc_static_rate =
    roci::cc::plugin<NoState, start_rate, ignore>({
        .name = "static_rate",
        .summary = "fixed rate",
        .source = "none: for comparison, and for links with reserved bandwidth",
        .capabilities = ROCI_CC_USES_RATE,
        .tables = {kRateParameters, kStates, kReasons},
    });

extern "C" constinit const roci_cc_plugin roci_cc_static_window =
    roci::cc::plugin<NoState, start_window, ignore>({
        .name = "static_window",
        .summary = "fixed window",
        .source = "none: for comparison, and for links with reserved bandwidth",
        .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_USES_WINDOW,
        .tables = {kWindowParameters, kStates, kReasons},
        .check = check_window,
    });
