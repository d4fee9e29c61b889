// Extension terms of a queue pair: the extensions that it may use, derived from the knowledge about its peer and
// updated when that changes.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/management/peers.hpp"
#include "engine/worker/attached_queue_pair.hpp"
#include "transport/queue_pair/extension_session.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"

namespace roci {

// Number of packets beyond a gap that a queue pair buffers: 256 KiB to 1 MiB in flight at the usual path MTUs.
inline constexpr uint32_t kReorderWindow = 256;

// `peer` must have agreed. `port_mtu`: of the local port, which must accept a full packet with its extension block.
ExtensionTerms make_terms(const PeerKnowledge& peer, const ExtensionConfig& config,
                          const HostTelemetryConfig& telemetry, const QueuePairConfig& qp,
                          const QueuePairAttributes& attributes, uint16_t port_mtu);
// Number of hops of the longest INT-ECHO that fits into every packet that may carry one, on a port with this MTU.
uint8_t int_echo_hops(uint16_t port_mtu);

// What a queue pair does about a peer with this knowledge.
enum class PeerDecision : uint8_t {
  kUndecided,  // waits; packets with an extension block are dropped
  kStandard,   // uses standard packets, or fails if it needs extensions
  kSession,    // has a session, or creates one before the next packet
};
PeerDecision decide(const PeerKnowledge& known, const ExtensionConfig& config);
// Whether a session with the terms `current` continues with the terms `terms`. Otherwise a new session replaces it.
bool differs_in_may_send_only(const ExtensionTerms& terms, ExtensionTerms current);

// Extension sessions of the queue pairs of one worker, which owns it.
class PeerExtensions {
 public:
  // `device`: the worker's name in the log.
  PeerExtensions(std::string device, const ExtensionConfig& config, const HostTelemetryConfig& telemetry,
                 uint16_t port_mtu)
      : device_(std::move(device)), config_(config), telemetry_(telemetry), port_mtu_(port_mtu) {}

  [[nodiscard]] bool enabled() const { return config_.mode != ExtensionMode::kOff; }
  [[nodiscard]] const ExtensionConfig& config() const { return config_; }
  // Bytes that the port accepts beyond the longest packets of the largest path MTU.
  [[nodiscard]] uint16_t extra_bytes() const;
  // Number of hops of the longest INT-ECHO that this host accepts; 0 without telemetry.
  [[nodiscard]] uint8_t int_hops() const {
    return telemetry_.enabled() ? int_echo_hops(port_mtu_) : uint8_t{0};
  }

  // Sets the peer of the queue pair; null for a queue pair without extensions.
  void set_peer(AttachedQueuePair& qp, std::shared_ptr<const PeerRecord> peer);
  // Updates the queue pair if the knowledge about its peer has changed. A session is created before the first packet is
  // sent, or earlier if the queue pair sends extensions by itself. `arrived`: a packet was received.
  void follow(AttachedQueuePair& qp, bool arrived) {
    if (qp.peer == nullptr) return;
    if (qp.peer->version() != qp.peer_version) adopt(qp);
    if (qp.session_due && (arrived || !qp.core.send_queue.empty())) make_session(qp, qp.peer->read());
  }
  // Whether the queue pair may send, or must wait for the peer's capabilities.
  enum class Negotiation : uint8_t {
    kYes,
    kNotYet,
    kRefused,  // extensions are required and the peer has none
  };
  [[nodiscard]] Negotiation negotiation_of(const AttachedQueuePair& qp) const;

 private:
  void adopt(AttachedQueuePair& qp);
  void make_session(AttachedQueuePair& qp, const PeerKnowledge& known);

  std::string device_;
  const ExtensionConfig config_;
  const HostTelemetryConfig telemetry_;
  const uint16_t port_mtu_;
  BufferBudget buffer_budget_;  // of all queue pairs of the worker
  AuthHistory auth_history_;    // of all queue pairs of the worker
};

}  // namespace roci
