// Which hosts have which extensions: the capability exchange over queue pair 1 (docs/wire-extensions.md), its answers
// and its time-outs, and what came of it.
//
//   want()            response                              kUnknown ── no answer to 4 ──► kStandard
//   ──────► request ───────────► agreed, and confirmed:        │                              │
//              ▲                 we may send extensions        └── response ──► kAgreed ◄─────┘ the peer asks us
//              └ 20, 40, 80 ms                                   or request
//
// A host takes extensions from a peer as soon as it has answered that peer's request or had its own answered. It sends
// them only when its own request was answered: then the peer takes them for certain.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/id_source.hpp"
#include "base/rate_limit.hpp"
#include "base/spinlock.hpp"
#include "base/timing_wheel.hpp"
#include "engine/management.hpp"
#include "roci/extension_config.hpp"
#include "telemetry/counters.hpp"
#include "wire/capability_mad.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

enum class PeerStatus : uint8_t { kUnknown, kStandard, kAgreed };

// What is known of a peer. Written by the first worker, read by all: who has a copy compares version().
struct PeerKnowledge {
  PeerStatus status = PeerStatus::kUnknown;
  bool confirmed = false;  // the peer takes extensions from us
  CapabilityAgreement agreement;
  uint32_t window = 0;        // packets that the peer keeps behind a gap
  uint32_t time_unit = 1000;  // of the times it sends, ps
  uint64_t incarnation = 0;   // of the peer
  AuthMaterial theirs{},
      ours{};  // keys of packets to the peer are made from its own, and the other way round
};

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

// Owned by the holder of the first worker's token, but for the records it gives out.
class Peers final : private ManagementClass {
 public:
  static constexpr Nanos kFirstWait{20'000'000};  // for an answer; each of the next waits twice as long
  static constexpr uint32_t kAttempts = 4;
  static constexpr uint32_t kMostAttempts =
      32;  // 4.8 s, at a peer that has asked itself and where extensions are required
  static constexpr Nanos kFresh{1'000'000'000};  // an answer is as good as a new one for so long
  static constexpr size_t kMost = 65536;  // peers that are remembered without a queue pair that needs them

  // `window` packets are kept behind a gap, 0 without selective repeat; `extra`: bytes that the port
  // takes beyond the largest path MTU. `int_hops`: of the longest INT-ECHO that it takes, 0 without telemetry.
  Peers(const ExtensionConfig& config, uint32_t window, uint16_t extra, uint8_t int_hops, IdSource& ids,
        Management& management, Counters& counters);
  ~Peers() override;

  [[nodiscard]] bool enabled() const { return config_.mode != ExtensionMode::kOff; }
  [[nodiscard]] const ExtensionConfig& config() const { return config_; }

  // A queue pair is about to talk to the host at the other end of `path`. Asks it, unless it has just answered. Null
  // when extensions are off.
  std::shared_ptr<const PeerRecord> want(const RocePath& path, Nanos now);
  [[nodiscard]] size_t size() const { return peers_.size(); }

 private:
  struct Peer : Timer {
    std::shared_ptr<PeerRecord> record = std::make_shared<PeerRecord>();
    MadRoute route;             // as of the queue pair that asked last
    CapabilityMessage request;  // the one under way, or the last
    uint32_t attempts = 0;      // of it
    Nanos answered_at{-kFresh};
    [[nodiscard]] bool is_asking() const { return is_scheduled(); }
  };
  // Null when there are as many as may be, all in use.
  Peer* find_or_make(const IpAddress& address, Nanos now);
  [[nodiscard]] CapabilityOffer offer_to(const IpAddress& peer) const;
  void ask(Peer& peer, Nanos now);
  void step(Peer& peer, Nanos now);
  void on_mad(const MadRoute& back, std::span<const uint8_t, kMadBytes> mad, Nanos now) override;
  [[nodiscard]] bool is_from_stranger(const MadHeader& mad) const override {
    return mad.method == MadHeader::kGet;
  }
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override { return timers_.next_deadline(); }
  MadSent send(const MadRoute& route, const CapabilityMessage& message, Nanos now);
  void on_request(const MadRoute& back, const CapabilityMessage& message, Nanos now);
  void on_response(const MadRoute& back, const ParsedMad& parsed, Nanos now);
  // Puts what the peer offers into the record. An incarnation other than the known one is another host.
  static void learn(Peer& peer, const CapabilityOffer& ours, const CapabilityOffer& theirs, bool confirmed);

  ExtensionConfig config_;
  uint32_t window_;
  uint16_t extra_;
  uint8_t int_hops_;
  uint64_t incarnation_;
  SipKey secret_{};
  IdSource& ids_;
  Management& management_;
  Counters& counters_;
  std::unordered_map<IpAddress, Peer> peers_;
  TimingWheel timers_;  // of requests that wait for an answer; goes before the peers whose timers it holds
  RateLimit answers_{10'000};
  Nanos swept_at_{-kFresh};  // when room was last made
};

}  // namespace roci
