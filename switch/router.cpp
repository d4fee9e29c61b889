#include "switch/router.hpp"

#include <algorithm>

#include "port/port.hpp"
#include "switch/frame_edit.hpp"
#include "wire/checksum.hpp"
#include "wire/frame.hpp"
#include "wire/rewrite.hpp"

namespace roci {

// The switch as a host of one VLAN.
class Router::Interface final : public FrameSink {
 public:
  Interface(uint16_t id, rte_mempool* pool, RouterOutput& output)
      : vlan(id), answer_vlan(id), pool_(pool), output_(output) {}

  rte_mbuf* allocate() override { return rte_pktmbuf_alloc(pool_); }
  void send(rte_mbuf* frame) override {
    SwitchPacket packet{.frame = frame, .vlan = answer_vlan, .from_us = true};
    output_.forward(packet, now);
  }

  uint16_t vlan;
  uint16_t answer_vlan;  // where its own frames go
  Nanos now{0};          // of the call that is under way
  std::unique_ptr<Neighbours> neighbours;

 private:
  rte_mempool* pool_;
  RouterOutput& output_;
};

Router::Router(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, RouterOutput& output)
    : mac_(mac), pool_(pool), output_(output), by_vlan_(config.interfaces.empty() ? 0 : kLastVlan + 1U) {
  waiting_.reserve(kMaxWaiting);
}

Router::~Router() {
  for (Waiting& w : waiting_) rte_pktmbuf_free(w.packet.frame);
}

Status Router::open(const SwitchConfig& config) {
  const auto interface_of = [&](const IpAddress& address) -> Interface* {
    for (size_t i = 0; i < config.interfaces.size(); ++i) {
      for (const IpNetwork& own : config.interfaces[i].addresses) {
        if (own.contains(address)) return interfaces_[i].get();
      }
    }
    return nullptr;
  };
  for (const SwitchInterfaceConfig& c : config.interfaces) {
    by_vlan_[c.vlan] = interfaces_.emplace_back(std::make_unique<Interface>(c.vlan, pool_, output_)).get();
  }
  for (const SwitchInterfaceConfig& c : config.interfaces) {
    Interface& interface = *by_vlan_[c.vlan];
    NeighbourConfig n{.mac = mac_, .addresses = c.addresses};
    n.addresses.push_back({IpAddress::link_local(mac_), 64});
    for (const SwitchNeighbourConfig& s : config.neighbours) {
      if (interface_of(s.address) == &interface) n.static_entries.push_back({s.address, s.mac});
    }
    auto neighbours = Neighbours::create(std::move(n), interface);
    if (!neighbours) return fail(neighbours.error().within("interface '" + c.name + "'"));
    interface.neighbours = std::move(*neighbours);
    for (const IpNetwork& own : c.addresses) routes_.push_back({own, &interface, std::nullopt});
  }
  for (const SwitchRouteConfig& r : config.routes) routes_.push_back({r.prefix, interface_of(r.via), r.via});
  std::stable_sort(routes_.begin(), routes_.end(), [](const Route& a, const Route& b) {
    return a.prefix.prefix_length > b.prefix.prefix_length;
  });
  return {};
}

bool Router::is_neighbour_message(const SwitchPacket& packet) const {
  if (!is_in(packet.vlan)) return false;
  if (packet.ether_type == kEtherTypeArp) return true;
  constexpr uint8_t kFirstNd = 133, kLastNd = 137;  // RFC 4861 4
  const uint32_t icmp = packet.l3_offset + static_cast<uint32_t>(sizeof(Ipv6Header));
  if (packet.ether_type != kEtherTypeIpv6 || packet.frame->data_len <= icmp) return false;
  const auto* bytes = rte_pktmbuf_mtod(packet.frame, const uint8_t*);
  const auto& ip = *reinterpret_cast<const Ipv6Header*>(bytes + packet.l3_offset);
  return ip.next_header == kProtocolIcmpv6 && bytes[icmp] >= kFirstNd && bytes[icmp] <= kLastNd;
}

void Router::overhear(const SwitchPacket& packet, Nanos now) {
  Interface& in = *by_vlan_[packet.vlan];
  FrameView view = parse_frame(rte_pktmbuf_mtod(packet.frame, const uint8_t*), packet.frame->data_len,
                               packet.frame->pkt_len);
  view.vlan_tags = 0;  // an interface belongs to its VLAN, however the port writes that
  in.now = now;
  in.neighbours->overhear(view, packet.frame, now);
}

void Router::handle(SwitchPacket& packet, Nanos now) {
  if (by_vlan_.empty()) return;
  Interface* in = by_vlan_[packet.vlan];
  if (in == nullptr) return;
  in->now = now;
  const auto& ethernet = *rte_pktmbuf_mtod(packet.frame, const EthernetHeader*);
  if (ethernet.destination == mac_) {
    take(packet, *in, now);
  } else if (ethernet.destination.is_multicast()) {
    FrameView view = parse_frame(rte_pktmbuf_mtod(packet.frame, const uint8_t*), packet.frame->data_len,
                                 packet.frame->pkt_len);
    view.vlan_tags = 0;  // an interface belongs to its VLAN, however the port writes that
    in->neighbours->handle(view, packet.frame, now);
  }
}

void Router::take(SwitchPacket& packet, Interface& in, Nanos now) {
  const bool ip = packet.ether_type == kEtherTypeIpv4 || packet.ether_type == kEtherTypeIpv6;
  FrameView view = parse_frame(rte_pktmbuf_mtod(packet.frame, const uint8_t*), packet.frame->data_len,
                               packet.frame->pkt_len);
  view.vlan_tags = 0;
  Interface* host = &in;  // the interface whose address the packet is for
  if (ip) {
    if (view.kind == FrameKind::kTruncated || view.kind == FrameKind::kBadIp) {
      return output_.drop(packet, DropReason::kBadIp);
    }
    const IpAddress destination = view.destination_ip();
    if (!in.neighbours->is_own(destination)) {
      const auto owner = std::find_if(interfaces_.begin(), interfaces_.end(),
                                      [&](const auto& i) { return i->neighbours->is_own(destination); });
      if (owner == interfaces_.end()) return route(packet, now);
      host = owner->get();
    }
  }
  // The answer goes back to where the question came from, also when the address is in another VLAN.
  host->now = now;
  host->answer_vlan = packet.vlan;
  const bool handled = host->neighbours->handle(view, packet.frame, now);
  host->answer_vlan = host->vlan;
  if (!handled) return output_.drop(packet, DropReason::kNotForUs);
  bump(output_.counters_of(packet).answered);
  rte_pktmbuf_free(packet.frame);
  packet.frame = nullptr;
}

void Router::route(SwitchPacket& packet, Nanos now) {
  packet.frame = own_front(packet.frame, 0, pool_);
  if (packet.frame == nullptr) return output_.drop(packet, DropReason::kNoBuffer);
  IpAddress destination;
  const DropReason reason = step(packet.frame, packet.l3_offset, destination);
  if (reason != DropReason::kNone) return output_.drop(packet, reason);
  const Route* found = find_route(destination);
  if (found == nullptr || destination.is_multicast() || destination.is_link_local()) {
    return output_.drop(packet, DropReason::kNoRoute);
  }
  send_by(*found, packet, destination, now);
}

void Router::send_by(const Route& route, SwitchPacket& packet, const IpAddress& destination, Nanos now) {
  const IpAddress next_hop = route.via.value_or(destination);
  if (send(packet, *route.interface, next_hop, now)) return;
  if (waiting_.size() == kMaxWaiting) return output_.drop(packet, DropReason::kNoNeighbour);
  waiting_.push_back({packet, route.interface, next_hop});
  packet.frame = nullptr;
}

bool Router::originate(SwitchPacket& packet, const IpAddress& destination, Nanos now) {
  const Route* found = find_route(destination);
  if (found == nullptr || destination.is_multicast() || destination.is_link_local()) return false;
  send_by(*found, packet, destination, now);
  return true;
}

DropReason Router::step(rte_mbuf* frame, uint16_t l3_offset, IpAddress& destination) {
  auto* l3 = rte_pktmbuf_mtod_offset(frame, uint8_t*, l3_offset);
  if (l3[0] >> 4 == 4) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
    if (ip.ttl <= 1) return DropReason::kTtlExpired;
    decrement_ttl(ip);
    destination = IpAddress::from_v4(ip.destination.get());
  } else {
    auto& ip = *reinterpret_cast<Ipv6Header*>(l3);
    if (ip.hop_limit <= 1) return DropReason::kTtlExpired;
    --ip.hop_limit;
    destination.bytes = ip.destination;
  }
  return DropReason::kNone;
}

