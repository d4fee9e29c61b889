#include "switch/forwarding/router.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "port/port.hpp"
#include "switch/forwarding/path_hash.hpp"
#include "switch/pipeline/frame_edit.hpp"
#include "wire/net/rewrite.hpp"
#include "wire/roce/frame.hpp"

namespace roci {
namespace {

// Decrements TTL or hop limit of the packet at `l3`. Returns false if it has expired.
bool take_hop(uint8_t* l3) {
  if (l3[0] >> 4 == 4) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
    if (ip.ttl <= 1) return false;
    decrement_ttl(ip);
  } else {
    auto& ip = *reinterpret_cast<Ipv6Header*>(l3);
    if (ip.hop_limit <= 1) return false;
    --ip.hop_limit;
  }
  return true;
}

// Whether packets from or to the address may be forwarded (RFC 1812 4.2.2.11, 5.3.5.1 and 5.3.7, RFC 3927 2.7, RFC 4291
// 2.5 and 2.7).
bool may_cross_routers(const IpAddress& address) {
  if (address.is_v4()) {
    constexpr uint32_t kLinkLocal = 169U << 8 | 254U, kLimitedBroadcast = UINT32_MAX;
    const uint32_t v4 = address.v4();
    const uint32_t network = v4 >> 24;
    return network != 0 && network != 127 && network >> 4 != 14 && v4 >> 16 != kLinkLocal &&
           v4 != kLimitedBroadcast;
  }
  IpAddress loopback;
  loopback.bytes[15] = 1;
  return !address.is_multicast() && !address.is_link_local() && !address.is_zero() && address != loopback;
}

// Source address of an IP packet. No value for IPv4-mapped addresses in an IPv6 packet: the table would take them for
// IPv4 addresses.
std::optional<IpAddress> source_to_forward(const uint8_t* l3) {
  if (l3[0] >> 4 == 4) return IpAddress::from_v4(reinterpret_cast<const Ipv4Header*>(l3)->source.get());
  const auto& ip = *reinterpret_cast<const Ipv6Header*>(l3);
  const IpAddress source{ip.source}, destination{ip.destination};
  if (source.is_v4() || destination.is_v4()) return std::nullopt;
  return source;
}

// The frame as a host of its VLAN receives it. The kind is kOther if the frame has further VLAN tags: the stages before
// the router, such as the address bindings, have not read the packet after them.
FrameView view_in_vlan(const SwitchPacket& packet) {
  FrameView view = parse_frame(rte_pktmbuf_mtod(packet.frame, const uint8_t*), packet.frame->data_len,
                               packet.frame->pkt_len);
  if (view.l3_offset != packet.l3_offset && view.kind != FrameKind::kTruncated) view.kind = FrameKind::kOther;
  view.vlan_tags = 0;  // the interface belongs to the VLAN, tagged or not
  return view;
}

}  // namespace

// The switch as a host in one VLAN.
class Router::Interface final : public FrameSink {
 public:
  Interface(uint16_t id, rte_mempool* pool, RouterOutput& output)
      : vlan(id), answer_vlan(id), pool_(pool), output_(output) {}

  rte_mbuf* allocate() override { return rte_pktmbuf_alloc(pool_); }
  void send(rte_mbuf* frame) override {
    SwitchPacket packet{.frame = frame, .vlan = answer_vlan, .originated = true};
    output_.forward(packet, now);
  }

  // `ingress`: port of the packet that is sent to the address; kNoPort: none.
  Lookup resolve(const IpAddress& address, Nanos at, uint16_t ingress = kNoPort) {
    static_assert(kNoPort == Neighbor::kNoRequester);
    now = at;
    return neighbors->resolve(address, at, ingress);
  }

  uint16_t vlan;
  uint16_t answer_vlan;  // VLAN of the frames that it sends
  Nanos now{0};          // of the current call
  std::unique_ptr<Neighbors> neighbors;

 private:
  rte_mempool* pool_;
  RouterOutput& output_;
};

Router::Router(const SwitchConfig& config, const MacAddress& mac, rte_mempool* pool, RouterOutput& output)
    : mac_(mac),
      pool_(pool),
      output_(output),
      salt_(config.ecmp_seed ? rehash(*config.ecmp_seed) : path_salt(mac)),
      by_vlan_(config.interfaces.empty() ? 0 : kLastVlan + 1U),
      waiting_of_(config.ports.size() + 1, 0) {
  waiting_.reserve(kMaxWaiting);
}

Router::~Router() {
  for (Waiting& w : waiting_) rte_pktmbuf_free(w.packet.frame);
}

