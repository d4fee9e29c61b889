#include "switch/pipeline/switch_worker.hpp"

#include <algorithm>

#include "switch/pipeline/classify.hpp"
#include "switch/pipeline/frame_edit.hpp"
#include "switch/pipeline/parse.hpp"
#include "wire/headers/headers.hpp"
#include "wire/roce/roce_peek.hpp"

namespace roci {
namespace {

// Maximum length of a copy for other workers: ARP and ND messages, CNMs, and the front of a frame of a flow.
constexpr uint32_t kMaxNotifiedBytes = 256;
static_assert(kMaxL3CnmFrame <= kMaxNotifiedBytes);

uint8_t lossless_of(const ClassConfigs& classes) {
  unsigned lossless = 0;
  for (uint8_t c = 0; c < kTrafficClasses; ++c)
    lossless |= static_cast<unsigned>(classes[c].lossless.has_value()) << c;
  return static_cast<uint8_t>(lossless);
}

}  // namespace

SwitchWorker::SwitchWorker(SwitchShared& shared, uint32_t number)
    : shared_(shared),
      config_(shared.config),
      number_(number),
      name_(config_.name + (shared.rings.workers() == 1 ? "" : "/" + std::to_string(number))),
      senders_(sends_cnps(config_) || responds(config_.telemetry)
                   ? std::make_unique<SourceQpns>(config_.senders.flows, config_.senders.ageing)
                   : nullptr),
      shapers_(config_.shapers.empty()
                   ? nullptr
                   : std::make_unique<TorShapers>(config_, shared.buffer, shared.rings.workers(),
                                                  config_.seed ^ (0x5ba9e5U + number))),
      cnms_(config_, shared.mac, pool(), shapers_.get(), outbox_),
      cnps_(config_, shared.mac, pool(), senders_.get(), outbox_),
      responder_(config_.telemetry, shared.mac, pool(), senders_.get(), outbox_),
      telemetry_(config_.telemetry, pool()),
      macs_(config_.mac_table_size, config_.mac_ageing, config_.ports.size(), &shared.bindings),
      router_(config_, shared.mac, pool(), *this) {}

SwitchWorker::~SwitchWorker() {
  while (!inserted_.empty()) rte_pktmbuf_free(inserted_.pop().frame);
}

Status SwitchWorker::open(const std::vector<Port*>& ports) {
  std::vector<PauseControl::PortView> views;
  const auto count = static_cast<uint16_t>(ports.size());  // at most 1,024
  for (uint16_t i = 0; i < count; ++i) {
    const SwitchPortConfig& port = config_.ports[i];
    if (port.worker != number_) continue;
    own_ports_.push_back({i, ports[i]->next_arrival() != Nanos{0}, 0});
    shared_.ports[i] = std::make_unique<SwitchPort>(
        *ports[i], port, i, config_.seed + i, number_,
        EgressPort::Context{shared_.buffer, telemetry_, responder_, pool(), busy_});
    SwitchPort& made = *shared_.ports[i];
    made.cnm_points = cnms_.points(i);
    made.cnp_points = cnps_.points(i);
    // The neighbor calculates pause times from the rate of the link, also if this port sends more slowly.
    const BitsPerSec link = made.capabilities.link_rate;
    views.push_back(
        {i, made.egress, made.counters, link.value() != 0 ? link : port.rate, lossless_of(port.classes)});
  }
  pauses_ = std::make_unique<PauseControl>(shared_.buffer, shared_.mac, pool(), views);
  if (shapers_ != nullptr) ROCI_TRY(shapers_->open(config_));
  return router_.open(config_, shared_.routes);
}

bool SwitchWorker::poll(Nanos now) {
  bool worked = drain(now);
  for (uint32_t from = 0; from < shared_.rings.workers(); ++from) {
    if (from != number_) worked |= drain_handoff(from, now);
  }
  if (!inserted_.empty()) worked |= receive_inserted(now);
  if (arrivals_ == nullptr) {
    worked |= receive_from_all(now);
  } else {
    for (const uint16_t port : arrivals_->due(now)) worked |= receive(port, now);
  }
  worked |= router_.poll(now);
  worked |= pauses_->poll(now);
  if (shapers_ != nullptr) worked |= release_held(now);
  if (!outbox_.empty()) {
    send_messages(now);
    worked = true;
  }
  worked |= drain(now);
  return worked;
}

Nanos SwitchWorker::next_deadline() const {
  if (!outbox_.empty()) return Nanos{0};  // generated while frames were sent
  if (!inserted_.empty()) return Nanos{0};
  for (uint32_t from = 0; from < shared_.rings.workers(); ++from) {
    if (from != number_ && !shared_.rings.between(from, number_).empty()) return Nanos{0};
  }
  Nanos next = std::min(router_.next_deadline(), pauses_->next_deadline());
  if (shapers_ != nullptr) next = std::min(next, shapers_->next_deadline());
  busy_.for_each([&](uint16_t i) { next = std::min(next, shared_.ports[i]->egress.next_start()); });
  if (arrivals_ != nullptr) return std::min(next, arrivals_->next());
  for (const OwnPort& own : own_ports_) next = std::min(next, shared_.ports[own.number]->port.next_arrival());
  return next;
}

bool SwitchWorker::receive_from_all(Nanos now) {
  bool worked = false;
  ++round_;
  for (OwnPort& own : own_ports_) {
    // Resting ports take turns, so that no round polls all of them. If all ports would rest, none does, since the
    // runner of an idle switch may sleep between rounds.
    if (empty_rounds_ < kRoundsUntilRest && own.empty_rounds >= kRoundsUntilRest &&
        (round_ + own.number) % kRoundsOfRest != 0)
      continue;
    const bool came = receive(own.number, now);
    worked |= came;
    own.empty_rounds = came || own.predicts_arrivals ? 0 : std::min(own.empty_rounds + 1, kRoundsUntilRest);
  }
  empty_rounds_ = worked ? 0 : std::min(empty_rounds_ + 1, kRoundsUntilRest);
  return worked;
}

bool SwitchWorker::receive(uint16_t ingress, Nanos now) {
  std::array<rte_mbuf*, kBurst> frames;
  const uint16_t count = shared_.ports[ingress]->port.rx_burst(frames, now);
  if (count == 0) return false;
  process_received(ingress, std::span(frames).first(count), now);
  return true;
}

bool SwitchWorker::insert(size_t port, rte_mbuf* frame) {
  if (inserted_.size() == kMaxInserted) return false;
  inserted_.push({static_cast<uint16_t>(port), frame});
  return true;
}

bool SwitchWorker::receive_inserted(Nanos now) {
  while (!inserted_.empty()) {
    Inserted one = inserted_.pop();
    process_received(one.ingress, {&one.frame, 1}, now);
  }
  return true;
}

void SwitchWorker::process_received(uint16_t ingress, std::span<rte_mbuf*> frames, Nanos now) {
  SwitchPort& in = *shared_.ports[ingress];
  const bool is_source = starts_telemetry(in.role);
  const size_t count = frames.size();
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    rte_prefetch0(rte_pktmbuf_mtod(frames[i], void*));
    bytes += frames[i]->pkt_len;
    batch_[i] = {.frame = frames[i], .ingress = ingress, .starts_telemetry = is_source};
  }
  bump(in.counters.rx_packets, count);
  bump(in.counters.rx_bytes, bytes);