const Router::Route* Router::find_route(const IpAddress& destination) const {
  for (const Route& r : routes_) {
    if (r.prefix.contains(destination)) return &r;
  }
  return nullptr;
}

bool Router::send(SwitchPacket& packet, Interface& out, const IpAddress& next_hop, Nanos now) {
  out.now = now;
  const Lookup found = out.neighbours->resolve(next_hop, now);
  if (found.result == Resolution::kPending) return false;
  if (found.result == Resolution::kFailed) {
    output_.drop(packet, DropReason::kNoNeighbour);
    return true;
  }
  if (found.entry->mac.is_multicast()) {  // the broadcast address of a network
    output_.drop(packet, DropReason::kNoRoute);
    return true;
  }
  auto& ethernet = *rte_pktmbuf_mtod(packet.frame, EthernetHeader*);
  ethernet.destination = found.entry->mac;
  ethernet.source = mac_;
  bump(output_.counters_of(packet).routed);
  packet.vlan = out.vlan;
  packet.from_us = true;
  output_.forward(packet, now);
  return true;
}

bool Router::poll(Nanos now) {
  bool worked = false;
  for (auto& interface : interfaces_) {
    interface->now = now;
    worked |= interface->neighbours->poll(now);
  }
  if (waiting_.empty() || generation() == seen_generation_) return worked;
  seen_generation_ = generation();
  size_t kept = 0;
  for (Waiting& w : waiting_) {
    if (send(w.packet, *w.interface, w.next_hop, now)) {
      worked = true;
    } else {
      waiting_[kept++] = w;
    }
  }
  waiting_.resize(kept);
  return worked;
}

Nanos Router::next_deadline() const {
  Nanos next = kNever;
  for (const auto& interface : interfaces_) next = std::min(next, interface->neighbours->next_deadline());
  return next;
}

uint64_t Router::generation() const {
  uint64_t sum = 0;
  for (const auto& interface : interfaces_) sum += interface->neighbours->generation();
  return sum;
}

}  // namespace roci