// Routes in the table are indices of routes_: for each own address its network and the address itself, then the
// configured routes.
Result<RouteTable> Router::make_table(const SwitchConfig& config) {
  std::vector<RouteEntry> entries;
  const auto add = [&](const IpNetwork& prefix) {
    entries.push_back({prefix, static_cast<uint16_t>(entries.size())});
  };
  for (const SwitchInterfaceConfig& c : config.interfaces) {
    for (const IpNetwork& network : c.addresses) {
      add(network);
      add(IpNetwork::host(network.address));
    }
  }
  for (const SwitchRouteConfig& r : config.routes) add(r.prefix);
  return RouteTable::create(entries,
                            config.route_tables ? RouteTable::Kind::kBySize : RouteTable::Kind::kRanges);
}

Status Router::open(const SwitchConfig& config, const RouteTable& table) {
  table_ = &table;
  for (const SwitchInterfaceConfig& c : config.interfaces) {
    by_vlan_[c.vlan] = interfaces_.emplace_back(std::make_unique<Interface>(c.vlan, pool_, output_)).get();
  }
  for (const SwitchInterfaceConfig& c : config.interfaces) ROCI_TRY(open_interface(c, config));
  open_routes(config);
  return {};
}

Router::Interface* Router::interface_of(const SwitchConfig& config, const IpAddress& address) const {
  for (size_t i = 0; i < config.interfaces.size(); ++i) {
    for (const IpNetwork& own : config.interfaces[i].addresses) {
      if (own.contains(address)) return interfaces_[i].get();
    }
  }
  return nullptr;
}

Status Router::open_interface(const SwitchInterfaceConfig& c, const SwitchConfig& config) {
  Interface& interface = *by_vlan_[c.vlan];
  NeighborConfig n{.mac = mac_, .addresses = c.addresses};
  n.requesters = static_cast<uint32_t>(config.ports.size());
  n.addresses.push_back({IpAddress::link_local(mac_), 64});
  for (const SwitchNeighborConfig& s : config.neighbors) {
    if (interface_of(config, s.address) == &interface) n.static_entries.push_back({s.address, s.mac});
  }
  auto neighbors = Neighbors::create(std::move(n), interface);
  if (!neighbors) return fail(neighbors.error().within("interface '" + c.name + "'"));
  interface.neighbors = std::move(*neighbors);
  return {};
}

void Router::open_routes(const SwitchConfig& config) {
  for (const SwitchInterfaceConfig& c : config.interfaces) {
    for (size_t i = 0; i < c.addresses.size(); ++i) {
      routes_.push_back({.interface = by_vlan_[c.vlan]});
      routes_.push_back({.interface = by_vlan_[c.vlan], .own = true});
    }
  }
  std::map<IpAddress, size_t> places;  // index in hops_
  size_t listed = 0;
  for (const SwitchRouteConfig& r : config.routes) {
    for (const IpAddress& via : r.via) places.emplace(via, places.size());
    listed += r.via.size();
  }
  hops_.resize(places.size());
  for (const auto& [address, place] : places) {
    hops_[place].interface = interface_of(config, address);
    hops_[place].address = address;
  }
  hops_of_routes_.reserve(listed);  // reserved, since routes_ refer to its elements
  for (const SwitchRouteConfig& r : config.routes) {
    const size_t first = hops_of_routes_.size();
    for (const IpAddress& via : r.via) hops_of_routes_.push_back(&hops_[places.at(via)]);
    routes_.push_back({.hops = std::span(hops_of_routes_).subspan(first)});
  }
}

bool Router::is_neighbor_message(const SwitchPacket& packet) const {
  if (!is_in(packet.vlan)) return false;
  if (packet.ether_type == kEtherTypeArp) return true;
  constexpr uint8_t kFirstNd = 133, kLastNd = 137;  // RFC 4861 4
  const uint32_t icmp = packet.l3_offset + static_cast<uint32_t>(sizeof(Ipv6Header));
  if (packet.ether_type != kEtherTypeIpv6 || packet.frame->data_len <= icmp) return false;
  const auto* bytes = rte_pktmbuf_mtod(packet.frame, const uint8_t*);
  const auto& ip = *reinterpret_cast<const Ipv6Header*>(bytes + packet.l3_offset);
  return ip.next_header == kProtocolIcmpv6 && bytes[icmp] >= kFirstNd && bytes[icmp] <= kLastNd;
}

void Router::observe(const SwitchPacket& packet, Nanos now) {
  Interface& in = *by_vlan_[packet.vlan];
  in.now = now;
  in.neighbors->observe(view_in_vlan(packet), packet.frame, now);
}

void Router::handle(std::span<SwitchPacket> batch, Nanos now) {
  if (by_vlan_.empty()) return;
  std::array<SwitchPacket*, kBatch> packets;
  std::array<IpAddress, kBatch> destinations;
  size_t count = 0;
  const auto route_them = [&] {
    route({packets.data(), count}, {destinations.data(), count}, now);
    count = 0;
  };
  for (SwitchPacket& packet : batch) {
    if (packet.frame == nullptr || !look(packet, destinations[count], now)) continue;
    packets[count++] = &packet;
    if (count == kBatch) route_them();
  }
  if (count > 0) route_them();
}

