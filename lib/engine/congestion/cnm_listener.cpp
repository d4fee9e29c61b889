#include "engine/congestion/cnm_listener.hpp"

#include <algorithm>

namespace roci {
namespace {

std::span<const uint8_t> bytes_of(const rte_mbuf& frame) {
  return {rte_pktmbuf_mtod(&frame, const uint8_t*), rte_pktmbuf_data_len(&frame)};
}

}  // namespace

CnmListener::CnmListener(const CongestionConfig& config, CongestionFlows& flows, uint16_t int_port,
                         uint32_t workers, uint64_t salt)
    : flows_(flows),
      listens_(config.listens()),
      tags_(config.tag),
      short_samples_(config.short_samples),
      port_(config.cnm_port),
      int_port_(int_port),
      key_(config.cnm_key),
      time_of_day_(config.time_of_day.value_or(Nanos{0})),
      limit_(config.cnm_rate == 0 ? 0 : std::max(1U, config.cnm_rate / workers)),
      guard_(config.cnm_key ? kSigningPoints : 0, config.cnm_tolerance, salt) {}

bool CnmListener::is_well_formed(const FrameView& view, const rte_mbuf& frame) const {
  if (view.kind == FrameKind::kOther)  // then the complete front is contiguous
    return view.at<Be16>(static_cast<uint32_t>(view.l3_offset) - 2).get() == kEtherTypeCnm;
  const bool ipv4 = view.kind == FrameKind::kIpv4;
  if (port_ == 0 || (!ipv4 && view.kind != FrameKind::kIpv6)) return false;
  if ((ipv4 ? view.ipv4().protocol : view.ip6().next_header) != kProtocolUdp) return false;
  return view.l4_offset + sizeof(UdpHeader) <= rte_pktmbuf_data_len(&frame) &&
         view.udp().destination_port.get() == port_;
}

std::optional<ReceivedCnm> CnmListener::read(const FrameView& view, const rte_mbuf& frame,
                                             Counters& counters) const {
  ReceivedCnm received_cnm;
  const auto refuse = [&counters](Counter why) {
    counters.add(why);
    return std::nullopt;
  };
  if (view.kind == FrameKind::kOther) {
    const ParsedCnmFrame parsed = parse_cnm_frame(bytes_of(frame));
    if (parsed.outcome != CnmOutcome::kAccepted) return refuse(Counter::kCnmsMalformed);
    received_cnm.cnm = parsed.cnm;
    received_cnm.tag = parsed.link.tags.flow;
  } else {
    const L3CnmView parsed = parse_l3_cnm(bytes_of(frame), port_);
    if (!parsed.accepted()) return refuse(Counter::kCnmsMalformed);
    if (key_ && !verify_l3_cnm(bytes_of(frame), parsed, *key_)) return refuse(Counter::kCnmsUnsigned);
    received_cnm.cnm = parsed.cnm;
    received_cnm.more = parsed.tlvs;
    received_cnm.flow = parsed.flow;
  }
  received_cnm.sampled = read_sampled_packet(received_cnm.cnm.msdu);
  return received_cnm;
}

// By its CN-TAG if it has one. Flow 0 in a CN-TAG means that the sampled frame had none.
std::optional<Qpn> CnmListener::find(const ReceivedCnm& received_cnm) const {
  if (received_cnm.tag.value_or(0) != 0) return tags_ ? flows_.find(*received_cnm.tag) : std::nullopt;
  if (!received_cnm.sampled || received_cnm.sampled->opcode == nullptr) return std::nullopt;
  const SampledPacket& sampled = *received_cnm.sampled;
  if (sampled.source_qp) return sampled.source_qp;
  return flows_.find(SentFlow{sampled.flow.source, sampled.flow.destination, sampled.destination_qp,
                              sampled.flow.source_port});
}

bool CnmListener::take(const ReceivedCnm& received_cnm, const QueuePairCore& qp, uint16_t flow, Nanos now,
                       Counters& counters) {
  const auto refuse = [&counters](Counter why) {
    counters.add(why);
    return false;
  };
  switch (validate(received_cnm, qp)) {
    case Validity::kValid:
      break;
    case Validity::kShort:
      if (short_samples_) break;
      return refuse(Counter::kCnmsUnproven);
    case Validity::kInvalid:
      return refuse(Counter::kCnmsMismatched);
  }
  if (received_cnm.flow && key_ &&
      guard_.take(received_cnm.cnm.point, received_cnm.more.auth_sequence.value_or(0), now + time_of_day_) !=
          L3CnmGuard::Verdict::kNew)
    return refuse(Counter::kCnmsOld);
  if (!limit_.allow(now)) return refuse(Counter::kCnmsTooMany);
  counters.add(Counter::kCnmsTaken);
  const bool response = received_cnm.sampled && received_cnm.sampled->is_response();
  CongestionRecord& record = response ? flows_.responses(flow) : flows_.requests(flow);
  ++record.notices;
  record.latest = CongestionNotice{.at = now,
                                   .feedback = received_cnm.cnm.feedback,
                                   .priority = received_cnm.cnm.priority,
                                   .point = received_cnm.cnm.point,
                                   .queue_offset = received_cnm.cnm.queue_offset * kCnmQueueUnit,
                                   .queue_delta = received_cnm.cnm.queue_delta * kCnmQueueUnit,
                                   .more = received_cnm.more};
  return true;
}

CnmListener::Validity CnmListener::validate(const ReceivedCnm& received_cnm, const QueuePairCore& qp) const {
  if (!received_cnm.sampled)
    return received_cnm.cnm.msdu.size() < kMaxCnmMsdu && !received_cnm.flow ? Validity::kShort
                                                                            : Validity::kInvalid;
  const SampledPacket& sampled = *received_cnm.sampled;
  if (received_cnm.flow && *received_cnm.flow != sampled.flow) return Validity::kInvalid;
  if (!is_addressed_as(sampled, qp)) return Validity::kInvalid;
  // A telemetry header precedes the BTH.
  if (sampled.flow.destination_port != kRoceUdpPort) return Validity::kShort;
  if (sampled.opcode == nullptr)
    return received_cnm.cnm.msdu.size() < kMaxCnmMsdu ? Validity::kShort : Validity::kInvalid;
  if (sampled.opcode->transport != qp.service) return Validity::kInvalid;
  if (qp.config.type != IBV_QPT_UD && sampled.destination_qp != qp.attributes.remote_qp)
    return Validity::kInvalid;
  if (sampled.source_qp && *sampled.source_qp != qp.number()) return Validity::kInvalid;
  if (!sampled.opcode->is_request() && !sampled.is_response()) return Validity::kInvalid;
  const int32_t ago = (sampled.is_response() ? qp.receive_psn() : qp.send_psn()) - sampled.psn;
  return ago > 0 && ago <= kRecent ? Validity::kValid : Validity::kInvalid;
}

// UD queue pairs have no fixed destination, and each address handle may have its own UDP source port.
bool CnmListener::is_addressed_as(const SampledPacket& sampled, const QueuePairCore& qp) const {
  const uint16_t port = sampled.flow.destination_port;
  if (port != kRoceUdpPort && (int_port_ == 0 || port != int_port_)) return false;
  if (qp.config.type == IBV_QPT_UD) return true;
  const RocePath& path = qp.attributes.path;
  return sampled.flow.source == path.source_ip && sampled.flow.destination == path.destination_ip &&
         sampled.flow.source_port == path.udp_source_port;
}

}  // namespace roci
