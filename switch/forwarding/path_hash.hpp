// ECMP hash: selects one of several equal paths for a packet. All packets of a flow have the same hash, and flows are
// spread evenly.
#pragma once

#include <cstdint>
#include <span>

#include "wire/headers/address.hpp"

namespace roci {

// Hash of a packet. `packet` starts with the IP header, which must be complete. Hashed fields:
//
//   addresses and protocol   always. Fragments have no other fields, since only the first one has ports.
//   TCP                      both ports
//   UDP                      the source port. It alone distinguishes RoCEv2 flows, and telemetry changes the
//                            destination port (wire/int/telemetry_header.hpp). The path of a flow therefore does not
//                            change when its packets start to carry telemetry, also at switches without telemetry
//                            support.
//   IPv6                     the flow label (RFC 6438)
//
// None of these fields changes along the path. `salt` makes the selections of switches independent: with equal salts,
// the second of two consecutive switches would use only one of its paths.
uint64_t path_hash(std::span<const uint8_t> packet, uint64_t salt);

// Maps a hash to one of `count` paths; each path has the same part of all hashes.
constexpr uint32_t path_of(uint64_t hash, uint32_t count) {
  return static_cast<uint32_t>((hash >> 32) * count >> 32);
}
// Hash of a hash, for a further selection that is independent of the first.
constexpr uint64_t rehash(uint64_t hash) {
  // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (SplitMix64).
  hash += 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  return hash ^ hash >> 31;
}

// Salt of a switch without a configured one.
uint64_t path_salt(const MacAddress& mac);

}  // namespace roci
