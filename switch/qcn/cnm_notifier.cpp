#include "switch/qcn/cnm_notifier.hpp"

#include "switch/pipeline/frame_edit.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"

namespace roci {
namespace {

constexpr uint32_t kMaxPoints = 16'384;  // congestion points from which signed messages are accepted

// Source port of a CNM in UDP. Messages about different flows have different ports, so ECMP spreads them.
uint16_t source_port_for(const FiveTuple& flow) {
  uint32_t mixed = (static_cast<uint32_t>(flow.source_port) << 16 | flow.destination_port) * 0x9e3779b1U;
  mixed ^= (flow.source.bytes[15] ^ static_cast<uint32_t>(flow.destination.bytes[15] << 8)) * 0x85ebca6bU;
  return static_cast<uint16_t>(0xc000U | (mixed >> 16 & 0x3fffU));
}

}  // namespace

CnmNotifier::CnmNotifier(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool,
                         TorShapers* shapers, Outbox& outbox)
    : mac_(mac),
      pool_(pool),
      shapers_(shapers),
      outbox_(outbox),
      udp_port_(config.notify.port),
      points_(config, ClassConfig::Notify::kQcn, config.seed,
              [&](uint16_t port, uint8_t traffic_class, uint64_t seed) {
                return std::make_unique<CnmPoint>(config.ports[port], port, traffic_class,
                                                  config.telemetry.switch_id, seed);
              }),
      delivers_unknown_(config.notify.tor_unknown == NotifyConfig::UnknownFlow::kDeliver),
      sent_(config.notify.rate),
      translated_(config.notify.rate),
      tor_(config.notify.tor_size, config.notify.tor_ageing),
      key_(config.notify.key),
      time_of_day_(config.time_of_day),
      guard_(config.notify.key ? kMaxPoints : 0, config.notify.tolerance, config.seed) {}

void CnmNotifier::queued(uint16_t port, const SwitchPort& out, const SwitchPacket& packet,
                         const rte_mbuf* frame, Nanos now) {
  CnmPoint& point = points_.of(port, packet.traffic_class);
  const auto sample = point.queued(frame->pkt_len, out, now);
  if (!sample) return;
  const auto number = static_cast<uint16_t>(port * kTrafficClasses + packet.traffic_class);
  // A message in the outbox is counted when it is sent.
  const CnmEvent event = sample->has_content()
                             ? answer(*sample, number, point.answers_l3(), packet, frame, now)
                             : CnmEvent::kNoCongestion;
  if (event != CnmEvent::kSent) count(event);
}

void CnmNotifier::held(size_t shaper, const QcnFeedback& feedback, const SwitchPacket& packet, Nanos now) {
  const CnmEvent event = answer({.feedback = feedback, .tlvs = {}}, TorShapers::point_number(shaper), true,
                                packet, packet.frame, now);
  if (event != CnmEvent::kSent) count(event);
}

bool CnmNotifier::is_self_defined(const rte_mbuf* frame) const {
  const UdpLocation udp = find_udp(head_of(frame), frame->pkt_len);
  if (udp.outcome != UdpOutcome::kFound) return false;
  return rte_pktmbuf_mtod_offset(frame, const UdpHeader*, udp.l4_offset)->destination_port.get() == udp_port_;
}

// Returns kSent if a message was put into the outbox, for layer 2 or for UDP.
CnmEvent CnmNotifier::answer(const CnmSample& sample, uint16_t point, bool l3, const SwitchPacket& packet,
                             const rte_mbuf* frame, Nanos now) {
  auto cnm = sample_frame(head_of(frame), packet.traffic_class);
  if (!cnm || packet.ingress == kNoPort) return CnmEvent::kNoFlow;
  if (packet.ether_type == kEtherTypeCnm || (udp_port_ != 0 && is_self_defined(frame)))
    return CnmEvent::kSampledCnm;
  const bool is_congested = sample.feedback.is_congested();
  cnm->feedback = sample.feedback.quantized;
  cnm->point = {mac_, Be16{point}};
  cnm->queue_offset = cnm_queue_units(sample.feedback.offset);
  cnm->queue_delta = cnm_queue_units(sample.feedback.delta);
  if (packet.has_cn_tag) {
    if (!is_congested) return CnmEvent::kNoCongestion;
    auto link = CnmLink::answering(head_of(frame), mac_);
    link->tags.flow = packet.cn_flow;  // the tag may have been removed from the frame
    return put_l2(*link, *cnm, packet.vlan, CnmEvent::kSent, now);
  }
  if (!l3) return CnmEvent::kNoFlow;
  const auto flow = read_five_tuple(head_of(frame));
  if (!flow) return CnmEvent::kNoFlow;
  const TorFlow* own = tor_.find(*flow, now);
  if (own == nullptr) return put_l3(*flow, *cnm, sample.tlvs, now);
  if (!is_congested) return CnmEvent::kNoCongestion;
  cnm->destination = own->destination;
  cnm->priority = own->tags.priority().value_or(cnm->priority);
  return put_l2(own->answer(mac_), *cnm, own->vlan, CnmEvent::kSentToOwnHost, now);
}

CnmEvent CnmNotifier::allowed(Nanos now) {
  return !outbox_.is_full() && sent_.take(now) ? CnmEvent::kSent : CnmEvent::kLimited;
}

CnmEvent CnmNotifier::put_l2(const CnmLink& link, const Cnm& cnm, uint16_t vlan, CnmEvent as, Nanos now) {
  if (const CnmEvent event = allowed(now); event != CnmEvent::kSent) return event;
  rte_mbuf* frame = rte_pktmbuf_alloc(pool_);
  if (frame == nullptr) return CnmEvent::kNoBuffer;
  const uint32_t length = link.size() + cnm.pdu_bytes();
  auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, static_cast<uint16_t>(length)));
  if (bytes == nullptr) {
    rte_pktmbuf_free(frame);
    return CnmEvent::kNoBuffer;
  }
  build_cnm_frame(link, cnm, {bytes, length});
  outbox_.push({.frame = frame,
                .vlan = vlan,
                .to = {},
                .sent = &counter(as),
                .no_route = &counter(CnmEvent::kNoRoute)});
  return CnmEvent::kSent;
}

