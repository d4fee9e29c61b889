#include "switch/source_qpns.hpp"

#include "wire/capability_mad.hpp"

namespace roci {
namespace {

constexpr bool is_ordinary(Qpn qpn) { return qpn.value() > kManagementQp.value(); }

}  // namespace

SourceQpns::Learned SourceQpns::see(const RoceGlance& packet, Nanos now) {
  if (packet.flow.queue_pair == kManagementQp) return connect(packet, now);
  // Datagrams say it each time, and to any number of queue pairs: nothing to remember.
  if (packet.source_qp && packet.info->transport != TransportClass::kUd)
    return learn(packet.flow, *packet.source_qp, Way::kPacket, now);
  const bool is_data = packet.info->transport == TransportClass::kRc && packet.is_data();
  if (is_data && ++seen_ % kRefresh == 0) look_at(packet, now);
  if (acks_.watching() == 0) return Learned::kNothing;
  const auto found = acks_.see(packet, now);
  return found ? learn(found->flow, found->sender, Way::kAcks, now) : Learned::kNothing;
}

// Keeps what is known, and begins to find out about flows that may be asked for later.
void SourceQpns::look_at(const RoceGlance& packet, Nanos now) {
  if (senders_.find(packet.flow, now) != nullptr) {
    senders_.hear(packet.flow, now);
  } else if (acks_.watching() < AckCorrelator::kMost / 2) {  // the other half is for those that are asked for
    acks_.watch(packet.flow, packet.info->operation == Operation::kReadResponse, now);
  }
}

SourceQpns::Learned SourceQpns::connect(const RoceGlance& packet, Nanos now) {
  if (packet.info->opcode != Opcode::kUdSendOnly) return Learned::kNothing;
  const auto message = read_cm_connect(packet.rest);
  if (!message || !is_ordinary(message->queue_pair)) return Learned::kNothing;
  if (message->message == CmConnect::Message::kRequest) {
    const auto heard =
        requests_.hear({packet.flow.source, packet.flow.destination, Qpn{message->local_id}}, now);
    if (heard.value == nullptr) return Learned::kFull;
    *heard.value = message->queue_pair;
    return Learned::kNothing;
  }
  const Qpn* asker =
      requests_.find({packet.flow.destination, packet.flow.source, Qpn{message->remote_id}}, now);
  if (asker == nullptr) return Learned::kNothing;
  const Qpn first = *asker, second = message->queue_pair;
  const auto to_second = learn({packet.flow.destination, packet.flow.source, second}, first, Way::kCm, now);
  const auto to_first = learn({packet.flow.source, packet.flow.destination, first}, second, Way::kCm, now);
  return to_second == Learned::kFull ? to_second : to_first;
}

SourceQpns::Learned SourceQpns::learn(const RoceFlow& flow, Qpn sender, Way way, Nanos now) {
  if (!is_ordinary(sender) || !is_ordinary(flow.queue_pair)) return Learned::kNothing;
  const auto heard = senders_.hear(flow, now);
  if (heard.value == nullptr) return Learned::kFull;
  const bool is_new = heard.learned == decltype(senders_)::Learned::kNew;
  if (!is_new && (heard.value->way > way || heard.value->queue_pair == sender)) {
    if (heard.value->queue_pair == sender && way > heard.value->way) heard.value->way = way;
    return Learned::kNothing;
  }
  *heard.value = {sender, way};
  switch (way) {
    case Way::kAcks:
      return Learned::kFromAcks;
    case Way::kCm:
      return Learned::kFromCm;
    case Way::kPacket:
      return Learned::kFromPacket;
  }
  return Learned::kNothing;
}

std::optional<Qpn> SourceQpns::find(const RoceFlow& flow, bool responses, Nanos now) {
  if (const Sender* known = senders_.find(flow, now)) return known->queue_pair;
  acks_.watch(flow, responses, now);
  return std::nullopt;
}

}  // namespace roci
