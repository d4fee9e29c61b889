#include "switch/cnp/source_qpns.hpp"

#include <algorithm>

#include "port/port.hpp"
#include "wire/mad/cm_messages.hpp"

namespace roci {
namespace {

constexpr bool is_ordinary(Qpn qpn) { return qpn.value() > kManagementQp.value(); }

}  // namespace

void SourceQpns::observe(const RocePeek& packet, uint16_t ingress, Nanos now) {
  if (packet.flow.queue_pair == kManagementQp) return connect(packet, ingress, now);
  // Each datagram names its sender, and datagrams go to any number of queue pairs: not stored.
  if (packet.source_qp && packet.info->transport != TransportClass::kUd)
    return learn(packet.flow, {*packet.source_qp, Origin::kPacket, ingress, now}, now);
  const bool is_data = packet.info->transport == TransportClass::kRc && packet.is_data();
  if (is_data && ++seen_ % kRefresh == 0) refresh(packet, ingress, now);
  if (acks_.watching() == 0) return;
  if (const auto found = acks_.observe(packet, now))
    learn(found->flow, {found->sender, Origin::kAcks, kNoPort, now}, now);
  counters_.at(SenderEvent::kAmbiguous).store(acks_.ambiguous(), std::memory_order_relaxed);
}

// Refreshes a known flow, or starts to watch one that find() may be called for.
void SourceQpns::refresh(const RocePeek& packet, uint16_t ingress, Nanos now) {
  if (const Sender* known = senders_.find(packet.flow, now)) {
    if (known->ingress != kNoPort && known->ingress != ingress) return;
    Sender& refreshed = *senders_.update(packet.flow, now).value;
    refreshed.ingress = ingress;
    refreshed.seen = now;
  } else if (acks_.watching() < AckCorrelator::kMax / 2) {  // the other half is for find()
    acks_.watch(packet.flow, packet.info->operation == Operation::kReadResponse, now);
  }
}

void SourceQpns::connect(const RocePeek& packet, uint16_t ingress, Nanos now) {
  if (packet.info->opcode != Opcode::kUdSendOnly) return;
  if (packet.rest.size() < kMadBytes) return;
  const ParsedCm parsed = parse_cm_mad(packet.rest.first(kMadBytes));
  if (parsed.outcome != CmOutcome::kAccepted) return;
  const IpAddress &from = packet.flow.source, &to = packet.flow.destination;
  if (const auto* request = std::get_if<CmRequest>(&parsed.mad.message)) {
    if (!is_ordinary(request->queue_pair)) return;
    const auto updated = requests_.update({from, to, Qpn{request->local_id}}, now);
    if (updated.value == nullptr) return bump(counters_.at(SenderEvent::kFull));
    *updated.value = {request->queue_pair, ingress};
    return;
  }
  const auto* reply = std::get_if<CmReply>(&parsed.mad.message);
  if (reply == nullptr || !is_ordinary(reply->queue_pair)) return;
  const Request* requester = requests_.find({to, from, Qpn{reply->remote_id}}, now);
  if (requester == nullptr) return;
  const Request first = *requester, second{reply->queue_pair, ingress};
  learn({to, from, second.queue_pair}, {first.queue_pair, Origin::kCm, first.ingress, now}, now);
  learn({from, to, first.queue_pair}, {second.queue_pair, Origin::kCm, second.ingress, now}, now);
}

void SourceQpns::learn(const RoceFlow& flow, const Sender& sender, Nanos now) {
  if (!is_ordinary(sender.queue_pair) || !is_ordinary(flow.queue_pair)) return;
  const auto updated = senders_.update(flow, now);
  if (updated.value == nullptr) return bump(counters_.at(SenderEvent::kFull));
  Sender& known = *updated.value;
  uint16_t ingress = sender.ingress;
  if (updated.learned == decltype(senders_)::Learned::kKnown && now - known.seen < ageing_) {
    if (known.ingress == kNoPort) known.ingress = ingress;
    if (ingress == kNoPort) ingress = known.ingress;
    if (known.ingress != ingress) return bump(counters_.at(SenderEvent::kOtherPort));
    known.seen = now;
    if (known.queue_pair == sender.queue_pair) {
      known.origin = std::max(known.origin, sender.origin);
      return;
    }
    if (known.origin > sender.origin) return;
  }
  known = {sender.queue_pair, sender.origin, ingress, now};
  bump(counters_.at(sender.origin == Origin::kPacket ? SenderEvent::kFromPacket
                    : sender.origin == Origin::kCm   ? SenderEvent::kFromCm
                                                     : SenderEvent::kFromAcks));
}

std::optional<Qpn> SourceQpns::find(const RoceFlow& flow, bool responses, Nanos now) {
  if (const Sender* known = senders_.find(flow, now)) return known->queue_pair;
  acks_.watch(flow, responses, now);
  return std::nullopt;
}

}  // namespace roci
