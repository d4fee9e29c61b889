#include "switch/telemetry/int_responder.hpp"

#include <cassert>
#include <cstring>
#include <limits>

#include "port/port.hpp"
#include "switch/pipeline/frame_edit.hpp"
#include "wire/extensions/extensions.hpp"
#include "wire/roce/roce_cnp.hpp"

namespace roci {
namespace {

constexpr uint32_t kMaxResponseFrame = 14 + 4 + 40 + 8 + 12 + sizeof(IntReport) + kIcrcBytes;
constexpr uint64_t kSalt = 0x9e6c63d0676a9a99;

// The upper half of RoceFlowHash is mixed better than the lower one, so the key combines the upper halves of two
// hashes.
uint64_t notification_key(const RoceFlow& flow) {
  const RoceFlowHash hash;
  return (hash(flow, kSalt) >> 32) | (hash(flow, ~kSalt | 1) & 0xffff'ffff'0000'0000U);
}

}  // namespace

IntResponder::IntResponder(const TelemetryConfig& config, const MacAddress& mac, rte_mempool* pool,
                           SourceQpns* senders, Outbox& outbox)
    : config_(config),
      above_(responds(config) ? config.respond.above.value() : std::numeric_limits<uint64_t>::max()),
      mac_(mac),
      pool_(pool),
      senders_(senders),
      outbox_(outbox),
      notified_(config.respond.spacing),
      limit_(config.respond.rate) {}

bool IntResponder::is_subscribed(std::span<const uint8_t> head, uint32_t length,
                                 const Departure& departure) const {
  const IntView view = parse_int(head, length, config_.udp_port);
  if (view.accepted() && view.wants_response(config_.domain)) return true;
  const UdpLocation udp = find_udp(head, length);
  if (udp.outcome != UdpOutcome::kFound) return false;
  const uint8_t dscp = udp.dscp(head);
  if (config_.respond.dscp.test(dscp)) return true;
  return departure.from_source && config_.wants_response && config_.dscp.test(dscp);
}

void IntResponder::consider(const rte_mbuf* frame, const Departure& departure, const HopReport& report) {
  if (departure.ingress == kNoPort || !is_subscribed(head_of(frame), frame->pkt_len, departure)) return;
  const auto packet = peek_roce(head_of(frame), frame->pkt_len, config_.udp_port);
  if (!packet || !packet->is_data() || packet->flow.destination.is_multicast()) return;
  const IntResponseEvent event = respond(frame, *packet, departure, report);
  // A response in the outbox is counted when it is sent.
  if (event != IntResponseEvent::kSent) bump(counter(event));
}

IntResponseEvent IntResponder::respond(const rte_mbuf* frame, const RocePeek& packet,
                                       const Departure& departure, const HopReport& report) {
  const uint64_t key = notification_key(packet.flow);
  if (notified_.has(key, departure.now)) return IntResponseEvent::kSpaced;
  const bool to_receiver = config_.respond.to == TelemetryConfig::Respond::To::kReceiver;
  std::optional<Qpn> to = to_receiver ? packet.flow.queue_pair : packet.source_qp;
  if (!to) {
    const bool responses = packet.info->operation == Operation::kReadResponse;
    to = senders_->find(packet.flow, responses, departure.now);
  }
  if (!to) return IntResponseEvent::kUnknownSender;
  if (outbox_.is_full() || !limit_.take(departure.now)) return IntResponseEvent::kLimited;
  rte_mbuf* answer = rte_pktmbuf_alloc(pool_);
  if (answer == nullptr) return IntResponseEvent::kNoBuffer;
  auto* bytes = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(answer, kMaxResponseFrame));
  if (bytes == nullptr) {
    rte_pktmbuf_free(answer);
    return IntResponseEvent::kNoBuffer;
  }
  notified_.note(key, departure.now);

  // The source is the other end of the flow, as for CNPs: hosts accept packets only from their peer.
  const RoceFlow& flow = packet.flow;
  const auto& ethernet = *rte_pktmbuf_mtod(frame, const EthernetHeader*);
  const RocePath path{.source_mac = mac_,
                      .destination_mac = departure.routed && !to_receiver ? MacAddress{}
                                         : to_receiver                    ? ethernet.destination
                                                                          : ethernet.source,
                      .source_ip = to_receiver ? flow.source : flow.destination,
                      .destination_ip = to_receiver ? flow.destination : flow.source,
                      .vlan_id = departure.routed && !to_receiver ? uint16_t{0} : departure.vlan,
                      .udp_source_port = packet.udp_source_port,
                      .priority = kFeedbackPriority,
                      .traffic_class = kFeedbackTrafficClass};
  RoceWriter writer(path);
  const uint32_t length = writer.frame_bytes(opcode_info(Opcode::kCcIntResponse), 0);
  assert(length <= kMaxResponseFrame);
  BthFields bth{.opcode = Opcode::kCcIntResponse, .destination_qp = *to, .psn = packet.psn};
  bth.pkey = packet.pkey;
  RoceWriter::Open open = writer.begin(bytes, bth, 0);
  IntReport& body = open.header<IntReport>(Header::kIntReport);
  body.reserved.set(0);
  body.hop = write_hop(compact_hop(report));
  const uint8_t* sampled = packet.rest.data() - packet.info->header_bytes;
  std::memcpy(static_cast<void*>(&body.sampled), sampled, sizeof(Bth));
  uint16_t flags = to_receiver ? IntReport::kToReceiver : uint16_t{0};
  body.lsn.set(0);
  if (reinterpret_cast<const Bth*>(sampled)->has_extensions()) {
    const ExtensionView block = parse_extensions(packet.rest, AfterBlock::kPayload, known_extensions());
    if (block.accepted() && block.has(ExtensionType::kLsn)) {
      flags |= IntReport::kLsnKnown;
      body.lsn.set(block.lsn().value());
    }
  }
  body.flags.set(flags);
  RoceWriter::finish(open);
  rte_pktmbuf_trim(answer, static_cast<uint16_t>(kMaxResponseFrame - length));

  Outbox::Message message{.frame = answer,
                          .vlan = departure.vlan,
                          .to = {},
                          .sent = &counter(IntResponseEvent::kSent),
                          .no_route = &counter(IntResponseEvent::kNoRoute)};
  if (departure.routed && !to_receiver) message.to = flow.source;
  outbox_.push(message);
  return IntResponseEvent::kSent;
}

}  // namespace roci
