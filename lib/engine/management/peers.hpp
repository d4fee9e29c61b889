// Extensions of peers: the capability exchange over queue pair 1 (docs/wire-extensions.md), with its
// time-outs and results.
//
//   request_capabilities()
//                     response                              kUnknown ── no reply to 4 ───► kStandard
//   ──────► request ───────────► agreed and confirmed:         │                              │
//              ▲                 extensions may be sent        └── response ──► kAgreed ◄─────┘ request of the peer
//              └ 20, 40, 80 ms                                   or request
//
// A host accepts extensions from a peer after either of their requests was answered. It sends extensions only after its
// own request was answered, which proves that the peer accepts them. A request never changes an agreement that a queue
// pair uses (peer_knowledge.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/id_source.hpp"
#include "base/os/spinlock.hpp"
#include "base/time/rate_limit.hpp"
#include "base/time/timing_wheel.hpp"
#include "engine/management/management.hpp"
#include "engine/management/peer_knowledge.hpp"
#include "roci/extension_config.hpp"
#include "telemetry/counters.hpp"
#include "wire/headers/address_hash.hpp"
#include "wire/mad/capability_mad.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

// Holders of a copy of the knowledge compare version().
class PeerRecord {
 public:
  [[nodiscard]] uint32_t version() const { return version_.load(std::memory_order_acquire); }
  [[nodiscard]] PeerKnowledge read() const {
    const std::scoped_lock guard(lock_);
    return knowledge_;
  }

 private:
  friend class Peers;
  void write(const PeerKnowledge& knowledge) {
    const std::scoped_lock guard(lock_);
    knowledge_ = knowledge;
    version_.fetch_add(1, std::memory_order_release);
  }
  mutable Spinlock lock_;
  PeerKnowledge knowledge_;
  std::atomic<uint32_t> version_{1};
};

// Capability exchange of a host. Owned by the holder of the first
// worker's token, except for the records that request_capabilities() returns.
class Peers final : private ManagementClass {
 public:
  static constexpr Nanos kFirstWait{20'000'000};  // for a response; doubles with each attempt
  static constexpr uint32_t kAttempts = 4;
  // 4.8 s; if the peer has sent a request and extensions are required.
  static constexpr uint32_t kMaxAttempts = 32;
  static constexpr Nanos kFresh{1'000'000'000};  // validity of a response
  // Minimum interval of requests to a peer that are caused by its requests, which may be forged.
  static constexpr Nanos kCausedInterval{20'000'000};
  static constexpr size_t kMax = 65536;  // maximum number of peers; unused ones are removed first

  // `window`: packets that are buffered beyond a gap, 0 without selective repeat. `extra`: bytes that the port accepts
  // beyond the largest path MTU. `int_hops`: hops of the longest INT-ECHO that is accepted, 0 without telemetry.
  Peers(const ExtensionConfig& config, uint32_t window, uint16_t extra, uint8_t int_hops, IdSource& ids,
        Management& management, Counters& counters);
  ~Peers() override;

  [[nodiscard]] bool enabled() const { return config_.mode != ExtensionMode::kOff; }
  [[nodiscard]] const ExtensionConfig& config() const { return config_; }

  // Called before a queue pair sends to the remote host of `path`. Sends a request unless the host has recently
  // responded. Null if extensions are disabled, or if the table is full and no extensions are needed.
  std::shared_ptr<const PeerRecord> request_capabilities(const RocePath& path, Nanos now);
  [[nodiscard]] size_t size() const { return peers_.size(); }
  // Peers that a look-up compares in the worst case.
  [[nodiscard]] size_t longest_chain() const;

 private:
  struct Peer : Timer {
    std::shared_ptr<PeerRecord> record = std::make_shared<PeerRecord>();
    MadRoute route;             // of the queue pair that last called request_capabilities()
    CapabilityMessage request;  // the outstanding request, or the last
    uint32_t attempts = 0;      // of the request
    Nanos answered_at{-kFresh};
    Nanos caused_at{-kFresh};              // when a request of the peer caused the last request
    bool may_lose_authentication = false;  // of the outstanding request: no queue pair used the record
    [[nodiscard]] bool is_requesting() const { return is_scheduled(); }
  };
  [[nodiscard]] static bool in_use(const Peer& peer) { return peer.record.use_count() > 1; }
  // Null if the maximum number of peers is in use.
  Peer* find_or_make(const IpAddress& address, Nanos now);
  [[nodiscard]] CapabilityOffer offer_for(const IpAddress& peer) const;
  void send_request(Peer& peer, Nanos at);
  void step(Peer& peer, Nanos now);
  void on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) override;
  [[nodiscard]] bool is_from_unknown_peer(const MadHeader& mad) const override {
    return mad.method == MadHeader::kGet;
  }
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override { return timers_.next_deadline(); }
  MadSent send(const MadRoute& route, const CapabilityMessage& message, Nanos now);
  void on_request(const MadRoute& back, const CapabilityMessage& message, bool is_signed, Nanos now);
  void on_response(const MadRoute& back, const ParsedMad& parsed, bool is_signed, Nanos now);
  [[nodiscard]] const NetworkKeys* network() const { return network_ ? &*network_ : nullptr; }

  ExtensionConfig config_;
  uint32_t window_;
  uint16_t extra_;
  uint8_t int_hops_;
  uint64_t incarnation_;
  SipKey secret_{};
  std::optional<NetworkKeys> network_;
  IdSource& ids_;
  Management& management_;
  Counters& counters_;
  std::unordered_map<IpAddress, Peer, AddressHash> peers_;
  TimingWheel timers_;  // requests that wait for a response; destroyed before the peers whose timers it holds
  RateLimit answers_{10'000};
  Nanos swept_at_{-kFresh};  // when unused peers were last removed
};

}  // namespace roci