  const std::span batch{batch_.data(), count};
  parse_stage(batch, in, now);
  classify_stage(batch);
  if (shared_.bindings.has_addresses()) binding_stage(batch);
  learn_stage(batch, now);
  if (cn_tags_ || cnms_.takes()) notification_stage(batch, now);
  if (senders_ != nullptr) observe_stage(batch, now);
  route_stage(batch, now);
  forward_stage(batch, now);
}

void SwitchWorker::parse_stage(std::span<SwitchPacket> batch, const SwitchPort& in, Nanos now) {
  cn_tags_ = false;
  for (SwitchPacket& p : batch) {
    if (p.frame->data_len < std::min(kSwitchHeaderBytes, p.frame->pkt_len)) {
      p.frame = own_front(p.frame, 0, pool());
      if (p.frame == nullptr) {
        drop(p, DropReason::kNoBuffer);
        continue;
      }
    }
    DropReason reason = parse(p, in.native, shared_.mac);
    if (reason == DropReason::kLinkLocal && pauses_->take(p.frame, p.ingress, now)) {
      rte_pktmbuf_free(p.frame);
      p.frame = nullptr;
      continue;
    }
    if (reason == DropReason::kNone && !in.carries(p.vlan)) reason = DropReason::kNotMember;
    if (reason != DropReason::kNone) drop(p, reason);
    cn_tags_ |= p.has_cn_tag;
  }
}

