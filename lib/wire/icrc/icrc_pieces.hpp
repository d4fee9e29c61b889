// The headers that start an ICRC, in pieces of 16 bytes: eight 0xff bytes and the headers from IP to BTH. They are
// stored into the frame, after the part of the Ethernet header before them, and masked for the ICRC (icrc.hpp). IPv4
// without options only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/vector16.hpp"
#include "wire/headers/headers.hpp"
#include "wire/icrc/crc_sum.hpp"

namespace roci::icrc_pieces {

// Bytes before the IP header in the first piece. The ICRC replaces them with ones.
inline constexpr uint32_t kBefore = 8;

// Mask of the bits that the ICRC replaces with ones (annex A17.3.1), from kBefore bytes before the IP header to the end
// of the BTH, without IPv4 options.
template <size_t kIpHeader>
constexpr auto make_mask() {
  std::array<uint8_t, kBefore + kIpHeader + sizeof(UdpHeader) + sizeof(Bth)> mask{};
  for (size_t i = 0; i < kBefore; ++i) mask[i] = 0xff;
  uint8_t* ip = mask.data() + kBefore;
  if (kIpHeader == sizeof(Ipv6Header)) {
    ip[0] = 0x0f;                  // traffic class, high bits
    ip[1] = ip[2] = ip[3] = 0xff;  // traffic class, low bits, and flow label
    ip[7] = 0xff;                  // hop limit
  } else {
    ip[1] = 0xff;            // TOS
    ip[8] = 0xff;            // TTL
    ip[10] = ip[11] = 0xff;  // checksum
  }
  uint8_t* udp = ip + kIpHeader;
  udp[6] = udp[7] = 0xff;             // checksum
  udp[sizeof(UdpHeader) + 4] = 0xff;  // FECN, BECN and the six bits after them
  return mask;
}
inline constexpr auto kIpv4Mask = make_mask<sizeof(Ipv4Header)>();
inline constexpr auto kIpv6Mask = make_mask<sizeof(Ipv6Header)>();

struct Ipv4Pieces {
  Vector16 ip, addresses, udp_bth;  // starting 8 bytes before the IP header
};
struct Ipv6Pieces {
  Vector16 ip, source, destination, udp_bth;
  uint32_t last;  // the last 4 bytes of the BTH
};

inline Ipv4Pieces load_ipv4(const uint8_t* from) {
  return {load_16(from), load_16(from + 16), load_16(from + 32)};
}
inline Ipv6Pieces load_ipv6(const uint8_t* from) {
  Ipv6Pieces pieces{load_16(from), load_16(from + 16), load_16(from + 32), load_16(from + 48), 0};
  std::memcpy(&pieces.last, from + 64, sizeof pieces.last);
  return pieces;
}
inline void store_headers(uint8_t* to, const Ipv4Pieces& pieces) {
  store_16(to, pieces.ip);
  store_16(to + 16, pieces.addresses);
  store_16(to + 32, pieces.udp_bth);
}
inline void store_headers(uint8_t* to, const Ipv6Pieces& pieces) {
  store_16(to, pieces.ip);
  store_16(to + 16, pieces.source);
  store_16(to + 32, pieces.destination);
  store_16(to + 48, pieces.udp_bth);
  std::memcpy(to + 64, &pieces.last, sizeof pieces.last);
}

// Returns the first piece, masked and with the initial register of the CRC (ones in the first four bytes). A sum starts
// with an empty register.
inline Vector16 first_piece(Vector16 ip, const uint8_t* mask) {
  return xor_of(or_of(ip, load_16(mask)), vector_of(0xffffffff, 0));
}
inline Vector16 masked(Vector16 piece, const uint8_t* mask) { return or_of(piece, load_16(mask)); }

// Limit of `behind`, the number of bytes between the end of the BTH and the end of the sum, which is the ICRC or
// earlier.
inline constexpr uint32_t kMaxBehind = kMaxCrcSum - 68;
ROCI_CARRYLESS inline Vector16 sum(const Ipv4Pieces& p, uint32_t behind) {
  const uint8_t* mask = kIpv4Mask.data();
  return xor_of(crc_piece(first_piece(p.ip, mask), behind + 32),
                xor_of(crc_piece(masked(p.addresses, mask + 16), behind + 16),
                       crc_piece(masked(p.udp_bth, mask + 32), behind)));
}

ROCI_CARRYLESS inline Vector16 sum(const Ipv6Pieces& p, uint32_t behind) {
  const uint8_t* mask = kIpv6Mask.data();
  const Vector16 first =
      xor_of(crc_piece(first_piece(p.ip, mask), behind + 52), crc_piece(p.source, behind + 36));
  const Vector16 second =
      xor_of(crc_piece(p.destination, behind + 20), crc_piece(masked(p.udp_bth, mask + 48), behind + 4));
  return xor_of(xor_of(first, second), crc_piece_of_4(p.last, behind));
}

}  // namespace roci::icrc_pieces
