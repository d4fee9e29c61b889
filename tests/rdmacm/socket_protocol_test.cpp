// Tests of the wire format of sockets over RDMA (rsockets), byte by byte, because the peer may be rdma-core.
#include "rdmacm/sockets/protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace roci::rdmacm::sockets {
namespace {

template <class Value>
std::vector<uint8_t> bytes_of(const Value& value) {
  const auto* const first = reinterpret_cast<const uint8_t*>(&value);
  return {first, first + sizeof value};
}

const ConnectionData kTerms{.big_endian = false,
                            .credits = 384,
                            .mappings = 3,
                            .grants = {0x1122334455667788, 0xa1a2a3a4, 2},
                            .ring = {0x99aabbccddeeff00, 0xb1b2b3b4, 65536}};

TEST(SocketTerms, wire_format_matches_rdma_core) {
  const std::vector<uint8_t> wire{
      1,    2,    0x01, 0x80, 0,    0,    0,    3,                                          // Header.
      0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0, 2,   // List.
      0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0xb1, 0xb2, 0xb3, 0xb4, 0, 1, 0, 0};  // Ring.
  EXPECT_EQ(bytes_of(to_wire(kTerms)), wire);
}

TEST(SocketTerms, wire_round_trip_preserves_values) {
  // The private data of a reply is longer than the structure in it.
  std::vector<uint8_t> wire = bytes_of(to_wire(kTerms));
  wire.resize(196);
  const auto read = from_wire(wire);
  ASSERT_TRUE(read);
  EXPECT_EQ(bytes_of(to_wire(*read)), bytes_of(to_wire(kTerms)));
}

TEST(SocketTerms, rejects_invalid_data) {
  std::vector<uint8_t> wire = bytes_of(to_wire(kTerms));
  EXPECT_FALSE(from_wire(std::span(wire).first(39)));
  wire[0] = 2;
  EXPECT_FALSE(from_wire(wire));
  wire[0] = 1;
  std::memset(&wire[20], 0, 4);  // A list without entries.
  EXPECT_FALSE(from_wire(wire));
}

TEST(SocketTerms, contain_no_mappings_without_the_mapping_flag) {
  std::vector<uint8_t> wire = bytes_of(to_wire(kTerms));
  wire[1] = 1;
  const auto read = from_wire(wire);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->mappings, 0);
  EXPECT_TRUE(read->big_endian);
}

TEST(SocketTerms, mapping_count_is_scaled_and_rounded_down) {
  EXPECT_EQ(unscaled(scaled(0)), 0);
  EXPECT_EQ(unscaled(scaled(128)), 128);
  EXPECT_EQ(scaled(256), 0x81);
  EXPECT_EQ(unscaled(scaled(1000)), 768);
  EXPECT_EQ(unscaled(scaled(0x7f00)), 0x7f00);
}

TEST(SocketWord, has_operation_in_upper_three_bits) {
  EXPECT_EQ(word(Operation::kData, 1000), 1000U);
  EXPECT_EQ(word(Operation::kCredits, 384), 0x80000180U);
  EXPECT_EQ(word(Operation::kMapping, 2), 0xc0000002U);
  EXPECT_EQ(word(Operation::kControl, static_cast<uint32_t>(Control::kShutdown)), 0xe0000002U);
  EXPECT_EQ(operation_of(0xe0000001), Operation::kControl);
  EXPECT_EQ(operand_of(0xffffffff), kMaxOperand);
}

TEST(SocketMapping, is_swapped_to_other_byte_order) {
  const Mapping mapping = swapped(Mapping{1, {2, 3, 4}});
  EXPECT_EQ(mapping.offset, uint64_t{1} << 56);
  EXPECT_EQ(mapping.area.address, uint64_t{2} << 56);
  EXPECT_EQ(mapping.area.key, 3U << 24);
  EXPECT_EQ(mapping.area.length, 4U << 24);
}