bool Router::look(SwitchPacket& packet, IpAddress& destination, Nanos now) {
  Interface* in = by_vlan_[packet.vlan];
  if (in == nullptr) return false;
  const auto& ethernet = *rte_pktmbuf_mtod(packet.frame, const EthernetHeader*);
  const bool is_local = ethernet.destination == mac_;
  if (!is_local && !ethernet.destination.is_multicast()) return false;
  if (!is_local) {
    in->now = now;
    in->neighbors->handle(view_in_vlan(packet), packet.frame, now);
    return false;
  }
  if (packet.ether_type == kEtherTypeIpv4 || packet.ether_type == kEtherTypeIpv6) {
    const FrameView view = parse_frame(rte_pktmbuf_mtod(packet.frame, const uint8_t*), packet.frame->data_len,
                                       packet.frame->pkt_len);
    if (view.kind == FrameKind::kTruncated || view.kind == FrameKind::kBadIp) {
      output_.drop(packet, DropReason::kBadIp);
      return false;
    }
    destination = view.destination_ip();
    // The table contains all addresses of the switch except the link-local one, which all interfaces share.
    if (!destination.is_link_local() || !in->neighbors->is_own(destination)) return true;
  }
  answer(packet, *in, now);
  return false;
}

void Router::answer(SwitchPacket& packet, Interface& host, Nanos now) {
  // The answer is sent to the VLAN of the request, also if the address is in another VLAN.
  host.now = now;
  host.answer_vlan = packet.vlan;
  const bool handled = host.neighbors->handle(view_in_vlan(packet), packet.frame, now);
  host.answer_vlan = host.vlan;
  if (!handled) return output_.drop(packet, DropReason::kLocalUnanswered);
  bump(output_.counters_of(packet).answered);
  rte_pktmbuf_free(packet.frame);
  packet.frame = nullptr;
}

void Router::route(std::span<SwitchPacket* const> packets, std::span<const IpAddress> destinations,
                   Nanos now) {
  std::array<uint16_t, kBatch> found;
  table_->find(destinations, found);
  if (!waiting_.empty()) send_waiting(now);  // before the packets of this call
  for (size_t i = 0; i < packets.size(); ++i) {
    const Route* one = found[i] == kNotFound ? nullptr : &routes_[found[i]];
    if (one != nullptr && one->own) {
      answer(*packets[i], *one->interface, now);
    } else {
      route_one(*packets[i], one, destinations[i], now);
    }
  }
}

void Router::route_one(SwitchPacket& packet, const Route* found, const IpAddress& destination, Nanos now) {
  packet.frame = own_front(packet.frame, 0, pool_);
  if (packet.frame == nullptr) return output_.drop(packet, DropReason::kNoBuffer);
  auto* l3 = rte_pktmbuf_mtod_offset(packet.frame, uint8_t*, packet.l3_offset);
  const auto source = source_to_forward(l3);
  if (!source || !may_cross_routers(*source) || !may_cross_routers(destination))
    return output_.drop(packet, DropReason::kNoRoute);
  if (!take_hop(l3)) return output_.drop(packet, DropReason::kTtlExpired);
  if (found == nullptr) return output_.drop(packet, DropReason::kNoRoute);
  send_or_wait(packet, *found, destination, now);
}

const Router::Route* Router::find_route(const IpAddress& destination) const {
  const uint16_t found = table_->find(destination);
  return found == kNotFound ? nullptr : &routes_[found];
}

bool Router::is_forwarded(const IpAddress& destination) const {
  if (by_vlan_.empty()) return false;
  const Route* found = find_route(destination);
  return found == nullptr || !found->hops.empty();
}

bool Router::originate(SwitchPacket& packet, const IpAddress& destination, Nanos now) {
  const Route* found = find_route(destination);
  if (found == nullptr || destination.is_multicast() || destination.is_link_local()) return false;
  if (!found->hops.empty() && !may_cross_routers(destination)) return false;
  send_or_wait(packet, *found, destination, now);
  return true;
}

void Router::send_or_wait(SwitchPacket& packet, const Route& route, const IpAddress& destination, Nanos now) {
  if (send(packet, route, destination, now)) return;
  // A port may use at most as much space as is left, so that packets of one port to unused addresses leave space for
  // those of other ports (RFC 6583).
  uint16_t& of_port = waiting_of(packet);
  if (waiting_.size() + of_port >= kMaxWaiting) return output_.drop(packet, DropReason::kNeighborUnresolved);
  ++of_port;
  waiting_.push_back({packet, &route, destination});
  packet.frame = nullptr;
}

