// The Internet checksum (RFC 1071), by DPDK.
#pragma once

#include <rte_ip.h>

#include <cstdint>

namespace roci {

// Of `length` bytes, ready to be stored as it lies in memory. Over a header whose checksum field is right it is 0.
inline uint16_t inet_checksum(const void* data, size_t length) {
  return static_cast<uint16_t>(~rte_raw_cksum(data, length));
}

}  // namespace roci
