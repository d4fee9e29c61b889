// Hash of a frame by which receive side scaling selects a queue: the Toeplitz function over the selected fields.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

#include "wire/net/steering_key.hpp"

namespace roci {

using RssKey = std::array<uint8_t, 40>;

// `fields`: ibv_rx_hash_fields. In the order source address, destination address, source port, destination port, those
// that the frame has. 0 if it has none.
uint32_t rss_hash(const SteeringKey& frame, uint64_t fields, const RssKey& key);

}  // namespace roci
