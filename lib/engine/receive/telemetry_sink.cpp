#include "engine/receive/telemetry_sink.hpp"

#include "wire/int/telemetry_edit.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

bool TelemetrySink::is_for_port(const FrameView& view, const rte_mbuf& frame) const {
  const bool ipv4 = view.kind == FrameKind::kIpv4;
  if (!ipv4 && view.kind != FrameKind::kIpv6) return false;
  if ((ipv4 ? view.ipv4().protocol : view.ip6().next_header) != kProtocolUdp) return false;
  return view.l4_offset + sizeof(UdpHeader) <= rte_pktmbuf_data_len(&frame) &&
         view.udp().destination_port.get() == port_;
}

IntView TelemetrySink::parse(rte_mbuf& frame) const {
  const auto attempt = [&] {
    return parse_int({rte_pktmbuf_mtod(&frame, const uint8_t*), rte_pktmbuf_data_len(&frame)},
                     rte_pktmbuf_pkt_len(&frame), port_);
  };
  const IntView view = attempt();
  const bool cut = view.outcome == IntOutcome::kTruncated && frame.nb_segs > 1;
  return cut && rte_pktmbuf_linearize(&frame) == 0 ? attempt() : view;
}

std::optional<Qpn> TelemetrySink::destination_of(rte_mbuf& frame) const {
  const IntView view = parse(frame);
  if (!view.accepted()) return std::nullopt;
  const uint32_t bth = view.shim_offset() + view.bytes();
  const uint32_t end = bth + static_cast<uint32_t>(sizeof(Bth));
  if (view.shim().next.get() != kRoceUdpPort || end > view.udp.end || end > rte_pktmbuf_data_len(&frame))
    return std::nullopt;
  return Qpn{reinterpret_cast<const Bth*>(view.frame + bth)->destination_qp.get()};
}

// Hops without data, or with an unknown format, mark the path as incomplete.
void TelemetrySink::read(const IntView& view, PacketHops& out) const {
  out.count = 0;
  out.incomplete = view.header().has(IntMdHeader::kHopsExceeded) ||
                   view.header().has(IntMdHeader::kMtuExceeded) || view.hop_count > kMaxIntHops;
  for (uint32_t i = 0; i < view.hop_count && out.count < kMaxIntHops; ++i) {
    if (const auto hop = view.hop(i, domain_)) {
      out.hops[out.count++] = write_hop(*hop);
    } else {
      out.incomplete = true;
    }
  }
}

rte_mbuf* TelemetrySink::strip(rte_mbuf* frame, uint32_t slot, Counters& counters) {
  IntView view = parse(*frame);
  if (!view.accepted()) {
    counters.add(Counter::kIntMalformed);
    return nullptr;
  }
  if (view.header().has(IntMdHeader::kDiscard)) {
    counters.add(Counter::kIntDiscarded);
    return nullptr;
  }
  read(view, hops_[slot]);
  rte_mbuf* own = frame;
  if (!RTE_MBUF_DIRECT(frame) || rte_mbuf_refcnt_read(frame) != 1) {
    own = rte_pktmbuf_copy(frame, pool_, 0, UINT32_MAX);
    if (own == nullptr) {
      counters.add(Counter::kIntNoBuffer);
      return nullptr;
    }
    rte_pktmbuf_free(frame);
    view = parse(*own);
  }
  FrameFront front = FrameFront::of(*own);
  strip_int(front, view);
  front.store(*own);
  counters.add(Counter::kIntStripped);
  return own;
}

}  // namespace roci
