// Internet checksum (RFC 1071), computed with DPDK.
#pragma once

#include <rte_ip.h>

#include <cstdint>

namespace roci {

// Returns the checksum of `length` bytes in memory byte order. It is 0 for a header with a correct checksum field.
inline uint16_t inet_checksum(const void* data, size_t length) {
  return static_cast<uint16_t>(~rte_raw_cksum(data, length));
}

}  // namespace roci