CnmEvent CnmNotifier::put_l3(const FiveTuple& flow, const Cnm& cnm, L3CnmTlvs tlvs, Nanos now) {
  if (const CnmEvent event = allowed(now); event != CnmEvent::kSent) return event;
  rte_mbuf* frame = rte_pktmbuf_alloc(pool_);
  if (frame == nullptr) return CnmEvent::kNoBuffer;
  auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, kMaxL3CnmFrame));
  if (bytes == nullptr) {
    rte_pktmbuf_free(frame);
    return CnmEvent::kNoBuffer;
  }
  // The source is the receiver of the flow (L3QCN 5.2.2 step 3). The router writes the MACs.
  const RocePath path{.source_mac = mac_,
                      .destination_mac = {},
                      .source_ip = flow.destination,
                      .destination_ip = flow.source,
                      .udp_source_port = source_port_for(flow),
                      .traffic_class = kFeedbackTrafficClass};
  if (key_) tlvs.auth_sequence = sequence_.next(now + time_of_day_);
  const uint32_t length = build_l3_cnm(path, udp_port_, flow, cnm, tlvs, {bytes, kMaxL3CnmFrame});
  rte_pktmbuf_trim(frame, static_cast<uint16_t>(kMaxL3CnmFrame - length));
  if (key_) sign_l3_cnm({bytes, length}, udp_port_, *key_);
  // attached_destination: attached hosts may not support self-defined CNMs.
  outbox_.push(
      {.frame = frame,
       .vlan = 0,
       .to = flow.source,
       .sent = &counter(CnmEvent::kSentOverIp),
       .no_route = &counter(CnmEvent::kNoRoute),
       .attached_destination = is_tor() && !delivers_unknown_ ? &counter(CnmEvent::kUnknownFlow) : nullptr});
  return CnmEvent::kSent;
}

