// Inputs of the path hash, and its uniformity.
#include "switch/forwarding/path_hash.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/rng.hpp"
#include "support/chi_square.hpp"
#include "support/ports/frames.hpp"
#include "switch/addresses.hpp"

namespace roci {
namespace {

using test::FrameSpec;
using test::ip;

constexpr uint64_t kSalt = 7;

std::vector<uint8_t> packet(const FrameSpec& spec) {
  const auto frame = test::roce_bytes(spec);
  return {frame.begin() + 14, frame.end()};
}
uint64_t hash_of(const FrameSpec& spec, uint64_t salt = kSalt) { return path_hash(packet(spec), salt); }

FrameSpec v6() { return {.from = ip("fd01::2"), .to = ip("fd02::2")}; }

// Kinds of flows whose fields differ as little as in practice.
struct Family {
  const char* name;
  std::function<FrameSpec(uint32_t)> flow;
};
const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"queue pairs of two hosts",
       [](uint32_t i) { return FrameSpec{.source_port = static_cast<uint16_t>(0xc000 + i)}; }},
      {"hosts of a network",
       [](uint32_t i) { return FrameSpec{.from = IpAddress::from_v4(0x0a010000 + i)}; }},
      {"pairs of hosts",
       [](uint32_t i) {
         return FrameSpec{.from = IpAddress::from_v4(0x0a010000 + i % 100),
                          .to = IpAddress::from_v4(0x0a020000 + i / 100)};
       }},
      {"queue pairs of two hosts, IPv6",
       [](uint32_t i) {
         FrameSpec spec = v6();
         spec.source_port = static_cast<uint16_t>(0xc000 + i);
         return spec;
       }},
      {"hosts, IPv6",
       [](uint32_t i) {
         FrameSpec spec = v6();
         spec.from.bytes[14] = static_cast<uint8_t>(i >> 8);
         spec.from.bytes[15] = static_cast<uint8_t>(i);
         return spec;
       }},
      {"flow labels",
       [](uint32_t i) {
         FrameSpec spec = v6();
         spec.flow_label = i;
         return spec;
       }},
  };
  return all;
}

