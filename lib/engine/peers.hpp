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
#include "port/neighbours.hpp"
#include "roci/extension_config.hpp"
#include "telemetry/counters.hpp"
#include "transport/packet_sink.hpp"
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
class Peers {
 public:
  static constexpr Nanos kFirstWait{20'000'000};  // for an answer; each of the next waits twice as long
  static constexpr uint32_t kAttempts = 4;
  static constexpr Nanos kFresh{1'000'000'000};  // an answer is as good as a new one for so long
  static constexpr size_t kMost = 65536;  // peers that are remembered without a queue pair that needs them

  // `window` packets are kept behind a gap, 0 without selective repeat; `extra`: bytes that the port
  // takes beyond the largest path MTU. `int_hops`: of the longest INT-ECHO that it takes, 0 without telemetry.
  Peers(const ExtensionConfig& config, uint32_t window, uint16_t extra, uint8_t int_hops, IdSource& ids,
        PacketSink& sink, Neighbours& neighbours, Counters& counters);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  [[nodiscard]] bool enabled() const { return config_.mode != ExtensionMode::kOff; }
  [[nodiscard]] const ExtensionConfig& config() const { return config_; }

  // A queue pair is about to talk to the host at the other end of `path`. Asks it, unless it has just answered. Null
  // when extensions are off.
  std::shared_ptr<const PeerRecord> want(const RocePath& path, Nanos now);
  // A UD packet to queue pair 1 with a right ICRC.
  void handle(const FrameView& view, const rte_mbuf* frame, Nanos now);
  // Sends what is due. Returns whether anything was.
  bool poll(Nanos now);
  [[nodiscard]] Nanos next_deadline() const { return timers_.next_deadline(); }
  [[nodiscard]] size_t size() const { return peers_.size(); }

 private:
  struct Peer : Timer {
    std::shared_ptr<PeerRecord> record = std::make_shared<PeerRecord>();
    RocePath path;              // as the queue pair that asked last; without MAC
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
  bool send(const RocePath& path, const CapabilityMessage& message);
  void on_request(const FrameView& view, const CapabilityMessage& message, Nanos now);
  void on_response(const FrameView& view, const ParsedMad& parsed, Nanos now);
  // Puts what the peer offers into the record. An incarnation other than the known one is another host.
  static void learn(Peer& peer, const CapabilityOffer& ours, const CapabilityOffer& theirs, bool confirmed);

  ExtensionConfig config_;
  uint32_t window_;
  uint16_t extra_;
  uint8_t int_hops_;
  uint64_t incarnation_;
  SipKey secret_{};
  IdSource& ids_;
  PacketSink& sink_;
  Neighbours& neighbours_;
  Counters& counters_;
  std::unordered_map<IpAddress, Peer> peers_;
  TimingWheel timers_;  // of requests that wait for an answer; goes before the peers whose timers it holds
  RateLimit answers_{10'000};
  Nanos swept_at_{-kFresh};  // when room was last made
};

}  // namespace roci