void SwitchWorker::classify_stage(std::span<SwitchPacket> batch) {
  for (SwitchPacket& p : batch) {
    if (p.frame != nullptr) classify(p, config_.classifier);
  }
}

void SwitchWorker::binding_stage(std::span<SwitchPacket> batch) {
  for (SwitchPacket& p : batch) {
    if (p.frame != nullptr && !shared_.bindings.permits_addresses_of(p)) drop(p, DropReason::kNotBound);
  }
}

void SwitchWorker::learn_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (SwitchPacket& p : batch) {
    if (p.frame == nullptr) continue;
    const auto& ethernet = *rte_pktmbuf_mtod(p.frame, const EthernetHeader*);
    const auto learned = macs_.learn(p.vlan, ethernet.source, p.ingress, now);
    if (learned == MacTable::Learned::kMoved) bump(mac_moves_);
    if (learned == MacTable::Learned::kFull) bump(mac_table_full_);
    if (learned == MacTable::Learned::kNotBound) {
      drop(p, DropReason::kNotBound);
      continue;
    }
    if (is_alone() || !macs_.needs_announcement(now)) continue;
    SwitchHandoff address{.what = SwitchHandoff::Kind::kAddress, .mac = ethernet.source, .packet = p};
    address.packet.frame = nullptr;
    if (send_to_others(address)) macs_.announced(now);
  }
}

void SwitchWorker::notification_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (SwitchPacket& p : batch) {
    if (p.frame == nullptr) continue;
    if (p.has_cn_tag) {
      if (cnms_.is_tor() && shared_.ports[p.ingress]->keeps_cn_tags) {
        cnms_.learn(p, now);
        if (!is_alone() && cnms_.needs_announcement(now) &&
            send_to_others({SwitchHandoff::Kind::kFlow, 0, {}, p}))
          cnms_.announced(now);
      }
      // Routers remove the CN-TAG.
      if (rte_pktmbuf_mtod(p.frame, const EthernetHeader*)->destination == shared_.mac &&
          router_.is_in(p.vlan)) {
        p.frame = strip_cn_tag(p.frame, pool());
        if (p.frame == nullptr) {
          drop(p, DropReason::kNoBuffer);
          continue;
        }
        p.has_cn_tag = false;
        p.l3_offset = static_cast<uint16_t>(p.l3_offset - sizeof(CnTag));
        cnms_.count(CnmEvent::kTagRemoved);
      }
    }
    if (cnms_.takes()) translate(p, now);
  }
}

void SwitchWorker::translate(SwitchPacket& packet, Nanos now) {
  const CnmNotifier::Taken taken = cnms_.take(packet, router_, now);
  if (taken == CnmNotifier::Taken::kNotHandled) return;
  if (taken == CnmNotifier::Taken::kShaped) {
    if (!is_alone())
      send_to_others({SwitchHandoff::Kind::kNotice, 0, {}, packet});  // a lost copy is not repeated
    rte_pktmbuf_free(packet.frame);
    packet.frame = nullptr;
    return;
  }
  if (taken == CnmNotifier::Taken::kRefused) return drop(packet, DropReason::kNotification);
  packet.traffic_class = config_.classifier.by_pcp[kCnmTransmitPriority];
  const auto& to = rte_pktmbuf_mtod(packet.frame, const EthernetHeader*)->destination;
  const uint16_t egress = macs_.find(packet.vlan, to, now);
  if (egress == kNoPort) {
    cnms_.count(CnmEvent::kPortUnknown);
    return drop(packet, DropReason::kNotification);
  }
  cnms_.count(CnmEvent::kTranslated);
  admit(packet, false, egress, now);
  packet.frame = nullptr;
}

void SwitchWorker::observe_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (SwitchPacket& p : batch) {
    if (p.frame != nullptr && !observe(p, true, now)) drop(p, DropReason::kCovered);
  }
}

