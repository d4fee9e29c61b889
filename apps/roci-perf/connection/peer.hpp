// The address of a queue pair as exchanged between the two sides, given by --peer and printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/headers/address.hpp"

namespace roci::perf {

struct QueuePairAddress {
  Gid gid;
  uint32_t qpn = 0;      // 24 bits
  uint32_t psn = 0;      // 24 bits; PSN of the first packet that this queue pair sends
  uint32_t rkey = 0;     // of the memory that may be written or read
  uint64_t address = 0;  // start of that memory

  // Parses "gid=10.0.0.2,qpn=0x11,psn=0x5[,rkey=0x1234,va=0x7f...]". Numbers are decimal, or hexadecimal with the
  // prefix 0x.
  static Result<QueuePairAddress> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;  // in the format of parse()
  friend bool operator==(const QueuePairAddress&, const QueuePairAddress&) = default;
};

// The GID in the format of perftest: sixteen decimal bytes separated by colons.
std::string gid_in_decimal(const Gid& gid);

}  // namespace roci::perf
