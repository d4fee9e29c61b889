// Header fields that flow rules compare (ibv_create_flow): of received frames, and as value and mask of a rule.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

namespace roci {

// Values in network byte order. Fields that a frame does not have are 0.
struct SteeringKey {
  std::array<uint8_t, 6> destination_mac{}, source_mac{};
  std::array<uint8_t, 2> ether_type{};  // after the VLAN tags
  std::array<uint8_t, 2> vlan_tag{};    // TCI of the outermost tag
  // 4 or 6. IPv4 addresses are the first 4 bytes of the address fields.
  uint8_t ip_version = 0;
  uint8_t protocol = 0;  // of IPv4, or the next header field of IPv6
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  std::array<uint8_t, 16> source_ip{}, destination_ip{};
  std::array<uint8_t, 4> flow_label{};  // with the upper 12 bits 0
  uint8_t ip_flags = 0;                 // IPv4: 1: a fragment follows, 2: do not fragment
  uint8_t ports_of = 0;  // protocol whose ports follow, TCP or UDP; 0 for fragments after the first
  std::array<uint8_t, 2> source_port{}, destination_port{};

  friend bool operator==(const SteeringKey&, const SteeringKey&) = default;
};
static_assert(sizeof(SteeringKey) == 62 && alignof(SteeringKey) == 1);  // without padding: compared as bytes

// Reads the fields of a frame of any length. Lengths and checksums of IP, TCP and UDP are not checked.
SteeringKey read_steering_key(const rte_mbuf& frame);

// Whether the masked fields of `key` equal `value`, which has no bits outside of `mask`.
bool matches(const SteeringKey& key, const SteeringKey& value, const SteeringKey& mask);

}  // namespace roci