TEST(PathHash, distributes_ten_thousand_flows_evenly) {
  for (const Family& family : families()) {
    for (const uint32_t paths : {2U, 3U, 4U, 7U, 8U, 16U, 64U}) {
      for (const uint64_t salt : {uint64_t{0}, kSalt, path_salt(MacAddress::local(1))}) {
        std::vector<uint64_t> flows(paths);
        for (uint32_t i = 0; i < 10'000; ++i) ++flows[path_of(hash_of(family.flow(i), salt), paths)];
        EXPECT_LE(test::chi_square(flows), test::chi_square_bound(paths - 1))
            << family.name << " over " << paths << " paths, salt " << salt;
      }
    }
  }
}

TEST(PathHash, different_salts_give_independent_choices) {
  constexpr uint32_t kPaths = 4;
  for (const Family& family : families()) {
    for (uint64_t other = 1; other <= 8; ++other) {
      // Salts of switches with consecutive MAC addresses.
      const uint64_t first_salt = path_salt(MacAddress::local(0)),
                     second_salt = path_salt(MacAddress::local(other));
      std::vector<uint64_t> both(kPaths * kPaths);
      for (uint32_t i = 0; i < 10'000; ++i) {
        const FrameSpec flow = family.flow(i);
        ++both[path_of(hash_of(flow, first_salt), kPaths) * kPaths +
               path_of(hash_of(flow, second_salt), kPaths)];
      }
      EXPECT_LE(test::chi_square(both), test::chi_square_bound(kPaths * kPaths - 1))
          << family.name << ", " << other;
    }
  }
}

TEST(PathHash, rehash_is_independent_of_the_first_choice) {
  constexpr uint32_t kPaths = 4;
  std::vector<uint64_t> both(kPaths * kPaths);
  for (uint32_t i = 0; i < 10'000; ++i) {
    const uint64_t hash = hash_of(families()[0].flow(i));
    ++both[path_of(hash, kPaths) * kPaths + path_of(rehash(hash), kPaths)];
  }
  EXPECT_LE(test::chi_square(both), test::chi_square_bound(kPaths * kPaths - 1));
}

TEST(PathHash, fields_that_vary_within_a_flow_do_not_change_the_hash) {
  for (const FrameSpec& flow : {FrameSpec{}, v6()}) {
    const uint64_t hash = hash_of(flow);
    FrameSpec other = flow;
    other.traffic_class = 0x6b;  // changes the DSCP and sets CE
    other.ttl = 3;
    other.payload = 1024;
    other.number = 77;
    EXPECT_EQ(hash_of(other), hash);
    auto bytes = packet(flow);
    // Changes the UDP destination port, which differs for telemetry.
    bytes[flow.to.is_v4() ? 22 : 42] ^= 0xff;
    EXPECT_EQ(path_hash(bytes, kSalt), hash);
  }
}

TEST(PathHash, each_flow_field_changes_the_hash) {
  const auto expect_change = [](const FrameSpec& flow, size_t at, const char* what) {
    auto bytes = packet(flow);
    bytes[at] ^= 1;
    EXPECT_NE(path_hash(bytes, kSalt), hash_of(flow)) << what;
  };
  expect_change({}, 15, "IPv4 source");
  expect_change({}, 19, "IPv4 destination");
  expect_change({}, 9, "IPv4 protocol");
  expect_change({}, 21, "UDP source port");
  expect_change(v6(), 23, "IPv6 source");
  expect_change(v6(), 39, "IPv6 destination");
  expect_change(v6(), 6, "IPv6 next header");
  expect_change(v6(), 41, "UDP source port");
  expect_change(v6(), 3, "flow label");
  EXPECT_NE(hash_of({}, 1), hash_of({}, 2));
}

TEST(PathHash, both_tcp_ports_change_the_hash) {
  auto bytes = packet({});
  bytes[9] = 6;
  const uint64_t hash = path_hash(bytes, kSalt);
  for (const size_t at : {21UL, 23UL}) {
    auto other = bytes;
    other[at] ^= 1;
    EXPECT_NE(path_hash(other, kSalt), hash) << at;
  }
}

TEST(PathHash, all_fragments_of_a_packet_have_the_same_hash) {
  auto first = packet({});
  first[6] |= 0x20;  // more-fragments flag
  auto middle = packet({.source_port = 1});
  middle[6] |= 0x20;
  middle[7] = 8;
  auto last = packet({.source_port = 2});
  last[6] = 0;
  last[7] = 16;
  const uint64_t hash = path_hash(first, kSalt);
  EXPECT_EQ(path_hash(middle, kSalt), hash);
  EXPECT_EQ(path_hash(last, kSalt), hash);

  auto v6_first = packet(v6());
  v6_first[6] = 44;  // next header: fragment
  auto v6_last = v6_first;
  // Fragment offset, and the bytes at which ports would be without the fragment header.
  for (size_t i = 42; i < 48; ++i) v6_last[i] ^= 0x5a;
  EXPECT_EQ(path_hash(v6_last, kSalt), path_hash(v6_first, kSalt));
}

TEST(PathHash, truncated_packets_are_not_read_beyond_their_end) {
  for (const FrameSpec& flow : {FrameSpec{}, v6()}) {
    const auto bytes = packet(flow);
    for (size_t length = flow.to.is_v4() ? 20 : 40; length < 48; ++length) {
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
      (void)path_hash(cut, kSalt);  // the sanitizer detects reads out of bounds
    }
  }
  auto options = packet({});
  options[0] = 0x4f;  // header length of 60 bytes
  options.resize(62);
  (void)path_hash(options, kSalt);
  options.resize(40);
  (void)path_hash(options, kSalt);
}

}  // namespace
}  // namespace roci
