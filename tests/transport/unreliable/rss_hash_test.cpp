// Hash of receive side scaling, with the published vectors of its specification ("Verifying the RSS Hash Calculation",
// Windows network driver documentation).
#include "engine/management/rss_hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/result.hpp"
#include "wire/headers/address.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

constexpr RssKey kKey{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                      0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                      0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
constexpr uint64_t kAddresses =
    IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
constexpr uint64_t kTcpPorts = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
constexpr uint64_t kUdpPorts = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

SteeringKey key_of(const std::string& source, uint16_t source_port, const std::string& destination,
                   uint16_t destination_port, uint8_t protocol = kProtocolTcp) {
  SteeringKey key;
  const auto put = [&key](std::array<uint8_t, 16>& to, const std::string& text) {
    const auto address = IpAddress::parse(text);
    EXPECT_TRUE(address);
    key.ip_version = address->is_v4() ? 4 : 6;
    const auto from = address->bytes.begin() + (address->is_v4() ? 12 : 0);
    std::copy(from, address->bytes.end(), to.begin());
  };
  put(key.source_ip, source);
  put(key.destination_ip, destination);
  key.protocol = key.ports_of = protocol;
  key.source_port = {static_cast<uint8_t>(source_port >> 8), static_cast<uint8_t>(source_port)};
  key.destination_port = {static_cast<uint8_t>(destination_port >> 8),
                          static_cast<uint8_t>(destination_port)};
  return key;
}

struct Vector {
  std::string source;
  uint16_t source_port;
  std::string destination;
  uint16_t destination_port;
  uint32_t addresses, with_ports;
};

TEST(RssHash, matches_the_published_vectors) {
  const Vector vectors[] = {
      {"66.9.149.187", 2794, "161.142.100.80", 1766, 0x323e8fc2, 0x51ccc178},
      {"199.92.111.2", 14230, "65.69.140.83", 4739, 0xd718262a, 0xc626b0ea},
      {"24.19.198.95", 12898, "12.22.207.184", 38024, 0xd2d0a5de, 0x5c2b394a},
      {"38.27.205.30", 48228, "209.142.163.6", 2217, 0x82989176, 0xafc7327f},
      {"153.39.163.191", 44251, "202.188.127.2", 1303, 0x5d1809c5, 0x10e828a2},
      {"3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766, 0x2cc18cd5, 0x40207d3d},
      {"3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739, 0x0f0c461c, 0xdde51bbf},
      {"3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024, 0x4b61e985,
       0x02d1feef},
  };
  for (const Vector& vector : vectors) {
    const SteeringKey key =
        key_of(vector.source, vector.source_port, vector.destination, vector.destination_port);
    EXPECT_EQ(rss_hash(key, kAddresses, kKey), vector.addresses) << vector.source;
    EXPECT_EQ(rss_hash(key, kAddresses | kTcpPorts, kKey), vector.with_ports) << vector.source;
  }
}

TEST(RssHash, fields_that_a_frame_does_not_have_are_not_hashed) {
  const SteeringKey tcp = key_of("66.9.149.187", 2794, "161.142.100.80", 1766);
  EXPECT_EQ(rss_hash(tcp, kAddresses | kUdpPorts, kKey), 0x323e8fc2U);
  EXPECT_EQ(rss_hash(tcp, IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6, kKey), 0U);
  EXPECT_EQ(rss_hash(SteeringKey{}, kAddresses | kTcpPorts | kUdpPorts, kKey), 0U);
  const SteeringKey udp = key_of("66.9.149.187", 2794, "161.142.100.80", 1766, kProtocolUdp);
  EXPECT_EQ(rss_hash(udp, kAddresses | kUdpPorts, kKey), 0x51ccc178U);
}

}  // namespace
}  // namespace roci
