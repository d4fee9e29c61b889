// Algorithms with a fixed rate or a fixed window: static_rate and static_window. They test the send gates without a
// control loop, and limit flows on paths with reserved bandwidth or a shaper.
//
// State: none. Units: bit/s, bytes on the line.
#include <algorithm>
#include <iterator>

#include "roci/cc.h"

namespace {

// In double: products of rates and times do not fit into 64 bits, and a double is exact to a byte for real values.
uint64_t bytes_in(double rate, uint64_t nanos) {
  return static_cast<uint64_t>(rate * static_cast<double>(nanos) / 8e9);
}

void ignore(void* /*state*/, const roci_cc_flow* /*flow*/, const roci_cc_event* /*event*/,
            const double* /*parameters*/, roci_cc_decision* /*decision*/) {}

constexpr roci_cc_label kStates[] = {{"fixed", "the limit does not change"}};
constexpr roci_cc_label kReasons[] = {{"nothing", "no change"}};

// -------------------------------------------------------------------------------------------------- static_rate

enum RateParameter { kRate, kRateCount };
constexpr roci_cc_parameter kRateParameters[] = {
    {"rate", "bit/s", 0, 0, 1e13, "rate limit; 0: line rate of the port"},
};
static_assert(std::size(kRateParameters) == kRateCount);

void start_rate(void* /*state*/, const roci_cc_flow* flow, uint64_t /*now*/, const double* parameters,
                roci_cc_decision* decision) {
  decision->rate = parameters[kRate] > 0 ? static_cast<uint64_t>(parameters[kRate]) : flow->line_rate;
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

void start_window(void* /*state*/, const roci_cc_flow* flow, uint64_t /*now*/, const double* parameters,
                  roci_cc_decision* decision) {
  const uint64_t whole = bytes_in(static_cast<double>(flow->line_rate), flow->base_rtt_ns);
  decision->window = parameters[kWindow] > 0 ? static_cast<uint64_t>(parameters[kWindow])
                                             : std::max<uint64_t>(whole, flow->packet_bytes);
}

}  // namespace

extern "C" const roci_cc_plugin roci_cc_static_rate = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "static_rate",
    .summary = "fixed rate",
    .source = "none: for comparison, and for links with reserved bandwidth",
    .capabilities = ROCI_CC_USES_RATE,
    .state_bytes = 0,
    .receiver_state_bytes = 0,
    .parameters = kRateParameters,
    .parameter_count = kRateCount,
    .state_count = std::size(kStates),
    .states = kStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = nullptr,
    .start = start_rate,
    .event = ignore,
    .receive = nullptr,
};

extern "C" const roci_cc_plugin roci_cc_static_window = {
    .abi = ROCI_CC_ABI,
    .size = sizeof(roci_cc_plugin),
    .name = "static_window",
    .summary = "fixed window",
    .source = "none: for comparison, and for links with reserved bandwidth",
    .capabilities = ROCI_CC_NEEDS_ACK | ROCI_CC_USES_WINDOW,
    .state_bytes = 0,
    .receiver_state_bytes = 0,
    .parameters = kWindowParameters,
    .parameter_count = kWindowCount,
    .state_count = std::size(kStates),
    .states = kStates,
    .reasons = kReasons,
    .reason_count = std::size(kReasons),
    .reserved = 0,
    .check = check_window,
    .start = start_window,
    .event = ignore,
    .receive = nullptr,
};
