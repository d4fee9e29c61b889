// What one side must know of a queue pair of the other: as --peer takes it, and as we print our own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/address.hpp"

namespace roci::perf {

struct QueuePairAddress {
  Gid gid;
  uint32_t qpn = 0;      // 24 bits
  uint32_t psn = 0;      // 24 bits; of the first packet that this queue pair sends
  uint32_t rkey = 0;     // of the memory that may be written or read
  uint64_t address = 0;  // where that memory starts

  // "gid=10.0.0.2,qpn=0x11,psn=0x5[,rkey=0x1234,va=0x7f...]"; numbers in decimal, or hexadecimal behind 0x.
  static Result<QueuePairAddress> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;  // what parse() reads
  friend bool operator==(const QueuePairAddress&, const QueuePairAddress&) = default;
};

// The GID as perftest prints it: sixteen decimal bytes with colons.
std::string gid_in_decimal(const Gid& gid);

}  // namespace roci::perf