void CnmNotifier::learn(const SwitchPacket& packet, Nanos now) {
  const auto head = head_of(packet.frame);
  const auto key = read_five_tuple(head);
  const auto link = parse_link_tags(head);
  if (!key || !link) return;
  const auto& ethernet = *rte_pktmbuf_mtod(packet.frame, const EthernetHeader*);
  const auto learned =
      tor_.learn(*key, {ethernet.source, ethernet.destination, packet.vlan, link->tags}, now);
  if (learned == TorTable::Learned::kNew) count(CnmEvent::kFlowLearned);
  if (learned == TorTable::Learned::kFull) count(CnmEvent::kFlowsFull);
}

CnmNotifier::Taken CnmNotifier::take(SwitchPacket& packet, const Router& router, Nanos now) {
  if (!is_self_defined(packet.frame)) return Taken::kNotHandled;
  const auto tuple = read_five_tuple(head_of(packet.frame));
  if (!tuple || router.is_forwarded(tuple->destination)) return Taken::kNotHandled;
  const auto refuse = [this](CnmEvent event) {
    count(event);
    return Taken::kRefused;
  };
  // Makes the frame one segment. If the pool is empty, packet.frame is unchanged.
  if (packet.frame->nb_segs > 1) {
    rte_mbuf* whole = rte_pktmbuf_copy(packet.frame, pool_, 0, UINT32_MAX);
    if (whole == nullptr) return refuse(CnmEvent::kNoBuffer);
    rte_pktmbuf_free(packet.frame);
    packet.frame = whole;
  }
  const L3CnmView view = parse_l3_cnm(head_of(packet.frame), udp_port_);
  if (!view.accepted()) return refuse(CnmEvent::kMalformed);
  if (key_ && !is_authentic(head_of(packet.frame), view, now)) return refuse(CnmEvent::kNotAuthentic);
  if (shapers_ != nullptr && shapers_->take(view, now)) {
    count(CnmEvent::kShaped);
    return Taken::kShaped;
  }
  if (!is_tor()) return Taken::kNotHandled;
  const TorFlow* flow = tor_.find(view.flow, now);
  if (flow == nullptr && !delivers_unknown_) return refuse(CnmEvent::kUnknownFlow);
  if (flow != nullptr && view.cnm.feedback == 0) return refuse(CnmEvent::kNoFeedback);
  if (!translated_.take(now)) return refuse(CnmEvent::kTooMany);
  if (flow == nullptr) {
    count(CnmEvent::kDelivered);
    return Taken::kNotHandled;
  }
  packet.frame = own_front(packet.frame, 0, pool_);
  if (packet.frame == nullptr) return refuse(CnmEvent::kNoBuffer);

  // Destination and priority are those of the host's own frames, as far as the table has them.
  auto& pdu = *rte_pktmbuf_mtod_offset(packet.frame, CnmPdu*, view.pdu_offset);
  pdu.destination = flow->destination;
  if (const auto priority = flow->tags.priority()) pdu.priority.set(static_cast<uint16_t>(*priority << 13));
  const CnmLink link = flow->answer(mac_);
  FrameFront front = FrameFront::of(*packet.frame);
  if (!to_l2_cnm(front, view, link)) return refuse(CnmEvent::kNoBuffer);
  front.store(*packet.frame);
  packet.vlan = flow->vlan;
  packet.ether_type = kEtherTypeCnm;
  packet.l3_offset = static_cast<uint16_t>(link.size());
  packet.ecn = Ecn::kNotEct;
  packet.starts_telemetry = false;
  packet.has_cn_tag = true;
  packet.cn_flow = link.tags.flow.value_or(0);
  packet.originated = true;
  return Taken::kTranslated;
}

bool CnmNotifier::is_authentic(std::span<const uint8_t> frame, const L3CnmView& view, Nanos now) {
  if (!view.tlvs.auth_sequence || !verify_l3_cnm(frame, view, *key_)) return false;
  return guard_.take(view.cnm.point, *view.tlvs.auth_sequence, now + time_of_day_) ==
         L3CnmGuard::Verdict::kNew;
}

void CnmNotifier::observe(const rte_mbuf* frame, Nanos now) {
  const L3CnmView view = parse_l3_cnm(head_of(frame), udp_port_);
  if (view.accepted() && shapers_ != nullptr) shapers_->take(view, now);
}

}  // namespace roci
