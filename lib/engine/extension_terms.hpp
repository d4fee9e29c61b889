// From what is known of a peer to what one queue pair may say to it, and keeping that true while more becomes known.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/attached_queue_pair.hpp"
#include "engine/peers.hpp"
#include "transport/extension_session.hpp"
#include "transport/queue_pair_core.hpp"

namespace roci {

// Packets behind a gap that a queue pair keeps: 256 KiB to 1 MiB of flight at the usual path MTUs.
inline constexpr uint32_t kReorderWindow = 256;

// `peer` has agreed. `port_mtu`: of our port, which has to take a full packet with its block.
ExtensionTerms make_terms(const PeerKnowledge& peer, const ExtensionConfig& config,
                          const HostTelemetryConfig& telemetry, const QueuePairConfig& qp,
                          const QueuePairAttributes& attributes, uint16_t port_mtu);
// Hops of the longest INT-ECHO that fits into every packet which may have one, on a port of this MTU.
uint8_t int_echo_hops(uint16_t port_mtu);

// What the queue pairs of one worker speak beyond the standard; owned by the worker.
class PeerExtensions {
 public:
  // `device` names the worker in the log.
  PeerExtensions(std::string device, const ExtensionConfig& config, const HostTelemetryConfig& telemetry,
                 uint16_t port_mtu)
      : device_(std::move(device)), config_(config), telemetry_(telemetry), port_mtu_(port_mtu) {}

  [[nodiscard]] bool enabled() const { return config_.mode != ExtensionMode::kOff; }
  [[nodiscard]] const ExtensionConfig& config() const { return config_; }
  // What the port takes beside the longest packets of the largest path MTU.
  [[nodiscard]] uint16_t extra_bytes() const;
  // Hops of the longest INT-ECHO that this host takes; 0 when it knows nothing of telemetry.
  [[nodiscard]] uint8_t int_hops() const {
    return telemetry_.enabled() ? int_echo_hops(port_mtu_) : uint8_t{0};
  }

  // The queue pair talks to this peer from now on; null for one that is spoken to as the standard says.
  void set_peer(AttachedQueuePair& qp, std::shared_ptr<const PeerRecord> peer);
  // The queue pair takes over what has become known of its peer, if anything. Before its first packet it needs no session,
  // unless it is to speak by itself; `arrived`: there is one to take.
  void follow(AttachedQueuePair& qp, bool arrived) {
    if (qp.peer == nullptr) return;
    if (qp.peer->version() != qp.peer_version) adopt(qp);
    if (qp.session_due && (arrived || !qp.core.send_queue.empty())) make_session(qp, qp.peer->read());
  }
  // Whether the queue pair need not wait until it is known what its peer speaks.
  enum class Talk : uint8_t {
    kYes,
    kNotYet,
    kRefused,  // it must have extensions and its peer has none
  };
  [[nodiscard]] Talk may_talk(const AttachedQueuePair& qp) const;

 private:
  void adopt(AttachedQueuePair& qp);
  void make_session(AttachedQueuePair& qp, const PeerKnowledge& known);

  std::string device_;
  const ExtensionConfig config_;
  const HostTelemetryConfig telemetry_;
  const uint16_t port_mtu_;
  KeepBudget keep_budget_;  // of all these queue pairs
};

}  // namespace roci
