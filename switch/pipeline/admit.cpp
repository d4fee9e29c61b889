// Admission stage: queues a frame at its egress port, or drops it with a reason. Applies the port's MTU and limits, the
// shapers to other switches, the shared buffer and the AQM of the class.
#include <rte_mbuf.h>

#include "switch/pipeline/frame_edit.hpp"
#include "switch/pipeline/switch_worker.hpp"

namespace roci {

// A port that ends telemetry removes its headers, so the MTU applies to the packet without them.
bool SwitchWorker::fits_mtu(const rte_mbuf& frame, const SwitchPort& out) const {
  const uint16_t mtu = out.capabilities.mtu;
  if (!exceeds_mtu(frame, mtu)) return true;
  if (!telemetry_.enabled() || !ends_telemetry(out.role)) return false;
  const IntView view = parse_int({rte_pktmbuf_mtod(&frame, const uint8_t*), frame.data_len}, frame.pkt_len,
                                 config_.telemetry.udp_port);
  return view.accepted() && view.udp.ip_bytes() - view.bytes() <= mtu;
}

bool SwitchWorker::pass_shaper(const SwitchPacket& packet, uint16_t egress, Nanos now) {
  if (packet.flooded || (shapers_->classes() >> packet.traffic_class & 1U) == 0) return true;
  const size_t shaper = shapers_->find(packet);
  if (shaper == TorShapers::kNone) return true;
  const TorShapers::RateRequest admission =
      shapers_->request_rate(shaper, packet, packet.frame->pkt_len, now);
  if (admission.refused != DropReason::kNone) {
    count_refused(packet, egress, admission.refused);
    rte_pktmbuf_free(packet.frame);
    return false;
  }
  if (!admission.waits) return true;
  SwitchPacket waiting = packet;
  if (admission.mark) {
    waiting.frame = mark_frame(waiting.frame, pool());
    if (waiting.frame == nullptr) {
      count_refused(packet, egress, DropReason::kNoBuffer);
      return false;
    }
  }
  if (const auto feedback = shapers_->hold(shaper, waiting, egress))
    cnms_.held(shaper, *feedback, waiting, now);
  return false;
}

bool SwitchWorker::release_held(Nanos now) {
  TorShapers::Released released;
  bool worked = false;
  for (size_t count = 0; count < kBurst && shapers_->release(now, released); ++count) {
    worked = true;
    SwitchPacket& packet = released.packet;
    if (released.mark) packet.frame = mark_frame(packet.frame, pool());
    if (packet.frame == nullptr) {
      count_refused(packet, released.egress, DropReason::kNoBuffer);
    } else {
      admit_here(packet, false, *shared_.ports[released.egress], now);
    }
  }
  return worked;
}

// Counts a drop at the egress port, which belongs to this worker. kHeadroomFull counts at the ingress port, which may
// belong to another worker.
void SwitchWorker::count_refused(const SwitchPacket& packet, uint16_t egress, DropReason reason) {
  if (reason == DropReason::kHeadroomFull) {
    shared_.ports[packet.ingress]->counters.drops[static_cast<unsigned>(reason)].fetch_add(
        1, std::memory_order_relaxed);
  } else {
    bump(shared_.ports[egress]->counters.drops[static_cast<unsigned>(reason)]);
  }
}

SwitchWorker::Admission SwitchWorker::check_admission(const SwitchPacket& packet, uint32_t length,
                                                      SwitchPort& out, Nanos now) {
  if (!fits_mtu(*packet.frame, out)) return {.refused = DropReason::kTooLong};
  // A lossless class is limited by its accounts in the shared buffer, so that the neighbor is paused before a drop.
  if (!out.egress.has_space(length)) [[unlikely]] {
    const bool lossless = shared_.buffer.is_lossless(packet.ingress, packet.traffic_class);
    if (!lossless || !out.egress.has_frame_space()) return {.refused = DropReason::kQueueFull};
  }
  const DropReason full = shared_.buffer.admit(packet.ingress, packet.traffic_class, length,
                                               out.egress.queue(packet.traffic_class));
  if (full != DropReason::kNone) return {.refused = full};
  const AqmVerdict verdict = out.egress.aqm_verdict(packet, now);
  return {verdict == AqmVerdict::kDrop ? DropReason::kEarlyDrop : DropReason::kNone, verdict};
}

void SwitchWorker::admit_here(const SwitchPacket& packet, bool copy, SwitchPort& out, Nanos now) {
  rte_mbuf* frame = packet.frame;
  const TagEdit edit = tag_edit(*frame, packet.vlan != out.native, packet.vlan);
  const Admission admission = check_admission(packet, length_after(edit, *frame), out, now);
  if (admission.refused != DropReason::kNone) [[unlikely]]
    return refuse(packet, copy, admission.refused, out);
  const bool mark = admission.verdict == AqmVerdict::kMark;
  if (copy || mark || packet.has_cn_tag || edit != TagEdit::kNone) {
    frame = prepare(packet, copy, edit, mark, out);
    if (frame == nullptr) return;
  }
  out.egress.push(frame, packet, now);
  if (((out.cnm_points | out.cnp_points) >> packet.traffic_class & 1U) != 0) [[unlikely]]
    notify(packet, frame, out, now);
}

void SwitchWorker::refuse(const SwitchPacket& packet, bool copy, DropReason reason, SwitchPort& out) {
  count_refused(packet, out.index, reason);
  if (!copy) rte_pktmbuf_free(packet.frame);
}

rte_mbuf* SwitchWorker::prepare(const SwitchPacket& packet, bool copy, TagEdit edit, bool mark,
                                SwitchPort& out) {
  rte_mbuf* frame = copy ? rte_pktmbuf_copy(packet.frame, pool(), 0, UINT32_MAX) : packet.frame;
  if (frame != nullptr)
    frame = edit_tag(frame, edit, packet.vlan, config_.classifier.pcp_of(packet.traffic_class), pool());
  if (frame != nullptr && packet.has_cn_tag && !out.keeps_cn_tags) {
    frame = strip_cn_tag(frame, pool());
    if (frame != nullptr) cnms_.count(CnmEvent::kTagRemoved);
  }
  if (frame != nullptr && mark) {
    frame = mark_frame(frame, pool());
    if (frame != nullptr) bump(out.counters.classes[packet.traffic_class].marked);
  }
  if (frame == nullptr) bump(out.counters.drops[static_cast<unsigned>(DropReason::kNoBuffer)]);
  return frame;
}

// Called after a frame was queued in a class with congestion notification.
void SwitchWorker::notify(const SwitchPacket& packet, const rte_mbuf* frame, const SwitchPort& out,
                          Nanos now) {
  if ((out.cnm_points >> packet.traffic_class & 1U) != 0) {
    cnms_.queued(out.index, out, packet, frame, now);
  } else {
    cnps_.queued(out.index, packet, frame, out.egress.queue(packet.traffic_class), now);
  }
}

}  // namespace roci