bool Router::send(SwitchPacket& packet, const Route& route, const IpAddress& destination, Nanos now) {
  if (route.hops.empty()) {
    const Lookup found = route.interface->resolve(destination, now, packet.ingress);
    return send_to(packet, *route.interface, found.result, found.entry, now);
  }
  const Choice chosen = choose(route, packet, now);
  return send_to(packet, *chosen.hop->interface, chosen.result, chosen.hop->neighbor.get(), now);
}

bool Router::send_to(SwitchPacket& packet, Interface& out, Resolution result, const Neighbor* next_hop,
                     Nanos now) {
  if (result == Resolution::kPending) return false;
  if (result == Resolution::kFailed) {
    output_.drop(packet, DropReason::kNeighborUnresolved);
    return true;
  }
  if (next_hop->mac.is_multicast()) {  // broadcast address of a network
    output_.drop(packet, DropReason::kNoRoute);
    return true;
  }
  auto& ethernet = *rte_pktmbuf_mtod(packet.frame, EthernetHeader*);
  ethernet.destination = next_hop->mac;
  ethernet.source = mac_;
  bump(output_.counters_of(packet).routed);
  packet.vlan = out.vlan;
  packet.originated = true;
  output_.forward(packet, now);
  return true;
}

Router::Choice Router::choose(const Route& route, const SwitchPacket& packet, Nanos now) {
  if (route.hops.size() == 1) return {route.hops[0], solicit(*route.hops[0], now)};
  const uint64_t hash = path_hash({rte_pktmbuf_mtod_offset(packet.frame, const uint8_t*, packet.l3_offset),
                                   static_cast<size_t>(packet.frame->data_len - packet.l3_offset)},
                                  salt_);
  NextHop* const first = route.hops[path_of(hash, static_cast<uint32_t>(route.hops.size()))];
  const Resolution of_first =
      solicit(*first, now);  // also if it is silent, so that it is probed periodically
  if (!first->silent) return {first, of_first};
  const auto speaks = [](const NextHop* hop) { return !hop->silent; };
  for (;;) {  // each iteration returns, or finds one more silent hop
    const auto others = static_cast<uint32_t>(std::count_if(route.hops.begin(), route.hops.end(), speaks));
    if (others == 0) break;
    uint32_t skip = path_of(rehash(hash), others);
    NextHop* const other = *std::find_if(route.hops.begin(), route.hops.end(),
                                         [&](const NextHop* hop) { return speaks(hop) && skip-- == 0; });
    const Resolution result = solicit(*other, now);
    if (other->silent) continue;
    if (result == Resolution::kResolved) bump(output_.counters_of(packet).rerouted);
    return {other, result};
  }
  // All are silent: use any hop that answers.
  Choice any{first, of_first};
  for (NextHop* hop : route.hops) {
    const Resolution result = solicit(*hop, now);
    if (result == Resolution::kResolved) return {hop, result};
    if (result == Resolution::kPending) any.result = result;
  }
  return any;
}

Resolution Router::solicit(NextHop& hop, Nanos now) {
  Resolution result = Resolution::kFailed;
  if (hop.neighbor) {
    hop.interface->now = now;
    result = hop.interface->neighbors->use(*hop.neighbor, now);
  } else {
    const Lookup found = hop.interface->resolve(hop.address, now);
    if (found.entry != nullptr) hop.neighbor = hop.interface->neighbors->hold(*found.entry);
    result = found.result;
  }
  if (result == Resolution::kResolved) {
    hop.answered = true;
    hop.silent = false;
  } else if (result == Resolution::kFailed || hop.answered) {
    hop.silent = true;
  }
  return result;
}

bool Router::poll(Nanos now) {
  bool worked = false;
  for (auto& interface : interfaces_) {
    interface->now = now;
    worked |= interface->neighbors->poll(now);
  }
  if (!waiting_.empty()) worked |= send_waiting(now);
  return worked;
}

bool Router::send_waiting(Nanos now) {
  if (generation() == seen_generation_) return false;
  seen_generation_ = generation();
  const size_t before = waiting_.size();
  size_t kept = 0;
  for (Waiting& w : waiting_) {
    uint16_t& of_port = waiting_of(w.packet);
    if (send(w.packet, *w.route, w.destination, now)) {
      --of_port;
    } else {
      waiting_[kept++] = w;
    }
  }
  waiting_.resize(kept);
  return kept < before;
}

Nanos Router::next_deadline() const {
  Nanos next = kNever;
  for (const auto& interface : interfaces_) next = std::min(next, interface->neighbors->next_deadline());
  return next;
}

uint64_t Router::generation() const {
  uint64_t sum = 0;
  for (const auto& interface : interfaces_) sum += interface->neighbors->generation();
  return sum;
}

}  // namespace roci
