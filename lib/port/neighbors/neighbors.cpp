#include "port/neighbors/neighbors.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>

namespace roci {
namespace {

constexpr uint32_t kMaxNeighbors = 1U << 20;
// Delay before the next attempt if a frame could not be sent.
constexpr Nanos kSendRetry = 1ms;
// ff02::1
constexpr IpAddress kAllNodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

bool is_usable(const MacAddress& mac) { return !mac.is_zero() && !mac.is_multicast(); }

bool is_limited_broadcast(const IpAddress& address) { return address.is_v4() && address.v4() == 0xffffffff; }

// For example 10.0.0.255 for 10.0.0.1/24. Networks with one or two addresses have no broadcast address (RFC 3021).
bool is_broadcast_of(const IpNetwork& network, const IpAddress& address) {
  if (!address.is_v4() || network.prefix_length > 30 || !network.contains(address)) return false;
  const uint32_t host_bits = network.prefix_length == 0 ? ~0U : ~0U >> network.prefix_length;
  return (address.v4() & host_bits) == host_bits;
}

bool is_unspecified(const IpAddress& address) {
  return address.is_v4() ? address.v4() == 0 : address.is_zero();
}

}  // namespace

Scope scope_of(const FrameView& view) {
  switch (view.kind) {
    case FrameKind::kArp:
      return Scope::kAll;
    case FrameKind::kIpv4:
      return view.ipv4().protocol == kProtocolIcmp ? Scope::kResponder : Scope::kNone;
    case FrameKind::kIpv6:
      return view.ip6().next_header == kProtocolIcmpv6 ? Scope::kAll : Scope::kNone;
    default:
      return Scope::kNone;
  }
}

Neighbors::Neighbors(NeighborConfig config, FrameSink& sink)
    : config_(std::move(config)),
      sink_(sink),
      // Pinned entries do not reduce the capacity.
      table_(config_.capacity +
             static_cast<uint32_t>(config_.addresses.size() + config_.static_entries.size())),
      pending_(config_.requesters, 0),
      solicitation_limit_(config_.solicitations_per_second),
      reply_limit_(config_.replies_per_second) {}

Result<std::unique_ptr<Neighbors>> Neighbors::create(NeighborConfig config, FrameSink& sink) {
  if (!is_usable(config.mac))
    return fail(config.mac.to_string() + " is not a valid MAC address of a host; it must be unicast");
  if (config.vlan_id > 4094) {
    return fail("VLAN " + std::to_string(config.vlan_id) +
                " is out of range; allowed are 1 to 4094, and 0 for none");
  }
  if (config.capacity == 0 || config.capacity > kMaxNeighbors) {
    return fail("the neighbor table cannot have " + std::to_string(config.capacity) +
                " entries; 1 to 1048576 are allowed");
  }
  if (config.attempts == 0 || config.claim_attempts == 0 || config.first_wait <= 0ns ||
      config.longest_wait < config.first_wait || config.failed_hold < 0ns || config.reachable_time < 0ns ||
      config.claim_interval < 0ns) {
    return fail(
        "neighbors: attempts must be at least 1, waits above 0, and the first wait at most the longest");
  }
  auto neighbors = std::unique_ptr<Neighbors>(new Neighbors(std::move(config), sink));
  ROCI_TRY(neighbors->add_own_and_static());
  return neighbors;
}

Status Neighbors::add_own_and_static() {
  const auto add = [this](const IpAddress& address, const MacAddress& mac) -> Status {
    if (is_unspecified(address) || address.is_multicast() || is_limited_broadcast(address)) {
      return fail(address.to_string() + " is not a unicast host address");
    }
    if (table_.find(address) != nullptr)
      return fail("address " + address.to_string() +
                  " has more than one entry; an address may have one entry");
    Neighbor* entry = table_.insert(address);
    entry->mac = mac;
    entry->state = NeighborState::kPermanent;
    table_.pin(*entry);
    return {};
  };
  for (const IpNetwork& own : config_.addresses) ROCI_TRY(add(own.address, config_.mac));
  for (const StaticNeighbor& known : config_.static_entries) {
    if (!is_usable(known.mac)) {
      return fail("static neighbor " + known.address.to_string() + ": the MAC address " +
                  known.mac.to_string() + " is not unicast");
    }
    ROCI_TRY(add(known.address, known.mac));
  }
  for (const auto& gateway : {config_.gateway_v4, config_.gateway_v6}) {
    if (gateway && !is_own(*gateway) && table_.find(*gateway) == nullptr && subnet_of(*gateway) == nullptr) {
      return fail("gateway " + gateway->to_string() + " is in none of the host's subnets");
    }
  }
  return {};
}

// --- Next hop resolution.

Lookup Neighbors::resolve(const IpAddress& destination, Nanos now, uint16_t requester) {
  if (Neighbor* known = table_.find(destination)) return {use(*known, now), known};
  if (const auto mac = group_mac(destination)) return resolve_group(destination, *mac);
  const auto hop = next_hop(destination);
  if (!hop) return {};
  if (Neighbor* known = table_.find(*hop)) return {use(*known, now), known};
  if (!may_start(requester)) {
    ++stats_.refused;
    return {};
  }
  Neighbor* entry = insert_requested(*hop);
  if (entry == nullptr) return {};
  entry->requester = requester;
  start(*entry, NeighborState::kIncomplete, now);
  return {Resolution::kPending, entry};
}

std::optional<MacAddress> Neighbors::known_mac(const IpAddress& destination, Nanos now) {
  Neighbor* entry = table_.find(destination);
  if (entry == nullptr) {
    const auto hop = next_hop(destination);
    entry = hop ? table_.find(*hop) : nullptr;
  }
  if (entry == nullptr || !entry->has_mac()) return std::nullopt;
  use(*entry, now);
  return entry->mac;
}

Neighbor* Neighbors::insert(const IpAddress& address) {
  if (Neighbor* victim = table_.victim()) set_state(*victim, NeighborState::kFree);
  return table_.insert(address);
}

// If every entry is held, the peers in use fill the table, and it grows.
Neighbor* Neighbors::insert_requested(const IpAddress& address) {
  Neighbor* entry = insert(address);
  if (entry != nullptr) return entry;
  if (table_.capacity() >= kMaxNeighbors) {
    ++stats_.table_full;
    return nullptr;
  }
  table_.grow();
  return table_.insert(address);
}

Lookup Neighbors::resolve_group(const IpAddress& group, const MacAddress& mac) {
  Neighbor* entry = insert_requested(group);
  if (entry == nullptr) return {};
  entry->mac = mac;
  entry->state = NeighborState::kPermanent;
  return {Resolution::kResolved, entry};
}

Resolution Neighbors::use(Neighbor& entry, Nanos now) {
  table_.touch(entry);
  switch (entry.state) {
    case NeighborState::kReachable:
      if (now >= entry.deadline) start(entry, NeighborState::kProbing, now);
      return Resolution::kResolved;
    case NeighborState::kProbing:
    case NeighborState::kPermanent:
      return Resolution::kResolved;
    case NeighborState::kFailed:
      if (now < entry.deadline || !may_start(entry.requester)) return Resolution::kFailed;
      start(entry, NeighborState::kIncomplete, now);
      return Resolution::kPending;
    case NeighborState::kIncomplete:
      return Resolution::kPending;
    case NeighborState::kFree:
      break;
  }
  return Resolution::kFailed;
}

std::optional<MacAddress> Neighbors::group_mac(const IpAddress& destination) const {
  if (destination.is_multicast()) return multicast_mac(destination);
  if (is_limited_broadcast(destination)) return MacAddress::broadcast();
  for (const IpNetwork& own : config_.addresses) {
    if (is_broadcast_of(own, destination)) return MacAddress::broadcast();
  }
  return std::nullopt;
}

std::optional<IpAddress> Neighbors::next_hop(const IpAddress& destination) const {
  if (is_unspecified(destination)) return std::nullopt;
  if (subnet_of(destination) != nullptr) return destination;
  if (destination.is_v4()) return config_.gateway_v4;
  // A link-local address is on-link for every host with an IPv6 address.
  if (destination.is_link_local()) {
    return source_for(destination) ? std::optional(destination) : std::nullopt;
  }
  return config_.gateway_v6;
}

const IpNetwork* Neighbors::subnet_of(const IpAddress& address) const {
  for (const IpNetwork& own : config_.addresses) {
    if (own.contains(address)) return &own;
  }
  return nullptr;
}

std::optional<IpAddress> Neighbors::source_for(const IpAddress& neighbor) const {
  if (const IpNetwork* subnet = subnet_of(neighbor)) return subnet->address;
  for (const IpNetwork& own : config_.addresses) {
    if (own.address.is_v4() == neighbor.is_v4()) return own.address;
  }
  return std::nullopt;
}

bool Neighbors::is_own(const IpAddress& address) const {
  return std::any_of(config_.addresses.begin(), config_.addresses.end(),
                     [&](const IpNetwork& own) { return own.address == address; });
}

// --- Entry states.

void Neighbors::set_state(Neighbor& entry, NeighborState state) {
  if (entry.requester < pending_.size()) {
    if (entry.state == NeighborState::kIncomplete) --pending_[entry.requester];
    if (state == NeighborState::kIncomplete) ++pending_[entry.requester];
  }
  entry.state = state;
}

void Neighbors::start(Neighbor& entry, NeighborState state, Nanos now) {
  set_state(entry, state);
  entry.attempts = 0;
  step(entry, now);
}

// Sends the next solicitation of an entry that waits for a reply.
// After the last one, advances the entry to its next state.
void Neighbors::step(Neighbor& entry, Nanos now) {
  const bool shortened = entry.contested && entry.state == NeighborState::kProbing;
  if (entry.attempts < (shortened ? std::min(config_.attempts, config_.claim_attempts) : config_.attempts)) {
    const bool sent = solicit(entry, now);
    if (sent) ++entry.attempts;
    set_deadline(entry, now + (sent ? wait_after(entry.attempts) : kSendRetry));
    return;
  }
  ++generation_;
  if (entry.state == NeighborState::kProbing) {
    entry.contested = false;
    entry.confirmed = Neighbor::kNeverConfirmed;
    start(entry, NeighborState::kIncomplete, now);
    return;
  }
  set_state(entry, NeighborState::kFailed);
  entry.deadline = now + config_.failed_hold;
  ++stats_.failures;
}

Nanos Neighbors::wait_after(uint8_t attempts) const {
  Nanos wait = config_.first_wait;
  for (uint8_t i = 1; i < attempts && wait < config_.longest_wait; ++i) wait *= 2;
  return std::min(wait, config_.longest_wait);
}

void Neighbors::set_deadline(Neighbor& entry, Nanos when) {
  entry.deadline = when;
  deadline_ = std::min(deadline_, when);
}

void Neighbors::observe(const FrameView& view, const rte_mbuf* frame, Nanos now) {
  const bool answers = std::exchange(config_.answers, false);
  handle(view, frame, now);
  config_.answers = answers;
}

bool Neighbors::poll(Nanos now) {
  if (now < deadline_) return false;
  deadline_ = kNever;
  bool worked = false;
  table_.for_each([&](Neighbor& entry) {
    if (entry.state != NeighborState::kIncomplete && entry.state != NeighborState::kProbing) return;
    if (entry.deadline <= now) {
      step(entry, now);
      worked = true;
    } else {
      deadline_ = std::min(deadline_, entry.deadline);
    }
  });
  return worked;
}

bool Neighbors::solicit(Neighbor& entry, Nanos now) {
  const auto source = source_for(entry.address);
  if (!source) return false;
  if (!solicitation_limit_.allow(now)) {
    ++stats_.rate_limited;
    return false;
  }
  const bool probe = entry.state == NeighborState::kProbing;
  bool sent = false;
  if (entry.address.is_v4()) {
    sent = send_arp(link_to(probe ? entry.mac : MacAddress::broadcast()),
                    {ArpOperation::kRequest, config_.mac, *source, MacAddress{}, entry.address});
  } else {
    NeighborMessage message;
    message.source = *source;
    message.destination = probe ? entry.address : entry.address.solicited_node();
    message.target = entry.address;
    message.link_layer = config_.mac;
    sent = send_nd(link_to(probe ? entry.mac : multicast_mac(message.destination)), message);
  }
  if (sent) ++stats_.solicitations;
  return sent;
}

void Neighbors::set_mac(Neighbor& entry, const MacAddress& mac) {
  if (entry.has_mac() && entry.mac == mac) return;
  entry.mac = mac;
  entry.confirmed = Neighbor::kNeverConfirmed;
  ++entry.version;
  ++generation_;
}

void Neighbors::become_reachable(Neighbor& entry, Nanos now, bool confirmed) {
  set_state(entry, NeighborState::kReachable);
  entry.attempts = 0;
  entry.deadline = confirmed ? now + config_.reachable_time : now;
  if (!confirmed) return;
  entry.confirmed = now;
  entry.contested = false;
}

// The claim is not adopted: its sender is not authenticated, and the confirmed neighbor can prove its address. The
// claim does not send a probe by itself, so that a flood of claims sends at most one probe per claim_interval.
void Neighbors::contest(Neighbor& entry, Nanos now) {
  ++stats_.claims;
  entry.contested = true;
  if (entry.state == NeighborState::kReachable)
    entry.deadline = std::min(entry.deadline, std::max(now, entry.confirmed + config_.claim_interval));
}

void Neighbors::confirm(Neighbor& entry, Nanos now) {
  if (entry.state == NeighborState::kReachable || entry.state == NeighborState::kProbing) {
    become_reachable(entry, now, true);
  }
}

void Neighbors::learn(const IpAddress& address, const MacAddress& mac, bool answers_own_request,
                      bool targets_own_address, Nanos now) {
  if (is_unspecified(address)) return;  // duplicate address detection
  if (!is_usable(mac) || address.is_multicast() || is_limited_broadcast(address)) {
    ++stats_.malformed;
    return;
  }
  if (mac == config_.mac) return;  // a frame of this host that was looped back
  if (is_own(address)) {
    ++stats_.conflicts;
    return;
  }
  Neighbor* entry = table_.find(address);
  if (entry == nullptr) {
    if (!targets_own_address || subnet_of(address) == nullptr || group_mac(address)) return;
    entry = insert(address);
    if (entry == nullptr) {
      ++stats_.table_full;
      return;
    }
    set_mac(*entry, mac);
    become_reachable(*entry, now, false);
    return;
  }
  switch (entry->state) {
    case NeighborState::kPermanent:
    case NeighborState::kFree:
      return;
    case NeighborState::kIncomplete:
    case NeighborState::kProbing:
      // A probe is a unicast: only its destination can reply.
      if (answers_own_request && (!entry->has_mac() || entry->mac == mac)) {
        set_mac(*entry, mac);
        become_reachable(*entry, now, true);
        return;
      }
      break;
    case NeighborState::kReachable:
    case NeighborState::kFailed:
      break;
  }
  if (entry->has_mac() && entry->mac == mac) return;
  if (entry->has_mac() && entry->is_confirmed()) return contest(*entry, now);
  // Unsolicited: accepted, but probed at the next use.
  set_mac(*entry, mac);
  become_reachable(*entry, now, false);
}

// --- Received messages.

bool Neighbors::is_local_target(const FrameView& view) const {
  if (view.vlan_tags > 1 || view.vlan_id() != config_.vlan_id) return false;
  const EthernetHeader& ethernet = view.ethernet();
  return ethernet.destination == config_.mac || ethernet.destination.is_multicast();
}

bool Neighbors::handle(const FrameView& view, const rte_mbuf* frame, Nanos now) {
  uint32_t offset = view.l3_offset;
  uint32_t length = sizeof(ArpHeader);
  switch (view.kind) {
    case FrameKind::kArp:
      break;
    case FrameKind::kIpv4:
      if (view.ipv4().protocol != kProtocolIcmp) return false;
      offset = view.l4_offset;
      length = view.ipv4().total_length.get() - (uint32_t{view.l4_offset} - view.l3_offset);
      break;
    case FrameKind::kIpv6:
      if (view.ip6().next_header != kProtocolIcmpv6) return false;
      offset = view.l4_offset;
      length = view.ip6().payload_length.get();
      break;
    default:
      return false;
  }
  if (!is_local_target(view)) return false;
  std::array<uint8_t, kMaxEcho> scratch;  // for a message in several segments
  const void* bytes =
      length > scratch.size() ? nullptr : rte_pktmbuf_read(frame, offset, length, scratch.data());
  const std::span<const uint8_t> message(static_cast<const uint8_t*>(bytes), bytes == nullptr ? 0 : length);
  if (view.kind == FrameKind::kArp) {
    if (const auto arp = parse_arp(message)) {
      handle_arp(*arp, now);
    } else {
      ++stats_.malformed;
    }
    return true;
  }
  if (const auto echo = parse_echo(view, message)) {
    if (!echo->reply && config_.answers) answer_echo(*echo, view, now);
    return true;
  }
  if (const auto nd = parse_nd(view, message)) {
    handle_nd(*nd, view, now);
    return true;
  }
  return false;
}

void Neighbors::handle_arp(const ArpMessage& message, Nanos now) {
  const bool targets_own_address = message.operation == ArpOperation::kRequest && is_own(message.target_ip);
  const bool answers_own_request = message.operation == ArpOperation::kReply && is_own(message.target_ip) &&
                                   message.target_mac == config_.mac;
  learn(message.sender_ip, message.sender_mac, answers_own_request, targets_own_address, now);
  if (!config_.answers || !targets_own_address || !is_usable(message.sender_mac) ||
      message.sender_mac == config_.mac)
    return;
  if (!reply_limit_.allow(now)) {
    ++stats_.rate_limited;
    return;
  }
  const ArpMessage reply{ArpOperation::kReply, config_.mac, message.target_ip, message.sender_mac,
                         message.sender_ip};
  if (send_arp(link_to(message.sender_mac), reply)) ++stats_.replies;
}

void Neighbors::handle_nd(const NeighborMessage& message, const FrameView& view, Nanos now) {
  if (message.advertisement) {
    handle_advertisement(message, now);
    return;
  }
  if (!is_own(message.target) || view.ethernet().source == config_.mac) return;
  if (message.link_layer) learn(message.source, *message.link_layer, false, true, now);
  const MacAddress sender = message.link_layer.value_or(view.ethernet().source);
  if (!config_.answers || !is_usable(sender)) return;
  if (!reply_limit_.allow(now)) {
    ++stats_.rate_limited;
    return;
  }
  // Duplicate address detection: the sender has no address yet, so the reply goes to the all-nodes group.
  const bool checks = message.source.is_zero();
  NeighborMessage reply;
  reply.advertisement = true;
  reply.source = message.target;
  reply.destination = checks ? kAllNodes : message.source;
  reply.target = message.target;
  reply.link_layer = config_.mac;
  reply.solicited = !checks;
  reply.override_cache = true;
  if (send_nd(link_to(checks ? multicast_mac(kAllNodes) : sender), reply)) ++stats_.replies;
}

// RFC 4861 7.2.5, with two differences. An advertisement with another MAC address for a confirmed neighbor is not
// adopted, with any flags (contest()). An advertisement with the solicited flag but without an outstanding
// solicitation changes the MAC address of an unconfirmed neighbor only until the next use, which probes it.
void Neighbors::handle_advertisement(const NeighborMessage& message, Nanos now) {
  if (message.link_layer && (!is_usable(*message.link_layer) || *message.link_layer == config_.mac)) {
    if (!is_usable(*message.link_layer)) ++stats_.malformed;
    return;
  }
  Neighbor* entry = table_.find(message.target);
  if (entry == nullptr || !entry->has_mac() || entry->state == NeighborState::kPermanent) {
    if (message.link_layer) learn(message.target, *message.link_layer, message.solicited, false, now);
    return;
  }
  const bool differs = message.link_layer && *message.link_layer != entry->mac;
  if (differs && entry->is_confirmed()) return contest(*entry, now);
  if (differs && !message.override_cache) {
    // Another host claims the address: keep the MAC address, but probe it at the next use.
    if (entry->state == NeighborState::kReachable) entry->deadline = std::min(entry->deadline, now);
    return;
  }
  if (differs) set_mac(*entry, *message.link_layer);
  if (message.solicited && !differs) {
    become_reachable(*entry, now, true);
  } else if (differs) {
    become_reachable(*entry, now, false);
  }
}

void Neighbors::answer_echo(const EchoMessage& request, const FrameView& view, Nanos now) {
  // Only unicast requests: a multicast request would cause replies from all hosts.
  const MacAddress& sender = view.ethernet().source;
  if (!is_own(request.destination) || view.ethernet().destination != config_.mac || !is_usable(sender) ||
      sender == config_.mac || is_unspecified(request.source) || group_mac(request.source)) {
    return;
  }
  if (!reply_limit_.allow(now)) {
    ++stats_.rate_limited;
    return;
  }
  const EchoMessage reply = echo_reply_to(request);
  const LinkHeader link = link_to(sender);
  const bool sent =
      send(echo_frame_length(link, reply), [&](std::span<uint8_t> out) { build_echo(link, reply, out); });
  if (sent) ++stats_.replies;
}

// --- Transmission.

void Neighbors::announce(Nanos now) {
  for (const IpNetwork& own : config_.addresses) {
    if (!solicitation_limit_.allow(now)) {
      ++stats_.rate_limited;
      continue;
    }
    if (own.address.is_v4()) {
      send_arp(link_to(MacAddress::broadcast()),
               {ArpOperation::kRequest, config_.mac, own.address, MacAddress{}, own.address});
      continue;
    }
    NeighborMessage message;
    message.advertisement = true;
    message.source = own.address;
    message.destination = kAllNodes;
    message.target = own.address;
    message.link_layer = config_.mac;
    message.override_cache = true;
    send_nd(link_to(multicast_mac(kAllNodes)), message);
  }
}

LinkHeader Neighbors::link_to(const MacAddress& destination) const {
  return {destination, config_.mac, config_.vlan_id};
}

template <class Build>
bool Neighbors::send(uint32_t length, const Build& build) {
  rte_mbuf* frame = sink_.allocate();
  char* data = nullptr;
  if (frame != nullptr && length <= rte_pktmbuf_tailroom(frame)) {
    data = rte_pktmbuf_append(frame, static_cast<uint16_t>(length));
  }
  if (data == nullptr) {
    rte_pktmbuf_free(frame);
    ++stats_.no_buffer;
    return false;
  }
  build(std::span<uint8_t>(reinterpret_cast<uint8_t*>(data), length));
  sink_.send(frame);
  return true;
}

bool Neighbors::send_arp(const LinkHeader& link, const ArpMessage& message) {
  const auto length = link.size() + static_cast<uint32_t>(sizeof(ArpHeader));
  return send(length, [&](std::span<uint8_t> out) { build_arp(link, message, out); });
}

bool Neighbors::send_nd(const LinkHeader& link, const NeighborMessage& message) {
  return send(nd_frame_length(link, message), [&](std::span<uint8_t> out) { build_nd(link, message, out); });
}

}  // namespace roci
