#include "switch/cnp/cnp_notifier.hpp"

#include <array>

#include "switch/pipeline/frame_edit.hpp"
#include "wire/roce/roce_cnp.hpp"

namespace roci {
namespace {

constexpr uint64_t kWindowSamples = 8;  // window of the flow sketch

}  // namespace

CnpNotifier::Point::Point(const CnpConfig& config, uint64_t seed) : pacer(config, seed) {
  if (config.key_flow == CnpConfig::Choice::kHeaviest)
    sketch = std::make_unique<FlowSketch>(config.sample.value() * kWindowSamples);
}

CnpNotifier::CnpNotifier(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool,
                         SourceQpns* senders, Outbox& outbox)
    : mac_(mac),
      pool_(pool),
      senders_(senders),
      outbox_(outbox),
      int_port_(config.telemetry.enabled ? config.telemetry.udp_port : uint16_t{0}),
      suppress_(config.cnp.suppress),
      points_(config, ClassConfig::Notify::kCnp, config.seed ^ 0xc9u,
              [&](uint16_t port, uint8_t traffic_class, uint64_t seed) {
                return std::make_unique<Point>(config.ports[port].classes[traffic_class].cnp, seed);
              }),
      notified_(sends_cnps(config) ? config.senders.flows : 0, config.cnp.spacing),
      forwarded_(notified_.capacity(), config.cnp.spacing) {
  if (!sends_cnps(config)) return;
  limits_.assign(config.ports.size(), EventLimit(config.cnp.rate));
}

bool CnpNotifier::pass(const RocePeek& cnp, uint16_t ingress, Nanos now) {
  if (!suppress_ || notified_.capacity() == 0) return true;
  const Arrival arrival{cnp.flow, ingress};
  const bool covered = notified_.find(cnp.flow, now) != nullptr || forwarded_.find(arrival, now) != nullptr;
  if (!covered) forwarded_.update(arrival, now);  // if the table is full, the CNP is forwarded
  count(covered ? CnpEvent::kSuppressed : CnpEvent::kPassed);
  return !covered;
}

std::optional<KeyFlow> CnpNotifier::flow_of(const SwitchPacket& packet, const rte_mbuf* frame) const {
  if (packet.ingress == kNoPort) return std::nullopt;
  const auto peek = peek_roce(head_of(frame), frame->pkt_len, int_port_);
  // Management datagrams are not rate limited, and a multicast address cannot be the source of a CNP.
  if (!peek || !peek->is_data() || peek->flow.queue_pair == Qpn{1} || peek->flow.destination.is_multicast())
    return std::nullopt;
  return KeyFlow{.flow = peek->flow,
                 .sender = peek->source_qp,
                 .responses = peek->info->operation == Operation::kReadResponse,
                 .pkey = peek->pkey,
                 .routed = packet.originated,
                 .vlan = packet.vlan,
                 .previous = rte_pktmbuf_mtod(frame, const EthernetHeader*)->source};
}

void CnpNotifier::queued(uint16_t port, const SwitchPacket& packet, const rte_mbuf* frame, uint64_t queue,
                         Nanos now) {
  Point& point = points_.of(port, packet.traffic_class);
  if (point.sketch == nullptr) {
    if (!point.pacer.is_due(frame->pkt_len, queue)) return;
    const auto flow = flow_of(packet, frame);
    return finish(flow ? notify(port, *flow, now) : CnpEvent::kNoFlow);
  }
  if (const auto flow = flow_of(packet, frame)) point.sketch->add(*flow, frame->pkt_len);
  if (!point.pacer.is_due(frame->pkt_len, queue)) return;
  // Of the flows whose sender is known and was not notified within `spacing`.
  CnpEvent event = CnpEvent::kNoFlow;
  (void)point.sketch->heaviest([&](const KeyFlow& flow) {
    event = notify(port, flow, now);
    return event != CnpEvent::kSpaced && event != CnpEvent::kUnknownSender;
  });
  finish(event);
}

std::optional<RoceFlow> CnpNotifier::answer_to(const KeyFlow& flow, Nanos now) {
  auto sender = flow.sender;
  if (!sender) sender = senders_->find(flow.flow, flow.responses, now);
  if (!sender) return std::nullopt;
  return RoceFlow{flow.flow.destination, flow.flow.source, *sender};
}

CnpEvent CnpNotifier::notify(uint16_t port, const KeyFlow& flow, Nanos now) {
  const auto answer = answer_to(flow, now);
  if (!answer) return CnpEvent::kUnknownSender;
  if (notified_.find(*answer, now) != nullptr || forwarded_.find({*answer, port}, now) != nullptr)
    return CnpEvent::kSpaced;
  if (outbox_.is_full() || !limits_[port].take(now)) return CnpEvent::kLimited;
  if (notified_.update(*answer, now).value == nullptr) return CnpEvent::kFlowsFull;
  return send(flow, *answer);
}

CnpEvent CnpNotifier::send(const KeyFlow& flow, const RoceFlow& answer) {
  rte_mbuf* frame = rte_pktmbuf_alloc(pool_);
  if (frame == nullptr) return CnpEvent::kNoBuffer;
  auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, kMaxCnpFrame));
  if (bytes == nullptr) {
    rte_pktmbuf_free(frame);
    return CnpEvent::kNoBuffer;
  }
  // The source is the receiver of the flow, since a host accepts CNPs only from its peer. The source MAC is the
  // switch's: with the receiver's MAC, bridges would learn it at the wrong port. A router writes the MACs.
  const RocePath path{.source_mac = mac_,
                      .destination_mac = flow.routed ? MacAddress{} : flow.previous,
                      .source_ip = answer.source,
                      .destination_ip = answer.destination,
                      .vlan_id = flow.routed ? uint16_t{0} : flow.vlan,
                      .udp_source_port = flow_udp_source_port(0, flow.flow.queue_pair, answer.queue_pair),
                      .priority = kFeedbackPriority,
                      .traffic_class = kFeedbackTrafficClass};
  const uint32_t length = build_cnp(path, answer.queue_pair, {bytes, kMaxCnpFrame}, flow.pkey);
  rte_pktmbuf_trim(frame, static_cast<uint16_t>(kMaxCnpFrame - length));
  const auto counter = [this](CnpEvent event) { return &counters_.at(event); };
  Outbox::Message message{.frame = frame,
                          .vlan = flow.vlan,
                          .to = {},
                          .sent = counter(CnpEvent::kSent),
                          .no_route = counter(CnpEvent::kNoRoute)};
  if (flow.routed) message.to = answer.destination;
  outbox_.push(message);
  return CnpEvent::kSent;
}

}  // namespace roci
