// A queue pair on its way from nothing to "ready to send", the same on both sides.
#pragma once

#include <string>

#include "protocol.hpp"
#include "roci/device.hpp"

namespace kv {

// How long a silent peer is waited for: eight times 4.096 us * 2^timeout (IBTA 9.7.6.1.3), a second with 15.
inline constexpr uint8_t kDefaultTimeout = 15;
inline constexpr uint8_t kGidIndex = 1;  // the first of the device's addresses; 0 is the link-local one

// What to tell the peer of `queue_pair`: it will expect `psn` first.
roci::Result<Endpoint> endpoint_of(const roci::Device& device, const roci::QueuePair& queue_pair,
                                   uint32_t psn);

// INIT: receives may be posted. `access` is what the peer may do to our memory.
roci::Status prepare(roci::QueuePair& queue_pair, int access);
// RTR and RTS.
roci::Status connect(roci::QueuePair& queue_pair, const Endpoint& own, const Endpoint& peer, uint8_t timeout);

uint32_t random_psn();

// Why a work request failed, for people.
std::string completion_text(ibv_wc_status status);

}  // namespace kv
