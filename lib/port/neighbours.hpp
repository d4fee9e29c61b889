// Who has which MAC: ARP for IPv4, neighbour discovery for IPv6 (RFC 826, RFC 4861), static entries, and the
// answers a host owes to those who ask for it, ping included.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rate_limit.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "port/neighbour_table.hpp"
#include "wire/arp.hpp"
#include "wire/icmp.hpp"
#include "wire/nd.hpp"

struct rte_mbuf;

namespace roci {

// Where frames of the host's own go. Never blocks.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // An empty buffer, or null when there is none at the moment.
  virtual rte_mbuf* allocate() = 0;
  // Takes over the frame; may drop it when the port is full.
  virtual void send(rte_mbuf* frame) = 0;
};

struct StaticNeighbour {
  IpAddress address;
  MacAddress mac;
};

struct NeighbourConfig {
  MacAddress mac;                    // ours
  std::vector<IpNetwork> addresses;  // ours, with the subnets that are reached without a gateway
  std::optional<IpAddress> gateway_v4{};
  std::optional<IpAddress> gateway_v6{};
  uint16_t vlan_id = 0;  // 0: untagged (or priority-tagged)
  std::vector<StaticNeighbour> static_entries{};
  bool answers =
      true;  // those who ask for us; of several workers with a table each, one answers and all learn
  // Entries. When full, the least recently used one that nobody holds goes; when all are held, an address that we
  // ourselves need makes the table grow.
  uint32_t capacity = 1024;

  // Between solicitations: twice as long each time. The first comes soon, because a connection to a neighbour whose answer
  // was lost has used up its retries within a second.
  Nanos first_wait = 30ms;
  Nanos longest_wait = 1s;
  uint8_t attempts = 7;        // unanswered ones before a neighbour has failed, or a probe is given up: 3 s
  Nanos failed_hold = 5s;      // how long a failed one stays failed
  Nanos reachable_time = 30s;  // after which the next use probes it by unicast
  uint32_t solicitations_per_second = 1000;
  uint32_t replies_per_second = 10'000;
};

// Single writer: the owner's thread.
struct NeighbourStats {
  uint64_t solicitations = 0;  // requests, solicitations and probes sent
  uint64_t replies = 0;        // ARP replies, advertisements, echo replies sent
  uint64_t rate_limited = 0;   // frames not sent because of the limits
  uint64_t no_buffer = 0;      // frames not sent because the sink had no buffer
  uint64_t malformed = 0;      // ARP, ND or echo messages ignored because they are wrong
  uint64_t conflicts = 0;      // somebody else used an address of ours
  uint64_t table_full = 0;     // addresses that found no room
  uint64_t failures = 0;       // neighbours that did not answer
};

enum class Resolution : uint8_t { kResolved, kPending, kFailed };

struct Lookup {
  Resolution result = Resolution::kFailed;
  // Valid until the next call unless a NeighbourRef holds it; null when there is no way to the destination at
  // all (no subnet, no gateway, no room in the table).
  Neighbour* entry = nullptr;
};

// Which workers of a host a received frame concerns.
enum class Audience : uint8_t {
  kNobody,     // no message of these protocols
  kAnswerer,   // ICMP: an echo request, perhaps
  kEverybody,  // ARP and ICMPv6, of which ND is part: all learn from it
};
Audience audience_of(const FrameView& view);

// Owned and called by one thread, a worker of the host. Has no clock: time is an argument.
class Neighbours {
 public:
  static Result<std::unique_ptr<Neighbours>> create(NeighbourConfig config, FrameSink& sink);

  // The neighbour through which `destination` is reached: itself, the gateway, or for multicast and broadcast
  // the group's MAC. Solicits as needed.
  Lookup resolve(const IpAddress& destination, Nanos now);
  // The same for an entry that the caller holds; call it when frames are about to be sent. Probes an entry
  // that has become stale, which stays resolved meanwhile, and asks again for a failed one whose hold time is
  // over.
  Resolution use(Neighbour& entry, Nanos now);
  [[nodiscard]] NeighbourRef hold(Neighbour& entry) { return {table_, entry}; }
  // The neighbour has just been heard from in a way that it could not without having heard us (an ACK).
  void confirm(Neighbour& entry, Nanos now);