bool SwitchWorker::observe(const SwitchPacket& packet, bool suppresses, Nanos now) {
  if (packet.ether_type != kEtherTypeIpv4 && packet.ether_type != kEtherTypeIpv6) return true;
  const auto peek =
      peek_roce({rte_pktmbuf_mtod(packet.frame, const uint8_t*), packet.frame->data_len},
                packet.frame->pkt_len, config_.telemetry.enabled ? config_.telemetry.udp_port : uint16_t{0});
  if (!peek) return true;
  if (peek->info->operation == Operation::kCongestionNotification)
    return !suppresses || cnps_.pass(*peek, packet.ingress, now);
  senders_->observe(*peek, packet.ingress, now);
  return true;
}

// The messages are never flooded.
void SwitchWorker::send_messages(Nanos now) {
  while (!outbox_.empty()) {
    const Outbox::Message message = outbox_.pop();
    SwitchPacket packet{.frame = message.frame, .vlan = message.vlan, .originated = true};
    bump(*send(message, packet, now));
    rte_pktmbuf_free(packet.frame);  // if it was not sent
  }
}

Outbox::Counter* SwitchWorker::send(const Outbox::Message& message, SwitchPacket& packet, Nanos now) {
  const auto* ethernet = rte_pktmbuf_mtod(packet.frame, const EthernetHeader*);
  packet.l3_offset = sizeof(EthernetHeader);
  packet.ether_type = ethernet->ether_type.get();
  if (packet.ether_type == kEtherTypeVlan) {
    packet.ether_type = reinterpret_cast<const VlanHeader*>(ethernet + 1)->ether_type.get();
    packet.l3_offset += sizeof(VlanHeader);
  }
  const bool is_ip = packet.ether_type == kEtherTypeIpv4 || packet.ether_type == kEtherTypeIpv6;
  classify(packet, config_.classifier);
  if (!is_ip) packet.ether_type = kEtherTypeCnm;  // after its CN-TAG
  if (!is_ip || config_.classifier.trust == ClassifierConfig::Trust::kPcp)
    packet.traffic_class = config_.classifier.by_pcp[kCnmTransmitPriority];
  if (message.to) {
    if (message.attached_destination != nullptr && !router_.is_forwarded(*message.to))
      return message.attached_destination;
    return router_.originate(packet, *message.to, now) ? message.sent : message.no_route;
  }
  const uint16_t egress = macs_.find(packet.vlan, ethernet->destination, now);
  if (egress == kNoPort) return message.no_route;
  admit(packet, false, egress, now);
  packet.frame = nullptr;
  return message.sent;
}

void SwitchWorker::route_stage(std::span<SwitchPacket> batch, Nanos now) {
  if (!is_alone()) {
    for (const SwitchPacket& p : batch) {
      if (p.frame != nullptr && router_.is_neighbor_message(p))
        // A lost copy is replaced by a later solicitation.
        send_to_others({SwitchHandoff::Kind::kNeighbor, 0, {}, p});
    }
  }
  router_.handle(batch, now);
}

void SwitchWorker::forward_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (SwitchPacket& p : batch) {
    if (p.frame != nullptr) forward_one(p, now);
  }
}

// Of the frames from the router, those of the switch as a host are not classified: ARP, ND and echo, without a tag.
void SwitchWorker::forward(SwitchPacket& packet, Nanos now) {
  if (packet.ether_type == 0) [[unlikely]] {
    packet.ether_type = rte_pktmbuf_mtod(packet.frame, const EthernetHeader*)->ether_type.get();
    packet.l3_offset = sizeof(EthernetHeader);
    classify(packet, config_.classifier);
  }
  forward_one(packet, now);
}

inline void SwitchWorker::forward_one(SwitchPacket& packet, Nanos now) {
  const auto& ethernet = *rte_pktmbuf_mtod(packet.frame, const EthernetHeader*);
  const uint16_t egress =
      ethernet.destination.is_multicast() ? kNoPort : macs_.find(packet.vlan, ethernet.destination, now);
  if (egress == kNoPort) return flood(packet, now);
  if (egress == packet.ingress && !packet.originated) return drop(packet, DropReason::kSamePort);
  admit(packet, false, egress, now);
  packet.frame = nullptr;
}