TEST(DatagramHeader, contains_source_address_and_port) {
  const DatagramSource v4{IpAddress::from_v4(0x0a4d0001), 7174};
  ASSERT_EQ(datagram_header_length(v4), 8U);
  std::vector<uint8_t> wire(8);
  write_datagram_header(v4, wire);
  EXPECT_EQ(wire, (std::vector<uint8_t>{4, 8, 0x1c, 0x06, 10, 77, 0, 1}));
  EXPECT_EQ(read_datagram_header(wire), v4);

  DatagramSource v6{{}, 9};
  v6.address.bytes[0] = 0xfd;
  v6.address.bytes[15] = 1;
  ASSERT_EQ(datagram_header_length(v6), 24U);
  wire.assign(24, 0xee);
  write_datagram_header(v6, wire);
  EXPECT_EQ(wire, (std::vector<uint8_t>{6, 24, 0, 9, 0, 0, 0, 0, 0xfd, 0, 0, 0,
                                        0, 0,  0, 0, 0, 0, 0, 0, 0,    0, 0, 1}));
  EXPECT_EQ(read_datagram_header(wire), v6);
}

TEST(DatagramHeader, rejects_invalid_headers) {
  EXPECT_FALSE(read_datagram_header(std::vector<uint8_t>{4, 8, 0, 9, 10, 77, 0}));
  EXPECT_FALSE(read_datagram_header(std::vector<uint8_t>{5, 8, 0, 9, 10, 77, 0, 1}));
  EXPECT_FALSE(read_datagram_header(std::vector<uint8_t>{4, 9, 0, 9, 10, 77, 0, 1, 0}));
  EXPECT_FALSE(read_datagram_header(std::vector<uint8_t>{6, 24, 0, 9, 0, 0, 0, 0, 0xfd, 0, 0, 0}));
  // An IPv4-mapped address: its length would be taken for that of the IPv4 header, and the rest of the header for data.
  EXPECT_FALSE(read_datagram_header(
      std::vector<uint8_t>{6, 24, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1}));
}

// IBTA A17.4.5.1: an IPv4 header is in the last 20 bytes, and the first 20 are undefined.
TEST(DatagramRoute, is_that_of_the_network_header_of_the_requested_version) {
  std::array<uint8_t, kNetworkHeader> v4{};
  const std::array<uint8_t, 20> header{0x45, 0,    0,  0, 0, 0, 0,  0, 64, 17,
                                       0x66, 0xeb, 10, 0, 0, 2, 10, 0, 0,  1};
  std::ranges::copy(header, v4.begin() + 20);
  for (const uint8_t undefined : {uint8_t{0}, uint8_t{0x60}, uint8_t{0x45}, uint8_t{0xff}}) {
    v4[0] = undefined;
    const auto route = read_datagram_route(v4, true);
    ASSERT_TRUE(route) << int{undefined};
    EXPECT_EQ(route->source.to_string(), "10.0.0.2");
    EXPECT_EQ(route->destination.to_string(), "10.0.0.1");
    EXPECT_FALSE(read_datagram_route(v4, false));
  }
  std::array<uint8_t, kNetworkHeader> v6{};
  v6[0] = 0x60;
  v6[8] = v6[24] = 0xfd;
  v6[23] = 2;
  v6[39] = 1;
  v6[20] = 0x45;  // a part of the source address; without a correct checksum behind it, it is no IPv4 header
  const auto route = read_datagram_route(v6, false);
  ASSERT_TRUE(route);
  EXPECT_EQ(route->source.to_string(), "fd00::4500:2");
  EXPECT_EQ(route->destination.to_string(), "fd00::1");
  EXPECT_FALSE(read_datagram_route(v6, true));
  EXPECT_FALSE(read_datagram_route(std::array<uint8_t, kNetworkHeader>{}, true));
}

}  // namespace
}  // namespace roci::rdmacm::sockets
