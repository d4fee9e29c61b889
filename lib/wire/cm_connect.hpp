// The two messages of the connection manager (IBTA 12.6.5 and 12.6.8) in which two hosts tell each other the queue pair
// numbers that they connect: as much of them as somebody on the way needs to know which is whose peer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/types.hpp"

namespace roci {

struct CmConnect {
  enum class Message : uint8_t { kRequest, kReply };
  Message message = Message::kRequest;
  uint32_t local_id = 0;   // of the connection, by the sender's choice
  uint32_t remote_id = 0;  // of kReply: the local_id of the request
  Qpn queue_pair;          // of the sender
};

// `mad` is the payload of a datagram to queue pair 1. Null when it is neither of the two.
std::optional<CmConnect> read_cm_connect(std::span<const uint8_t> mad);

}  // namespace roci