void SwitchWorker::flood(SwitchPacket& packet, Nanos now) {
  if (packet.ingress != kNoPort && !packet.originated) bump(shared_.ports[packet.ingress]->counters.flooded);
  packet.flooded = true;
  uint16_t last = kNoPort;  // receives the frame itself; preceding ports receive copies
  const auto count = static_cast<uint16_t>(shared_.ports.size());  // at most 1,024
  for (uint16_t i = 0; i < count; ++i) {
    if (!shared_.ports[i]->carries(packet.vlan) || (i == packet.ingress && !packet.originated)) continue;
    if (last != kNoPort) admit(packet, true, last, now);
    last = i;
  }
  if (last == kNoPort) return drop(packet, DropReason::kNoEgress);
  admit(packet, false, last, now);
  packet.frame = nullptr;
}

bool SwitchWorker::drain(Nanos now) {
  bool worked = false;
  busy_.filter([&](uint16_t i) {
    SwitchPort& p = *shared_.ports[i];
    worked |= p.egress.drain(p.port, now);
    return !p.egress.is_idle();
  });
  return worked;
}

void SwitchWorker::hand_over(const SwitchPacket& packet, bool copy, uint16_t egress) {
  SwitchHandoff handed{.what = SwitchHandoff::Kind::kFrame, .egress = egress, .mac = {}, .packet = packet};
  auto reason = DropReason::kNoBuffer;
  if (copy) handed.packet.frame = rte_pktmbuf_copy(packet.frame, pool(), 0, UINT32_MAX);
  if (handed.packet.frame != nullptr) {
    if (shared_.rings.between(number_, shared_.ports[egress]->worker).push({&handed, 1}) == 1) return;
    rte_pktmbuf_free(handed.packet.frame);
    reason = DropReason::kHandOverFull;
  }
  bump(counters_of(packet).drops[static_cast<unsigned>(reason)]);
}

// Returns false if a copy was not delivered to all workers.
bool SwitchWorker::send_to_others(const SwitchHandoff& what) {
  bool all = true;
  for (uint32_t to = 0; to < shared_.rings.workers(); ++to) {
    if (to == number_) continue;
    SwitchHandoff one = what;
    if (what.packet.frame != nullptr)
      one.packet.frame = rte_pktmbuf_copy(what.packet.frame, pool(), 0, kMaxNotifiedBytes);
    const bool is_whole = what.packet.frame == nullptr || one.packet.frame != nullptr;
    if (is_whole && shared_.rings.between(number_, to).push({&one, 1}) == 1) continue;
    rte_pktmbuf_free(one.packet.frame);
    all = false;
  }
  return all;
}

bool SwitchWorker::drain_handoff(uint32_t from, Nanos now) {
  std::array<SwitchHandoff, SwitchRings::kBurst> handed;
  const uint32_t count = shared_.rings.between(from, number_).pop(handed);
  for (uint32_t i = 0; i < count; ++i) take(handed[i], now);
  return count > 0;
}

void SwitchWorker::take(SwitchHandoff& handed, Nanos now) {
  SwitchPacket& packet = handed.packet;
  switch (handed.what) {
    case SwitchHandoff::Kind::kFrame:
      // The worker of the queues must know the senders of flows. The worker of the ingress port has suppressed CNPs.
      if (senders_ != nullptr) observe(packet, false, now);
      if (shapers_ == nullptr || pass_shaper(packet, handed.egress, now))
        admit_here(packet, false, *shared_.ports[handed.egress], now);
      return;
    case SwitchHandoff::Kind::kAddress:
      macs_.learn(packet.vlan, handed.mac, packet.ingress, now);
      return;
    case SwitchHandoff::Kind::kNeighbor:
      router_.observe(packet, now);
      break;
    case SwitchHandoff::Kind::kFlow:
      cnms_.learn(packet, now);
      break;
    case SwitchHandoff::Kind::kNotice:
      cnms_.observe(packet.frame, now);
      break;
  }
  rte_pktmbuf_free(packet.frame);
}

void SwitchWorker::drop(SwitchPacket& packet, DropReason reason) {
  bump(counters_of(packet).drops[static_cast<unsigned>(reason)]);
  rte_pktmbuf_free(packet.frame);
  packet.frame = nullptr;
}

SwitchPortCounters& SwitchWorker::counters_of(const SwitchPacket& packet) {
  return packet.ingress == kNoPort ? own_counters_ : shared_.ports[packet.ingress]->counters;
}

}  // namespace roci
