#include "transport/queue_pair/telemetry_session.hpp"

#include <algorithm>

#include "transport/packet_sink.hpp"

namespace roci {

TelemetrySession::TelemetrySession(const HostTelemetryConfig& config, uint8_t echo_hops, uint32_t longest)
    : begin_(config.begin), echo_hops_(echo_hops), longest_(longest) {
  source_.port = config.udp_port;
  source_.domain = config.domain;
  source_.domain_flags = config.wants_response ? int_domain_flag::kWantsResponse : uint16_t{0};
  source_.hops = config.hops;
}

void TelemetrySession::note(HopsOf of, const PacketHops& hops, Nanos now) {
  Due& noted = due(of);
  ++noted.packets;
  if (of == HopsOf::kRequests) ++noted_requests_;
  noted.arrived = now;
  noted.path.count = hops.count;
  noted.path.incomplete = hops.incomplete;
  std::copy_n(hops.hops.begin(), hops.count, noted.path.hops.begin());
}

uint8_t TelemetrySession::due_hops(HopsOf of) const { return std::min(due(of).path.count, echo_hops_); }

// If there are more hops than the peer accepts, it gets the newest ones, nearest to this host.
void TelemetrySession::write_echo(const ExtensionView& block, HopsOf of, Nanos now) {
  Due& noted = due(of);
  auto& echo = value_to_write<IntEchoHeader>(block, ExtensionType::kIntEcho);
  unsigned flags = 0;
  if (noted.packets > 1) flags |= IntEchoHeader::kDelayed;
  if (of == HopsOf::kProbe) flags |= IntEchoHeader::kProbe;
  if (noted.path.incomplete || noted.path.count > echo.hops) flags |= IntEchoHeader::kIncomplete;
  echo.flags = static_cast<uint8_t>(flags);
  echo.age.set(static_cast<uint16_t>(
      std::clamp<int64_t>((now - noted.arrived).count() / 1000, 0, EchoedHops::kMaxAge.count() / 1000)));
  std::copy_n(noted.path.hops.begin(), echo.hops, reinterpret_cast<IntHop*>(&echo + 1));
  noted.packets = 0;
}

bool TelemetrySession::take_echo(const ExtensionView& block, HopsOf of, Nanos now) {
  EchoedHops& known = echoed_[of == HopsOf::kResponses ? 1 : 0];
  const IntEchoHeader& header = block.int_echo();
  const std::span<const IntHop> hops = block.hops();
  // Acknowledgments may be reordered: compares the time stamps of the last switch.
  if (!hops.empty() && known.path.count > 0 && now - known.received_at < kComparable) {
    const IntHop& before = known.path.hops[0];
    if (before.switch_port.get() == hops[0].switch_port.get() &&
        static_cast<int32_t>(hops[0].time.get() - before.time.get()) < 0)
      return false;
  }
  ++known.echoes;
  known.received_at = now;
  known.age = Nanos{header.age.get() * int64_t{1000}};
  known.flags = header.flags;
  known.path.count = header.hops;  // at most kMaxIntHops, otherwise the block is rejected
  known.path.incomplete = (header.flags & IntEchoHeader::kIncomplete) != 0;
  std::copy(hops.begin(), hops.end(), known.path.hops.begin());
  return true;
}

bool TelemetrySession::take_report(const IntReport& report, Psn psn, HopsOf of, Nanos now) {
  if (!reports_allowed_.allow(now)) return false;
  ++report_.reports;
  report_.received_at = now;
  report_.psn = psn;
  report_.of = of;
  report_.hop = read_hop(report.hop);
  return true;
}

void TelemetrySession::begin(TransportContext& context, rte_mbuf& frame) const {
  FrameFront front = FrameFront::of(frame);
  const bool done = begin_int(front, source_, longest_) == IntEdit::kDone;
  if (done) front.store(frame);
  context.counters.add(done ? Counter::kIntStarted : Counter::kIntTooLong);
}

}  // namespace roci
