// Address resolution: ARP for IPv4 (RFC 826), neighbor discovery for IPv6 (RFC 4861) and static entries. Also replies
// to ARP, ND and ICMP echo requests.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time/rate_limit.hpp"
#include "base/types.hpp"
#include "port/neighbors/neighbor_table.hpp"
#include "wire/net/arp.hpp"
#include "wire/net/icmp.hpp"
#include "wire/net/nd.hpp"

struct rte_mbuf;

namespace roci {

// Sink for frames that the host itself generates. Never blocks.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Returns an empty buffer, or null if none is free.
  virtual rte_mbuf* allocate() = 0;
  // Takes ownership of the frame; may drop it if the port is full.
  virtual void send(rte_mbuf* frame) = 0;
};

struct StaticNeighbor {
  IpAddress address;
  MacAddress mac;
};

struct NeighborConfig {
  MacAddress mac;                    // of this host
  std::vector<IpNetwork> addresses;  // of this host, with the subnets that are reached without a gateway
  std::optional<IpAddress> gateway_v4{};
  std::optional<IpAddress> gateway_v6{};
  uint16_t vlan_id = 0;  // 0: untagged (or priority-tagged)
  std::vector<StaticNeighbor> static_entries{};
  // Replies to requests; of several workers with one table each, one replies and all learn.
  bool answers = true;
  // Number of entries. A full table evicts the least recently used entry that is not held. If all are held, an address
  // that this host needs makes the table grow.
  uint32_t capacity = 1024;

  // Time between solicitations; doubles each time. The first wait is short: a connection to a neighbor whose reply was
  // lost exhausts its retries within a second.
  Nanos first_wait = 30ms;
  Nanos longest_wait = 1s;
  uint8_t attempts = 7;        // unanswered solicitations before the neighbor, or a probe, has failed: 3 s
  Nanos failed_hold = 5s;      // how long a neighbor stays failed
  Nanos reachable_time = 30s;  // the first use after this time sends a unicast probe
  uint32_t solicitations_per_second = 1000;
  uint32_t replies_per_second = 10'000;

  // A message that claims the address of a confirmed neighbor for another MAC address is not adopted. The next use
  // sends a probe to the confirmed MAC address, at the earliest `claim_interval` after its last confirmation. After
  // `claim_attempts` unanswered probes (0.93 s) the address is resolved again.
  Nanos claim_interval = 100ms;
  uint8_t claim_attempts = 5;
  // Number of ingress ports whose packets cause resolutions; 0: not distinguished. Each may have
  // `pending_per_requester` unanswered resolutions, so that packets of one port to unused addresses do not exhaust
  // solicitations_per_second (RFC 6583).
  uint32_t requesters = 0;
  uint32_t pending_per_requester = 64;
};

// Single writer: the owner's thread.
struct NeighborStats {
  uint64_t solicitations = 0;  // requests, solicitations and probes sent
  uint64_t replies = 0;        // ARP replies, advertisements, echo replies sent
  uint64_t rate_limited = 0;   // frames not sent because of the rate limits
  uint64_t no_buffer = 0;      // frames not sent because the sink had no buffer
  uint64_t malformed = 0;      // invalid ARP, ND or echo messages, which were dropped
  uint64_t conflicts = 0;      // messages of other hosts that use an address of this host
  uint64_t table_full = 0;     // addresses that were not stored because the table was full
  uint64_t failures = 0;       // neighbors that did not reply
  uint64_t claims = 0;   // messages with another MAC address for a confirmed neighbor, which were not adopted
  uint64_t refused = 0;  // resolutions not started, since those of the requester are not answered
};

enum class Resolution : uint8_t { kResolved, kPending, kFailed };

struct Lookup {
  Resolution result = Resolution::kFailed;
  // Valid until the next call, unless a NeighborRef holds it. Null if the destination is unreachable (no subnet, no
  // gateway) or the table is full.
  Neighbor* entry = nullptr;
};

// The workers of a host that must process a received frame.
enum class Scope : uint8_t {
  kNone,       // not a message of these protocols
  kResponder,  // ICMP: possibly an echo request
  kAll,        // ARP and ICMPv6 (includes ND): all workers learn from it
};
Scope scope_of(const FrameView& view);

// Neighbor cache and its protocols. Owned and called by one thread,
// a worker of the host. Has no clock: time is an argument.
class Neighbors {
 public:
  static Result<std::unique_ptr<Neighbors>> create(NeighborConfig config, FrameSink& sink);

