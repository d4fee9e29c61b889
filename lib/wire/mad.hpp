// Management datagrams (MAD, IBTA 13.4): a UD SEND_ONLY of 256 bytes from queue pair 1 to queue pair 1 with a well-known Q_Key.
#pragma once

#include <cstdint>

#include "base/types.hpp"
#include "wire/address.hpp"
#include "wire/endian.hpp"

namespace roci {

inline constexpr uint32_t kMadBytes = 256;
inline constexpr Qpn kManagementQp{1};              // the general services interface
inline constexpr QKey kManagementQKey{0x80010000};  // well-known, of every queue pair 1

// As it lies in the datagram (IBTA 13.4.3).
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

// Between whom a datagram goes: from `local` to `remote`, or, when it has arrived, the way back.
struct MadRoute {
  IpAddress local, remote;
  MacAddress
      next_hop{};  // of an arrived one its sender, who need not be a neighbour that we know; zero: to be found out
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
};

}  // namespace roci
