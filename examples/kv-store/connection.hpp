// Setup of a queue pair up to state RTS, for both sides.
#pragma once

#include <string>

#include "protocol.hpp"
#include "roci/device.hpp"

namespace kv {

// Detection time of a dead peer: 8 x 4.096 us * 2^timeout (IBTA 9.7.6.1.3), about 1 s with 15.
inline constexpr uint8_t kDefaultTimeout = 15;
inline constexpr uint8_t kGidIndex = 1;  // the first configured address; 0 is the link-local one

// The values that the peer needs for `queue_pair`. `psn`: its first PSN.
roci::Result<Endpoint> endpoint_of(const roci::Device& device, const roci::QueuePair& queue_pair,
                                   uint32_t psn);

// Changes the queue pair to INIT, so that receives can be posted. `access`: rights of the peer on local memory.
roci::Status prepare(roci::QueuePair& queue_pair, int access);
// Changes the queue pair to RTR and RTS.
roci::Status connect(roci::QueuePair& queue_pair, const Endpoint& own, const Endpoint& peer, uint8_t timeout);

uint32_t random_psn();

// Text for a failed work request.
std::string completion_text(ibv_wc_status status);

}  // namespace kv