  // Offers a received frame, which stays the caller's. True when it was ARP, ND or echo for this host's VLAN
  // and needs no further look.
  bool handle(const FrameView& view, const rte_mbuf* frame, Nanos now);

  // A packet from an on-link address has arrived while its MAC is awaited. The source MAC is used, and probed at the next use.
  void note_packet(const IpAddress& source, const MacAddress& mac, Nanos now) {
    learn(source, mac, false, true, now);
  }

  // Learns from a copy of a message that somebody else has been offered and answers.
  void overhear(const FrameView& view, const rte_mbuf* frame, Nanos now);

  // Repeats and gives up what is due. Returns whether anything was.
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const { return deadline_; }

  // Tells everybody of all our addresses, as a host that has just come up or moved should.
  void announce(Nanos now);

  // Changes whenever an entry is resolved, fails or changes its MAC; who waits for one looks again then.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  [[nodiscard]] bool is_own(const IpAddress& address) const;
  [[nodiscard]] const NeighbourStats& stats() const { return stats_; }
  [[nodiscard]] const NeighbourTable& table() const { return table_; }

 private:
  // The longest ping that is answered.
  static constexpr size_t kLongestEcho = 9000;

  Neighbours(NeighbourConfig config, FrameSink& sink);
  Status add_own_and_static();

  Neighbour* insert_for_us(const IpAddress& address);
  Lookup resolve_group(const IpAddress& group, const MacAddress& mac);
  [[nodiscard]] std::optional<MacAddress> group_mac(const IpAddress& destination) const;
  [[nodiscard]] std::optional<IpAddress> next_hop(const IpAddress& destination) const;
  [[nodiscard]] const IpNetwork* subnet_of(const IpAddress& address) const;
  [[nodiscard]] std::optional<IpAddress> source_for(const IpAddress& neighbour) const;
  [[nodiscard]] bool is_for_us(const FrameView& view) const;

  void start(Neighbour& entry, NeighbourState state, Nanos now);
  void step(Neighbour& entry, Nanos now);
  [[nodiscard]] Nanos wait_after(uint8_t attempts) const;
  bool solicit(Neighbour& entry, Nanos now);
  void set_deadline(Neighbour& entry, Nanos when);
  void set_mac(Neighbour& entry, const MacAddress& mac);
  void become_reachable(Neighbour& entry, Nanos now, bool confirmed);
  // What a message says about its sender. `answers_us`: it proves that the sender heard us.
  void learn(const IpAddress& address, const MacAddress& mac, bool answers_us, bool asks_us, Nanos now);

  void handle_arp(const ArpMessage& message, Nanos now);
  void handle_nd(const NeighbourMessage& message, const FrameView& view, Nanos now);
  void handle_advertisement(const NeighbourMessage& message, Nanos now);
  void answer_echo(const EchoMessage& request, const FrameView& view, Nanos now);

  [[nodiscard]] LinkHeader link_to(const MacAddress& destination) const;
  template <class Build>
  bool send(uint32_t length, const Build& build);
  bool send_arp(const LinkHeader& link, const ArpMessage& message);
  bool send_nd(const LinkHeader& link, const NeighbourMessage& message);

  NeighbourConfig config_;
  FrameSink& sink_;
  NeighbourTable table_;
  std::vector<uint8_t> scratch_;  // for echo messages that arrive in several segments
  NeighbourStats stats_;
  RateLimit solicitation_limit_;
  RateLimit reply_limit_;
  Nanos deadline_ = kNever;  // the earliest of the entries that wait for an answer, or earlier
  uint64_t generation_ = 0;
};

}  // namespace roci
