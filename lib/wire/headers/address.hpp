// MAC addresses, GIDs and IP networks, with their text forms. A GID in RoCEv2 is an IPv6 address, or an IPv4 address as
// ::ffff:a.b.c.d (RoCEv2 annex A17.4.5.2).
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"

namespace roci {

struct MacAddress {
  std::array<uint8_t, 6> bytes{};

  static constexpr MacAddress broadcast() { return {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}; }
  // Returns a locally administered unicast address from the low 40 bits of `seed`.
  static MacAddress local(uint64_t seed);
  static Result<MacAddress> parse(std::string_view text);  // "02:00:00:00:00:01"
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] constexpr bool is_multicast() const { return (bytes[0] & 1) != 0; }
  [[nodiscard]] constexpr bool is_zero() const { return *this == MacAddress{}; }
  friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) = default;
  // Returns the address in the low 48 bits, in memory byte order, for comparison and hashing.
  [[nodiscard]] constexpr uint64_t bits() const {
    if (std::is_constant_evaluated()) {
      const auto words = std::bit_cast<std::array<uint16_t, 3>>(bytes);
      return uint32_t{words[0]} | uint32_t{words[1]} << 16 | uint64_t{words[2]} << 32;
    }
    uint32_t low = 0;
    uint16_t high = 0;
    std::memcpy(&low, bytes.data(), sizeof low);
    std::memcpy(&high, bytes.data() + sizeof low, sizeof high);
    return low | uint64_t{high} << 32;
  }
  // Called for each received frame, therefore not compared byte by byte.
  friend constexpr bool operator==(const MacAddress& a, const MacAddress& b) { return a.bits() == b.bits(); }
};

// An IPv6 address or an IPv4-mapped address; also the GID of a RoCEv2 port.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};

  static IpAddress from_v4(uint32_t host_order);
  static Result<IpAddress> parse(std::string_view text);  // "10.0.0.1", "fd00::1", "::ffff:10.0.0.1"
  // fe80::/64 with the modified EUI-64 of the MAC (RFC 4291 app. A).
  static IpAddress link_local(const MacAddress& mac);
  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] constexpr bool is_v4() const {
    constexpr auto kMark = std::bit_cast<uint32_t>(std::array<uint8_t, 4>{0, 0, 0xff, 0xff});
    const auto words = std::bit_cast<std::array<uint32_t, 4>>(bytes);
    return (words[0] | words[1]) == 0 && words[2] == kMark;
  }
  [[nodiscard]] uint32_t v4() const;  // host byte order; requires is_v4()
  [[nodiscard]] bool is_multicast() const;
  [[nodiscard]] bool is_zero() const { return *this == IpAddress{}; }
  [[nodiscard]] bool is_link_local() const { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }
  // ff02::1:ffXX:XXXX, the destination of neighbor solicitations for this IPv6 address (RFC 4291 2.7.1).
  [[nodiscard]] IpAddress solicited_node() const;
  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
  friend constexpr bool operator==(const IpAddress& a, const IpAddress& b) {
    const auto x = std::bit_cast<std::array<uint64_t, 2>>(a.bytes);
    const auto y = std::bit_cast<std::array<uint64_t, 2>>(b.bytes);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
  }
};
using Gid = IpAddress;

// Returns the MAC address of an IP multicast group (RFC 1112 6.4, RFC 2464 7).
MacAddress multicast_mac(const IpAddress& group);

// An address with the prefix length of its network: "10.0.0.1/24". The length of an IPv4 prefix is 0 to 32.
struct IpNetwork {
  IpAddress address;
  uint8_t prefix_length = 0;

  static Result<IpNetwork> parse(std::string_view text);
  // Returns a network that contains only this address.
  static constexpr IpNetwork host(const IpAddress& address) {
    return {address, static_cast<uint8_t>(address.is_v4() ? 32 : 128)};
  }
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] bool contains(const IpAddress& other) const;
  // Returns the network with zero bits after the prefix: "10.0.0.0/24".
  [[nodiscard]] IpNetwork masked() const;
  friend constexpr auto operator<=>(const IpNetwork&, const IpNetwork&) = default;
};

}  // namespace roci

template <>
struct std::hash<roci::IpAddress> {
  size_t operator()(const roci::IpAddress& a) const noexcept;
};
template <>
struct std::hash<roci::MacAddress> {
  size_t operator()(const roci::MacAddress& a) const noexcept;
};
