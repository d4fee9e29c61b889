// Congestion control of a LiveHost: algorithms, plausible feedback, and invariants of the flows.
#include "congestion/algorithms.hpp"
#include "fuzz/live_host.hpp"
#include "transport/queue_pair/send_gate.hpp"

namespace roci::test {
namespace {

// Names of the built-in algorithms, in alphabetical order.
const std::vector<std::string>& algorithms() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const roci_cc_plugin* plugin : Algorithms().all()) names.emplace_back(plugin->name);
    return names;
  }();
  return kNames;
}

}  // namespace

void LiveHost::configure_control(DeviceConfig& config) const {
  const auto has = [&](uint8_t bit) { return (setup_.control & bit) != 0; };
  CongestionControlConfig& control = config.congestion_control;
  // One profile per algorithm, with or without a fallback.
  for (const std::string& name : algorithms()) {
    control.profiles["a_" + name] = {.algorithm = name,
                                     .parameters = {},
                                     .base_rtt = {},
                                     .fallback = has(Setup::kFallback) ? "dcqcn" : ""};
  }
  control.base_rtt = std::chrono::microseconds{setup_.base_rtt};
  control.line_rate = setup_.line_rate * 1'000'000'000ULL;
  control.trace = has(Setup::kTrace) ? 16 : 0;
  control.peers_send_cnps = !has(Setup::kNoCnps);
  control.notification_point.interval = std::chrono::microseconds{setup_.cnp_every};
  if (has(Setup::kTelemetry))
    config.telemetry = {.udp_port = kTelemetryPort,
                        .begin = has(Setup::kBeginAll) ? TelemetryBegin::kAll : TelemetryBegin::kProbe,
                        .wants_response = true};
  if (has(Setup::kReceiveWindow)) config.extensions.receive_window = 4096;
}

void LiveHost::choose_control(size_t index) {
  if ((setup_.control & Setup::kOthersNone) != 0 && index % 2 != 0) return;
  const size_t further = (setup_.control & Setup::kOneAlgorithm) != 0 ? 0 : index * (setup_.next % 8U);
  const std::string& chosen = algorithms()[(setup_.algorithm + further) % algorithms().size()];
  // Some algorithms require the base round-trip time and are rejected without it.
  if (slots_[index].qp->set_congestion_control("a_" + chosen)) return;
  require(setup_.base_rtt == 0, "every algorithm built in can be chosen");
  must(slots_[index].qp->set_congestion_control("a_dcqcn"));
}

// Continues from earlier feedback, so that the host does not reject all values.
void LiveHost::aim(ExtensionBlock& block, const Step& step, const Slot& slot) const {
  const auto* reliable = dynamic_cast<const ReliableQueuePair*>(&core(slot));
  if (block.ce_echo && reliable != nullptr && reliable->session != nullptr) {
    const EchoedCounts& echoed = reliable->session->echoed(Direction::kRequests);
    block.ce_echo->packets += static_cast<uint32_t>(echoed.packets);
    block.ce_echo->marked += static_cast<uint32_t>(echoed.marked);
  }
  if (!block.int_echo) return;
  block.int_echo->flags = step.stray & 0xfU;
  block.int_echo->age = step.value;
  for (uint32_t i = 0; i < block.int_echo->hop_count; ++i) {
    IntHopValues& hop = block.int_echo->hops[i];
    hop.switch_id = 1 + i + (step.key >> 6);
    hop.port = step.slot;
    hop.time = static_cast<uint32_t>(now_.count()) - (step.psn << 4U) - i;
    // at 100 Gb/s a unit takes 0.64 ns
    hop.tx_units = static_cast<uint32_t>(now_.count() * (128 + step.distance()) / 128 * 25 / 16);
    hop.rate_mbps = ScaledCount::of(100'000U >> (step.key & 7U));
    hop.queue_bytes = ScaledCount::of(uint32_t{Step::number(step.length)} << (step.key >> 3 & 7U));
  }
}

// The response to the outstanding probe.
void LiveHost::aim(Packet& packet, const Step& step, const Slot& slot) const {
  const auto& session = core(slot).session;
  if (session == nullptr || session->probes.sent == kNever || (step.value & 1) != 0) return;
  packet.probe->id = session->probes.id;
  packet.probe->sent = static_cast<uint64_t>(session->probes.sent.count());
}

void LiveHost::check_control() const {
  for (const CongestionFlowReport& flow : side_.device->congestion_report()) {
    require(flow.profile == "none" || !flow.state.empty(), "a flow has a state");
    require(flow.rate != 0, "no flow is stopped for good");
    require(flow.marked_packets <= flow.acked_packets, "no more is marked than has arrived");
    require(flow.in_flight <= flow.sent_bytes, "no more is under way than was sent");
    require(flow.least_rtt <= flow.rtt, "the least round trip is no longer than another");
  }
}

}  // namespace roci::test
