// From what is known of a peer to what one queue pair may say to it.
#pragma once

#include "engine/peers.hpp"
#include "transport/extension_session.hpp"
#include "transport/queue_pair_core.hpp"

namespace roci {

// Packets behind a gap that a queue pair keeps: 256 KiB to 1 MiB of flight at the usual path MTUs.
inline constexpr uint32_t kReorderWindow = 256;

// `peer` has agreed. `port_mtu`: of our port, which has to take a full packet with its block.
ExtensionTerms make_terms(const PeerKnowledge& peer, const ExtensionConfig& config, const QueuePairConfig& qp,
                          const QueuePairAttributes& attributes, uint16_t port_mtu);

}  // namespace roci
