#include "wire/headers/address.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace roci {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

size_t hash_bytes(const uint8_t* data, size_t size) {  // FNV-1a
  size_t h = 14695981039346656037ULL;
  for (size_t i = 0; i < size; ++i) h = (h ^ data[i]) * 1099511628211ULL;
  return h;
}

}  // namespace

MacAddress MacAddress::local(uint64_t seed) {
  MacAddress mac{{0x02}};
  for (size_t i = 1; i < 6; ++i) mac.bytes[i] = static_cast<uint8_t>(seed >> (8 * (5 - i)));
  return mac;
}

Result<MacAddress> MacAddress::parse(std::string_view text) {
  const auto bad = [&] {
    return fail("\"" + std::string(text) + "\" is not a MAC address; example: 02:00:00:00:00:01");
  };
  if (text.size() != 17) return bad();
  MacAddress mac;
  for (size_t i = 0; i < 6; ++i) {
    const char* at = text.data() + 3 * i;
    const auto [end, error] = std::from_chars(at, at + 2, mac.bytes[i], 16);
    if (error != std::errc{} || end != at + 2 || (i < 5 && at[2] != ':')) return bad();
  }
  return mac;
}

std::string MacAddress::to_string() const {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1], bytes[2], bytes[3],
                bytes[4], bytes[5]);
  return text;
}

IpAddress IpAddress::from_v4(uint32_t host_order) {
  IpAddress ip;
  std::memcpy(ip.bytes.data(), kMappedPrefix.data(), kMappedPrefix.size());
  for (size_t i = 0; i < 4; ++i) ip.bytes[12 + i] = static_cast<uint8_t>(host_order >> (24 - 8 * i));
  return ip;
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string copy(text);  // inet_pton() requires a terminator
  const auto bad = [&] { return fail('"' + copy + "\" is not an IP address; examples: 10.0.0.1, fd00::1"); };
  if (text.find('\0') != std::string_view::npos) return bad();
  in_addr v4{};
  if (inet_pton(AF_INET, copy.c_str(), &v4) == 1) return from_v4(ntohl(v4.s_addr));
  IpAddress ip;
  if (inet_pton(AF_INET6, copy.c_str(), ip.bytes.data()) == 1) return ip;
  return bad();
}

IpAddress IpAddress::link_local(const MacAddress& mac) {
  const auto& m = mac.bytes;
  return {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(m[0] ^ 2), m[1], m[2], 0xff, 0xfe, m[3], m[4],
           m[5]}};
}

std::string IpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN];
  if (is_v4()) {
    inet_ntop(AF_INET, bytes.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  }
  return text;
}

uint32_t IpAddress::v4() const {
  return static_cast<uint32_t>(bytes[12]) << 24 | static_cast<uint32_t>(bytes[13]) << 16 |
         static_cast<uint32_t>(bytes[14]) << 8 | bytes[15];
}

bool IpAddress::is_multicast() const { return is_v4() ? (bytes[12] & 0xf0) == 0xe0 : bytes[0] == 0xff; }

IpAddress IpAddress::solicited_node() const {
  return {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, bytes[13], bytes[14], bytes[15]}};
}

MacAddress multicast_mac(const IpAddress& group) {
  const auto& b = group.bytes;
  if (group.is_v4()) return {{0x01, 0x00, 0x5e, static_cast<uint8_t>(b[13] & 0x7f), b[14], b[15]}};
  return {{0x33, 0x33, b[12], b[13], b[14], b[15]}};
}

Result<IpNetwork> IpNetwork::parse(std::string_view text) {
  const size_t slash = text.find('/');
  auto address = IpAddress::parse(text.substr(0, slash));
  if (!address) return fail(address.error());
  const unsigned longest = address->is_v4() ? 32 : 128;
  if (slash == std::string_view::npos) return IpNetwork{*address, static_cast<uint8_t>(longest)};
  unsigned length = 0;
  const char* begin = text.data() + slash + 1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, length);
  if (error != std::errc{} || stop != end || length > longest) {
    return fail("\"" + std::string(text) + "\" has an invalid prefix length; allowed are 0 to " +
                std::to_string(longest) + " after the slash");
  }
  return IpNetwork{*address, static_cast<uint8_t>(length)};
}

std::string IpNetwork::to_string() const { return address.to_string() + "/" + std::to_string(prefix_length); }

bool IpNetwork::contains(const IpAddress& other) const {
  if (address.is_v4() != other.is_v4()) return false;
  unsigned bits = prefix_length;
  for (size_t i = address.is_v4() ? 12 : 0; i < 16 && bits > 0; ++i) {
    const unsigned here = bits < 8 ? bits : 8;
    const auto mask = static_cast<uint8_t>(0xff << (8 - here));
    if (((address.bytes[i] ^ other.bytes[i]) & mask) != 0) return false;
    bits -= here;
  }
  return true;
}

IpNetwork IpNetwork::masked() const {
  IpNetwork network = *this;
  unsigned bits = prefix_length;
  for (size_t i = address.is_v4() ? 12 : 0; i < 16; ++i) {
    const unsigned here = bits < 8 ? bits : 8;
    network.address.bytes[i] &= static_cast<uint8_t>(0xff << (8 - here));
    bits -= here;
  }
  return network;
}

}  // namespace roci

size_t std::hash<roci::IpAddress>::operator()(const roci::IpAddress& a) const noexcept {
  return roci::hash_bytes(a.bytes.data(), a.bytes.size());
}
size_t std::hash<roci::MacAddress>::operator()(const roci::MacAddress& a) const noexcept {
  return roci::hash_bytes(a.bytes.data(), a.bytes.size());
}
