// The headers that begin an ICRC as pieces of 16 bytes: eight 0xff bytes and those from the IP header to the BTH, as they
// go into the frame behind what of the Ethernet header lies there, and masked (icrc.hpp). IPv4 without options.
#pragma once

#include <cstdint>
#include <cstring>

#include "wire/crc_sum.hpp"
#include "wire/headers.hpp"

namespace roci::icrc_pieces {

using Bytes = __m128i;

inline Bytes load(const uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
inline void store(uint8_t* to, Bytes bytes) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes); }
inline Bytes bytes_of(uint64_t first, uint64_t second) {
  return _mm_set_epi64x(static_cast<int64_t>(second), static_cast<int64_t>(first));
}

// What lies in front of the IP header in the first piece.
inline constexpr uint32_t kBefore = 8;
struct Ipv4Pieces {
  Bytes ip, addresses, udp_bth;  // from 8 bytes before the IP header on
};
struct Ipv6Pieces {
  Bytes ip, source, destination, udp_bth;
  uint32_t last;  // the end of the BTH
};

inline Ipv4Pieces load_ipv4(const uint8_t* from) { return {load(from), load(from + 16), load(from + 32)}; }
inline Ipv6Pieces load_ipv6(const uint8_t* from) {
  Ipv6Pieces pieces{load(from), load(from + 16), load(from + 32), load(from + 48), 0};
  std::memcpy(&pieces.last, from + 64, sizeof pieces.last);
  return pieces;
}
inline void store_headers(uint8_t* to, const Ipv4Pieces& pieces) {
  store(to, pieces.ip);
  store(to + 16, pieces.addresses);
  store(to + 32, pieces.udp_bth);
}
inline void store_headers(uint8_t* to, const Ipv6Pieces& pieces) {
  store(to, pieces.ip);
  store(to + 16, pieces.source);
  store(to + 32, pieces.destination);
  store(to + 48, pieces.udp_bth);
  std::memcpy(to + 64, &pieces.last, sizeof pieces.last);
}

// The first eight bytes, which are ones. The register that the CRC begins with takes the first four away.
inline constexpr uint64_t kOnesInEmptyRegister = 0xffffffff00000000;

// With `behind` bytes between the BTH and the ICRC (or what else the sum runs to).
inline constexpr uint32_t kMostBehind = kLongestCrcSum - 68;
ROCI_PCLMUL inline __m128i sum(const Ipv4Pieces& p, uint32_t behind) {
  const __m128i ip = _mm_or_si128(p.ip, bytes_of(0, 0xff00));                    // TOS
  const __m128i addresses = _mm_or_si128(p.addresses, bytes_of(0xffff00ff, 0));  // TTL, checksum
  const __m128i udp_bth =
      _mm_or_si128(p.udp_bth, bytes_of(0xffff0000, 0xff));  // checksum; FECN, BECN and more
  const __m128i begun = _mm_unpacklo_epi64(bytes_of(kOnesInEmptyRegister, 0), _mm_unpackhi_epi64(ip, ip));
  return _mm_xor_si128(crc_piece(begun, behind + 32),
                       _mm_xor_si128(crc_piece(addresses, behind + 16), crc_piece(udp_bth, behind)));
}

ROCI_PCLMUL inline __m128i sum(const Ipv6Pieces& p, uint32_t behind) {
  const __m128i ip = _mm_or_si128(p.ip, bytes_of(0, 0xff000000ffffff0f));  // class, flow label; hop limit
  const __m128i udp_bth = _mm_or_si128(p.udp_bth, bytes_of(uint64_t{0xffff} << 48, uint64_t{0xff} << 32));
  const __m128i begun = _mm_unpacklo_epi64(bytes_of(kOnesInEmptyRegister, 0), _mm_unpackhi_epi64(ip, ip));
  const __m128i first = _mm_xor_si128(crc_piece(begun, behind + 52), crc_piece(p.source, behind + 36));
  const __m128i second = _mm_xor_si128(crc_piece(p.destination, behind + 20), crc_piece(udp_bth, behind + 4));
  return _mm_xor_si128(_mm_xor_si128(first, second), crc_piece_of_4(p.last, behind));
}

}  // namespace roci::icrc_pieces
