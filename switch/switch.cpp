#include "switch/switch.hpp"

#include <algorithm>

#include "switch/classify.hpp"
#include "switch/frame_edit.hpp"
#include "switch/parse.hpp"
#include "wire/headers.hpp"
#include "wire/rewrite.hpp"

namespace roci {
namespace {

MacAddress mac_for(const SwitchConfig& config) {
  if (!config.mac.is_zero()) return config.mac;
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same name gives the same MAC, run after run
  for (const char c : config.name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return MacAddress::local(hash);
}

std::vector<ClassConfigs> classes_of(const SwitchConfig& config) {
  std::vector<ClassConfigs> classes;
  for (const SwitchPortConfig& port : config.ports) classes.push_back(port.classes);
  return classes;
}

uint8_t lossless_of(const ClassConfigs& classes) {
  unsigned lossless = 0;
  for (uint8_t c = 0; c < kTrafficClasses; ++c)
    lossless |= static_cast<unsigned>(classes[c].lossless.has_value()) << c;
  return static_cast<uint8_t>(lossless);
}

}  // namespace

Switch::PortState::PortState(Port& p, const SwitchPortConfig& config, uint16_t index, uint64_t seed,
                             const EgressPort::Surroundings& surroundings)
    : port(p),
      capabilities(p.capabilities()),
      native(config.vlan),
      role(config.telemetry),
      keeps_cn_tags(config.keeps_cn_tags),
      egress({config.rate, config.queue, config.queue_frames, config.classes, config.watchdog,
              config.telemetry, index, seed},
             surroundings, counters) {
  if (config.all_tagged) {
    for (uint16_t vlan = 1; vlan <= kLastVlan; ++vlan) member.set(vlan);
  }
  for (const uint16_t vlan : config.tagged) member.set(vlan);
  member.set(native);
}

Result<std::unique_ptr<Switch>> Switch::create(const SwitchConfig& config, const std::vector<Port*>& ports,
                                               std::shared_ptr<MbufPool> pool) {
  ROCI_TRY(check(config));
  if (ports.size() != config.ports.size()) {
    return fail("switch '" + config.name + "' is configured with " + std::to_string(config.ports.size()) +
                " ports and was given " + std::to_string(ports.size()));
  }
  std::unique_ptr<Switch> made{new Switch{config, ports, std::move(pool)}};
  if (Status opened = made->router_.open(config); !opened)
    return fail(opened.error().within("switch '" + config.name + "'"));
  return made;
}

Switch::Switch(const SwitchConfig& config, const std::vector<Port*>& ports, std::shared_ptr<MbufPool> pool)
    : config_(config),
      mac_(mac_for(config)),
      pool_(std::move(pool)),
      buffer_(config.buffer, classes_of(config)),
      senders_(sends_cnps(config) || responds(config.telemetry)
                   ? std::make_unique<SourceQpns>(config.senders.flows, config.senders.ageing)
                   : nullptr),
      cnms_(config, mac_, pool_->get(), outbox_),
      cnps_(config, mac_, pool_->get(), senders_.get(), outbox_),
      responder_(config.telemetry, mac_, pool_->get(), senders_.get(), outbox_),
      telemetry_(config.telemetry, pool_->get()),
      macs_(config.mac_table_size, config.mac_ageing),
      router_(config, mac_, pool_->get(), *this) {
  std::vector<PauseControl::PortView> views;
  for (size_t i = 0; i < ports.size(); ++i) {
    const SwitchPortConfig& port = config.ports[i];
    ports_.push_back(
        std::make_unique<PortState>(*ports[i], port, static_cast<uint16_t>(i), config.seed + i,
                                    EgressPort::Surroundings{buffer_, telemetry_, responder_, pool_->get()}));
    ports_[i]->cnm_points = cnms_.points(static_cast<uint16_t>(i));
    ports_[i]->cnp_points = cnps_.points(static_cast<uint16_t>(i));
    views.push_back({ports_[i]->egress, ports_[i]->counters, port.rate, lossless_of(port.classes)});
  }
  pauses_ = std::make_unique<PauseControl>(buffer_, mac_, pool_->get(), std::move(views));
}

Switch::~Switch() = default;

bool Switch::poll(Nanos now) {
  bool worked = drain(now);
  for (size_t i = 0; i < ports_.size(); ++i) worked |= receive(static_cast<uint16_t>(i), now);
  worked |= router_.poll(now);
  worked |= pauses_->poll(now);
  if (!outbox_.empty()) {
    send_messages(now);
    worked = true;
  }
  worked |= drain(now);
  return worked;
}

Nanos Switch::next_deadline() const {
  if (!outbox_.empty()) return Nanos{0};  // what has been made while frames left
  Nanos next = std::min(router_.next_deadline(), pauses_->next_deadline());
  for (const auto& p : ports_) next = std::min({next, p->port.next_arrival(), p->egress.next_start()});
  return next;
}

bool Switch::receive(uint16_t ingress, Nanos now) {
  PortState& in = *ports_[ingress];
  std::array<rte_mbuf*, kBurst> frames;
  const uint16_t count = in.port.rx_burst(frames, now);
  if (count == 0) return false;
  std::array<SwitchPacket, kBurst> packets;
  uint64_t bytes = 0;
  for (uint16_t i = 0; i < count; ++i) {
    rte_prefetch0(rte_pktmbuf_mtod(frames[i], void*));
    bytes += frames[i]->pkt_len;
    packets[i].frame = frames[i];
    packets[i].ingress = ingress;
    packets[i].begins_telemetry = begins_telemetry(in.role);
  }
  bump(in.counters.rx_packets, count);
  bump(in.counters.rx_bytes, bytes);

  const std::span batch{packets.data(), count};
  parse_stage(batch, now);
  classify_stage(batch);
  learn_stage(batch, now);
  if (cn_tags_ || cnms_.is_tor()) notification_stage(batch, now);
  if (senders_ != nullptr) observe_stage(batch, now);
  route_stage(batch, now);
  forward_stage(batch, now);
  return true;
}

void Switch::parse_stage(std::span<SwitchPacket> batch, Nanos now) {
  cn_tags_ = false;
  for (SwitchPacket& p : batch) {
    const PortState& in = *ports_[p.ingress];
    if (p.frame->data_len < std::min(kSwitchHeaderBytes, p.frame->pkt_len)) {
      p.frame = own_front(p.frame, 0, pool_->get());
      if (p.frame == nullptr) {
        drop(p, DropReason::kNoBuffer);
        continue;
      }
    }
    DropReason reason = parse(p, in.native, mac_);
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

void Switch::classify_stage(std::span<SwitchPacket> batch) {
  for (SwitchPacket& p : batch) {
    if (p.frame != nullptr) classify(p, config_.classifier);
  }
}

void Switch::learn_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (const SwitchPacket& p : batch) {
    if (p.frame == nullptr) continue;
    const auto& ethernet = *rte_pktmbuf_mtod(p.frame, const EthernetHeader*);
    const auto learned = macs_.learn(p.vlan, ethernet.source, p.ingress, now);
    if (learned == MacTable::Learned::kMoved) bump(mac_moves_);
    if (learned == MacTable::Learned::kFull) bump(mac_table_full_);
  }
}

void Switch::notification_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (SwitchPacket& p : batch) {
    if (p.frame == nullptr) continue;
    if (p.has_cn_tag) {
      if (cnms_.is_tor() && ports_[p.ingress]->keeps_cn_tags) cnms_.learn(p, now);
      // A CN-TAG does not go through routers.
      if (rte_pktmbuf_mtod(p.frame, const EthernetHeader*)->destination == mac_ && router_.is_in(p.vlan)) {
        p.frame = strip_cn_tag(p.frame, pool_->get());
        if (p.frame == nullptr) {
          drop(p, DropReason::kNoBuffer);
          continue;
        }
        p.has_cn_tag = false;
        p.l3_offset = static_cast<uint16_t>(p.l3_offset - sizeof(CnTag));
        cnms_.count(CnmEvent::kTagRemoved);
      }
    }
    if (cnms_.is_tor()) translate(p, now);
  }
}

void Switch::translate(SwitchPacket& packet, Nanos now) {
  const CnmNotifier::Taken taken = cnms_.take(packet, router_, now);
  if (taken == CnmNotifier::Taken::kNotOurs) return;
  if (taken == CnmNotifier::Taken::kRefused) return drop(packet, DropReason::kNotification);
  packet.traffic_class = config_.classifier.by_pcp[kCnmTransmitPriority];
  const auto& to = rte_pktmbuf_mtod(packet.frame, const EthernetHeader*)->destination;
  const auto egress = macs_.find(packet.vlan, to, now);
  if (!egress) {
    cnms_.count(CnmEvent::kNoPort);
    return drop(packet, DropReason::kNotification);
  }
  cnms_.count(CnmEvent::kTranslated);
  admit(packet, false, *egress, now);
  packet.frame = nullptr;
}

void Switch::observe_stage(std::span<SwitchPacket> batch, Nanos now) {
  const uint16_t int_port = config_.telemetry.enabled ? config_.telemetry.udp_port : uint16_t{0};
  for (SwitchPacket& p : batch) {
    if (p.frame == nullptr || (p.ether_type != kEtherTypeIpv4 && p.ether_type != kEtherTypeIpv6)) continue;
    const auto glance = glance_roce({rte_pktmbuf_mtod(p.frame, const uint8_t*), p.frame->data_len},
                                    p.frame->pkt_len, int_port);
    if (!glance) continue;
    if (glance->info->operation != Operation::kCongestionNotification) {
      senders_->see(*glance, now);
    } else if (!cnps_.pass(*glance, now)) {
      drop(p, DropReason::kCovered);
    }
  }
}

// They are never flooded.
void Switch::send_messages(Nanos now) {
  while (!outbox_.empty()) {
    const Outbox::Message message = outbox_.pop();
    SwitchPacket packet{.frame = message.frame, .vlan = message.vlan, .from_us = true};
    bump(*send(message, packet, now));
    rte_pktmbuf_free(packet.frame);  // when it has not been sent
  }
}

Outbox::Counter* Switch::send(const Outbox::Message& message, SwitchPacket& packet, Nanos now) {
  const auto* ethernet = rte_pktmbuf_mtod(packet.frame, const EthernetHeader*);
  packet.l3_offset = sizeof(EthernetHeader);
  packet.ether_type = ethernet->ether_type.get();
  if (packet.ether_type == kEtherTypeVlan) {
    packet.ether_type = reinterpret_cast<const VlanHeader*>(ethernet + 1)->ether_type.get();
    packet.l3_offset += sizeof(VlanHeader);
  }
  const bool is_ip = packet.ether_type == kEtherTypeIpv4 || packet.ether_type == kEtherTypeIpv6;
  classify(packet, config_.classifier);
  if (!is_ip) packet.ether_type = kEtherTypeCnm;  // behind its CN-TAG
  if (!is_ip || config_.classifier.trust == ClassifierConfig::Trust::kPcp)
    packet.traffic_class = config_.classifier.by_pcp[kCnmTransmitPriority];
  if (message.to) {
    if (message.at_home != nullptr && !router_.leads_on(*message.to)) return message.at_home;
    return router_.originate(packet, *message.to, now) ? message.sent : message.no_way;
  }
  const auto egress = macs_.find(packet.vlan, ethernet->destination, now);
  if (!egress) return message.no_way;
  admit(packet, false, *egress, now);
  packet.frame = nullptr;
  return message.sent;
}

void Switch::route_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (SwitchPacket& p : batch) {
    if (p.frame != nullptr) router_.handle(p, now);
  }
}

void Switch::forward_stage(std::span<SwitchPacket> batch, Nanos now) {
  for (SwitchPacket& p : batch) {
    if (p.frame != nullptr) forward(p, now);
  }
}

void Switch::forward(SwitchPacket& packet, Nanos now) {
  const auto& ethernet = *rte_pktmbuf_mtod(packet.frame, const EthernetHeader*);
  const auto egress =
      ethernet.destination.is_multicast() ? std::nullopt : macs_.find(packet.vlan, ethernet.destination, now);
  if (!egress) return flood(packet, now);
  if (*egress == packet.ingress && !packet.from_us) return drop(packet, DropReason::kSamePort);
  admit(packet, false, *egress, now);
  packet.frame = nullptr;
}

void Switch::flood(SwitchPacket& packet, Nanos now) {
  if (packet.ingress != kNoPort && !packet.from_us) bump(ports_[packet.ingress]->counters.flooded);
  uint16_t last = kNoPort;                                  // gets the frame itself, those before it copies
  const auto count = static_cast<uint16_t>(ports_.size());  // at most 1,024
  for (uint16_t i = 0; i < count; ++i) {
    if (!ports_[i]->carries(packet.vlan) || (i == packet.ingress && !packet.from_us)) continue;
    if (last != kNoPort) admit(packet, true, last, now);
    last = i;
  }
  if (last == kNoPort) return drop(packet, DropReason::kNoEgress);
  admit(packet, false, last, now);
  packet.frame = nullptr;
}

// Where telemetry ends the packet will be as its sender made it.
bool Switch::fits_mtu(const rte_mbuf& frame, const PortState& out) const {
  const uint16_t mtu = out.capabilities.mtu;
  if (!exceeds_mtu(frame, mtu)) return true;
  if (!telemetry_.enabled() || !ends_telemetry(out.role)) return false;
  const IntView view = parse_int({rte_pktmbuf_mtod(&frame, const uint8_t*), frame.data_len}, frame.pkt_len,
                                 config_.telemetry.udp_port);
  return view.accepted() && view.udp.ip_bytes() - view.bytes() <= mtu;
}

void Switch::admit(const SwitchPacket& packet, bool copy, uint16_t egress, Nanos now) {
  PortState& out = *ports_[egress];
  rte_mbuf* frame = packet.frame;
  const auto refuse = [&](PortState& where, DropReason reason) {
    bump(where.counters.drops[static_cast<unsigned>(reason)]);
    if (!copy) rte_pktmbuf_free(frame);
  };
  const bool tagged = packet.vlan != out.native;
  const uint32_t length = length_with_tag(frame, tagged);
  if (!fits_mtu(*frame, out)) return refuse(out, DropReason::kTooLong);
  if (!out.egress.has_room(length)) return refuse(out, DropReason::kQueueFull);
  const DropReason full =
      buffer_.admit(packet.ingress, packet.traffic_class, length, out.egress.queue(packet.traffic_class));
  if (full != DropReason::kNone)
    return refuse(full == DropReason::kHeadroomFull ? *ports_[packet.ingress] : out, full);
  const AqmVerdict verdict = out.egress.ask(packet, now);
  if (verdict == AqmVerdict::kDrop) return refuse(out, DropReason::kEarlyDrop);
  rte_mbuf* leaving = copy ? rte_pktmbuf_copy(frame, pool_->get(), 0, UINT32_MAX) : frame;
  if (leaving != nullptr) leaving = set_tag(leaving, tagged, packet.vlan, pool_->get());
  if (leaving != nullptr && packet.has_cn_tag && !out.keeps_cn_tags) [[unlikely]] {
    leaving = strip_cn_tag(leaving, pool_->get());
    if (leaving != nullptr) cnms_.count(CnmEvent::kTagRemoved);
  }
  if (leaving != nullptr && verdict == AqmVerdict::kMark) {
    leaving = own_front(leaving, 0, pool_->get());
    if (leaving != nullptr) {
      mark_congestion(rte_pktmbuf_mtod(leaving, uint8_t*), leaving->data_len);
      bump(out.counters.classes[packet.traffic_class].marked);
    }
  }
  if (leaving == nullptr) {
    bump(out.counters.drops[static_cast<unsigned>(DropReason::kNoBuffer)]);
    return;
  }
  out.egress.push(leaving, packet, now);
  if (((out.cnm_points | out.cnp_points) >> packet.traffic_class & 1U) != 0) [[unlikely]]
    notify(packet, leaving, egress, now);
}

// A frame has been put into the queue of a class whose senders are told of congestion.
void Switch::notify(const SwitchPacket& packet, const rte_mbuf* frame, uint16_t egress, Nanos now) {
  const PortState& out = *ports_[egress];
  const uint64_t queue = out.egress.queue(packet.traffic_class);
  if ((out.cnm_points >> packet.traffic_class & 1U) != 0) {
    cnms_.queued(egress, packet, frame, queue, now);
  } else {
    cnps_.queued(egress, packet, frame, queue, now);
  }
}

bool Switch::drain(Nanos now) {
  bool worked = false;
  for (auto& p : ports_) worked |= p->egress.drain(p->port, now);
  return worked;
}

Status Switch::configure_marking(size_t port, const ClassConfigs& classes) {
  if (port >= ports_.size()) return fail("switch '" + config_.name + "' has no port " + std::to_string(port));
  ClassConfigs changed = config_.ports[port].classes;
  for (uint8_t c = 0; c < kTrafficClasses; ++c) changed[c].aqm = classes[c].aqm;
  ROCI_TRY(check_classes(changed, config_.ports[port].queue));
  config_.ports[port].classes = changed;
  ports_[port]->egress.configure(changed);
  return {};
}

void Switch::drop(SwitchPacket& packet, DropReason reason) {
  bump(counters_of(packet).drops[static_cast<unsigned>(reason)]);
  rte_pktmbuf_free(packet.frame);
  packet.frame = nullptr;
}

SwitchPortCounters& Switch::counters_of(const SwitchPacket& packet) {
  return packet.ingress == kNoPort ? own_counters_ : ports_[packet.ingress]->counters;
}

}  // namespace roci
