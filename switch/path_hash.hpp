// The number that chooses one of several equal paths for a packet (ECMP): the same for all packets of a flow, and spread
// evenly over flows.
#pragma once

#include <cstdint>
#include <span>

#include "wire/address.hpp"

namespace roci {

// Of the packet whose IP header `packet` begins with; it must be whole. What is looked at:
//
//   addresses and protocol   always. Of fragments nothing else, as only the first has ports.
//   TCP                      both ports
//   UDP                      the source port. RoCEv2 tells flows apart by it alone, and the destination port is
//                            what telemetry changes (wire/telemetry_header.hpp): so a flow stays where it is when packets
//                            of it begin to carry telemetry, also at switches that know nothing of it.
//   IPv6                     the flow label (RFC 6438)
//
// Nothing of that changes on the way. `salt` makes switches choose independently of each other: with the same one, the
// second of two switches in a row would use one path of those it has.
uint64_t path_hash(std::span<const uint8_t> packet, uint64_t salt);

// One of `count` by a hash; each of them for the same part of all hashes.
constexpr uint32_t path_of(uint64_t hash, uint32_t count) {
  return static_cast<uint32_t>((hash >> 32) * count >> 32);
}
// A hash of a hash, for who needs another choice that has nothing to do with the first.
constexpr uint64_t rehash(uint64_t hash) {
  // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (SplitMix64).
  hash += 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
  return hash ^ hash >> 31;
}

// The salt of a switch that was not given one.
uint64_t path_salt(const MacAddress& mac);

}  // namespace roci
