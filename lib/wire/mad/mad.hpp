// Management datagrams (MAD, IBTA 13.4): UD SEND_ONLY packets of 256 bytes from queue pair 1 to queue pair 1, with a
// well-known Q_Key.
#pragma once

#include <cstdint>

#include "base/types.hpp"
#include "wire/headers/address.hpp"
#include "wire/headers/endian.hpp"

namespace roci {

inline constexpr uint32_t kMadBytes = 256;
inline constexpr Qpn kManagementQp{1};              // general services interface
inline constexpr QKey kManagementQKey{0x80010000};  // well-known Q_Key of every queue pair 1

// Wire format (IBTA 13.4.3).
struct MadHeader {
  static constexpr uint8_t kBaseVersion = 1;
  static constexpr uint8_t kResponse = 0x80;
  static constexpr uint8_t kGet = 0x01;
  static constexpr uint8_t kGetResponse = kGet | kResponse;
  static constexpr uint8_t kSend = 0x03;

  uint8_t base_version = 0;
  uint8_t management_class = 0;
  uint8_t class_version = 0;
  uint8_t method = 0;
  Be16 status;
  Be16 class_specific;
  Be64 transaction;
  Be16 attribute;
  Be16 reserved;
  Be32 modifier;
};
static_assert(sizeof(MadHeader) == 24);

// Addresses of a datagram: from `local` to `remote`. For a received datagram, the route of the response.
struct MadRoute {
  IpAddress local, remote;
  // Received datagram: MAC address of its sender, which need not be in the neighbor table. Zero: to be resolved.
  MacAddress next_hop{};
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
};

}  // namespace roci