  // Returns the neighbor for `destination`: the destination itself, the gateway, or for multicast and broadcast an
  // entry with the group's MAC address. Sends solicitations if needed. `requester`: below config.requesters.
  Lookup resolve(const IpAddress& destination, Nanos now, uint16_t requester = Neighbor::kNoRequester);
  // Whether `destination` is a group, in a subnet of this host, or behind a gateway.
  [[nodiscard]] bool has_route(const IpAddress& destination) const {
    return group_mac(destination) || next_hop(destination);
  }
  // Returns the MAC address of the next hop to `destination`, if the table has it. Neither adds an entry nor solicits for an
  // unknown one, so it is safe for destinations that an unauthenticated sender chooses.
  std::optional<MacAddress> known_mac(const IpAddress& destination, Nanos now);
  // The same as resolve() for an entry that the caller holds; must be called before frames are sent. Probes a stale entry, which
  // stays resolved meanwhile, and solicits again for a failed entry whose hold time has ended.
  Resolution use(Neighbor& entry, Nanos now);
  [[nodiscard]] NeighborRef hold(Neighbor& entry) { return {table_, entry}; }
  // A received packet proves that the neighbor receives frames of this host (for example an ACK).
  void confirm(Neighbor& entry, Nanos now);

  // Processes a received frame, which the caller still owns. Returns true if it was ARP, ND or echo for this host's
  // VLAN, and needs no further processing.
  bool handle(const FrameView& view, const rte_mbuf* frame, Nanos now);

  // A packet from an on-link address has arrived while its MAC address is being resolved. The source MAC address is
  // used, and probed at the next use.
  void note_packet(const IpAddress& source, const MacAddress& mac, Nanos now) {
    learn(source, mac, false, true, now);
  }

  // Learns from a copy of a message that another worker processes and answers.
  void observe(const FrameView& view, const rte_mbuf* frame, Nanos now);

  // Sends the solicitations that are due, and ends failed resolutions. Returns whether any was due.
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const { return deadline_; }

  // Announces all addresses of this host on the link, as after a start or a move.
  void announce(Nanos now);

  // Changes when an entry is resolved, fails, or changes its MAC address.
  // A caller that waits for an entry then checks it again.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  [[nodiscard]] bool is_own(const IpAddress& address) const;
  [[nodiscard]] const NeighborStats& stats() const { return stats_; }
  [[nodiscard]] const NeighborTable& table() const { return table_; }

 private:
  // The longest echo request that is answered, in bytes.
  static constexpr size_t kMaxEcho = 9000;

  Neighbors(NeighborConfig config, FrameSink& sink);
  Status add_own_and_static();

  // Inserts an entry; the table may evict another one. Null if all entries are held.
  Neighbor* insert(const IpAddress& address);
  Neighbor* insert_requested(const IpAddress& address);
  Lookup resolve_group(const IpAddress& group, const MacAddress& mac);
  [[nodiscard]] std::optional<MacAddress> group_mac(const IpAddress& destination) const;
  [[nodiscard]] std::optional<IpAddress> next_hop(const IpAddress& destination) const;
  [[nodiscard]] const IpNetwork* subnet_of(const IpAddress& address) const;
  [[nodiscard]] std::optional<IpAddress> source_for(const IpAddress& neighbor) const;
  [[nodiscard]] bool is_local_target(const FrameView& view) const;

  void start(Neighbor& entry, NeighborState state, Nanos now);
  void step(Neighbor& entry, Nanos now);
  [[nodiscard]] Nanos wait_after(uint8_t attempts) const;
  bool solicit(Neighbor& entry, Nanos now);
  void set_deadline(Neighbor& entry, Nanos when);
  void set_mac(Neighbor& entry, const MacAddress& mac);
  void become_reachable(Neighbor& entry, Nanos now, bool confirmed);
  // All changes of the state, to count the unanswered resolutions of each requester.
  void set_state(Neighbor& entry, NeighborState state);
  [[nodiscard]] bool may_start(uint16_t requester) const {
    return requester >= pending_.size() || pending_[requester] < config_.pending_per_requester;
  }
  // Handles a message that names another MAC address for a confirmed or probed entry.
  void contest(Neighbor& entry, Nanos now);
  // Updates the sender's entry. `answers_own_request`: the message replies to a request of this host. `targets_own_address`: it is a request
  // to this host, and may create an entry.
  void learn(const IpAddress& address, const MacAddress& mac, bool answers_own_request,
             bool targets_own_address, Nanos now);

  void handle_arp(const ArpMessage& message, Nanos now);
  void handle_nd(const NeighborMessage& message, const FrameView& view, Nanos now);
  void handle_advertisement(const NeighborMessage& message, Nanos now);
  void answer_echo(const EchoMessage& request, const FrameView& view, Nanos now);

  [[nodiscard]] LinkHeader link_to(const MacAddress& destination) const;
  template <class Build>
  bool send(uint32_t length, const Build& build);
  bool send_arp(const LinkHeader& link, const ArpMessage& message);
  bool send_nd(const LinkHeader& link, const NeighborMessage& message);

  NeighborConfig config_;
  FrameSink& sink_;
  NeighborTable table_;
  std::vector<uint32_t> pending_;  // unanswered resolutions of each requester
  NeighborStats stats_;
  RateLimit solicitation_limit_;
  RateLimit reply_limit_;
  Nanos deadline_ = kNever;  // not later than the earliest deadline of the entries that wait for a reply
  uint64_t generation_ = 0;
};

}  // namespace roci
