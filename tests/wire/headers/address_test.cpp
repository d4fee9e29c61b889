#include "wire/headers/address.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"
#include "wire/headers/endian.hpp"

namespace roci {
namespace {

TEST(MacAddress, parses_and_formats_text) {
  for (const char* text :
       {"00:00:00:00:00:00", "02:00:00:00:00:01", "fe:dc:ba:98:76:54", "ff:ff:ff:ff:ff:ff"}) {
    const auto mac = MacAddress::parse(text);
    ASSERT_TRUE(mac) << text;
    EXPECT_EQ(mac->to_string(), text);
  }
  EXPECT_EQ(MacAddress::parse("AA:BB:CC:DD:EE:FF")->to_string(), "aa:bb:cc:dd:ee:ff");
  EXPECT_EQ(*MacAddress::parse("ff:ff:ff:ff:ff:ff"), MacAddress::broadcast());
}

TEST(MacAddress, rejects_invalid_text_and_quotes_it) {
  for (const char* text : {"", "02:00:00:00:00", "02:00:00:00:00:01:02", "02-00-00-00-00-01",
                           "0g:00:00:00:00:01", "02:00:00:00:00:1", "2:00:00:00:00:001", "+2:00:00:00:00:01",
                           " 2:00:00:00:00:01", "02:00:00:00:00:01 "}) {
    const auto mac = MacAddress::parse(text);
    ASSERT_FALSE(mac) << text;
    EXPECT_NE(mac.error().message.find('"' + std::string(text) + '"'), std::string::npos);
  }
}

TEST(MacAddress, derives_local_unicast_address_from_seed) {
  EXPECT_EQ(MacAddress::local(1).to_string(), "02:00:00:00:00:01");
  EXPECT_EQ(MacAddress::local(0x1122334455).to_string(), "02:11:22:33:44:55");
  EXPECT_FALSE(MacAddress::local(~0ULL).is_multicast());
  EXPECT_TRUE(MacAddress::broadcast().is_multicast());
  EXPECT_TRUE(MacAddress{}.is_zero());
}

struct IpRow {
  const char* text;
  const char* canonical;
  bool v4;
};

TEST(IpAddress, parses_and_formats_text) {
  const IpRow rows[] = {
      {"10.0.0.1", "10.0.0.1", true},
      {"255.255.255.255", "255.255.255.255", true},
      {"0.0.0.0", "0.0.0.0", true},
      {"::ffff:10.0.0.1", "10.0.0.1", true},
      {"::ffff:0a00:0001", "10.0.0.1", true},
      {"fd00::1", "fd00::1", false},
      {"::", "::", false},
      {"::1", "::1", false},
      {"FE80:0:0:0:5054:00ff:fe00:0001", "fe80::5054:ff:fe00:1", false},
      {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6", false},
  };
  for (const IpRow& row : rows) {
    const auto ip = IpAddress::parse(row.text);
    ASSERT_TRUE(ip) << row.text;
    EXPECT_EQ(ip->to_string(), row.canonical);
    EXPECT_EQ(ip->is_v4(), row.v4) << row.text;
  }
  EXPECT_EQ(IpAddress::parse("10.1.2.3")->v4(), 0x0a010203U);
  EXPECT_EQ(IpAddress::from_v4(0x0a010203).to_string(), "10.1.2.3");
}

TEST(IpAddress, rejects_invalid_text) {
  for (const std::string_view text :
       {std::string_view(""), std::string_view("10.0.0"), std::string_view("10.0.0.256"),
        std::string_view("10.0.0.1.2"), std::string_view("fd00::1::2"), std::string_view("fd00:::1"),
        std::string_view("host"), std::string_view("10.0.0.1/24"), std::string_view("10.0.0.1\0junk", 13)}) {
    const auto ip = IpAddress::parse(text);
    ASSERT_FALSE(ip) << text;
    EXPECT_NE(ip.error().message.find("not an IP address"), std::string::npos) << ip.error().message;
  }
}

TEST(IpAddress, text_round_trip_preserves_any_address) {
  Rng rng{11};
  for (int i = 0; i < 5000; ++i) {
    IpAddress ip = IpAddress::from_v4(static_cast<uint32_t>(rng.next()));
    if (rng.chance(0.7)) {
      for (uint8_t& byte : ip.bytes) byte = rng.chance(0.5) ? uint8_t{0} : static_cast<uint8_t>(rng.next());
    }
    const auto again = IpAddress::parse(ip.to_string());
    ASSERT_TRUE(again) << ip.to_string();
    EXPECT_EQ(*again, ip) << ip.to_string();
    EXPECT_EQ(std::hash<IpAddress>{}(*again), std::hash<IpAddress>{}(ip));
  }
}

TEST(IpAddress, derives_neighbor_discovery_and_multicast_addresses) {
  const MacAddress mac = *MacAddress::parse("52:54:00:00:00:01");
  EXPECT_EQ(IpAddress::link_local(mac).to_string(), "fe80::5054:ff:fe00:1");
  EXPECT_TRUE(IpAddress::link_local(mac).is_link_local());
  EXPECT_FALSE(IpAddress::parse("fec0::1")->is_link_local());
  EXPECT_EQ(IpAddress::parse("fd00::12:3456")->solicited_node().to_string(), "ff02::1:ff12:3456");
  EXPECT_EQ(multicast_mac(*IpAddress::parse("ff02::1:ff12:3456")).to_string(), "33:33:ff:12:34:56");
  EXPECT_EQ(multicast_mac(*IpAddress::parse("224.129.2.3")).to_string(), "01:00:5e:01:02:03");
  EXPECT_TRUE(IpAddress::parse("239.1.2.3")->is_multicast());
  EXPECT_FALSE(IpAddress::parse("223.255.255.255")->is_multicast());
  EXPECT_FALSE(IpAddress::parse("240.0.0.0")->is_multicast());
  EXPECT_TRUE(IpAddress::parse("ff02::1")->is_multicast());
}

struct ContainsRow {
  const char* network;
  const char* address;
  bool inside;
};

TEST(IpNetwork, contains_addresses_of_its_prefix) {
  const ContainsRow rows[] = {
      {"10.0.0.1/24", "10.0.0.255", true},
      {"10.0.0.1/24", "10.0.1.0", false},
      {"10.0.0.1/25", "10.0.0.127", true},
      {"10.0.0.1/25", "10.0.0.128", false},
      {"10.0.0.1/32", "10.0.0.1", true},
      {"10.0.0.1/32", "10.0.0.0", false},
      {"0.0.0.0/0", "192.168.1.1", true},
      {"0.0.0.0/0", "fd00::1", false},
      {"fd00::/64", "fd00::1:2:3:4", true},
      {"fd00::/64", "fd00:0:0:1::", false},
      {"::/0", "fd00::1", true},
      {"::/0", "10.0.0.1", false},
      {"fd00::1", "fd00::1", true},
      {"fd00::1", "fd00::2", false},
      {"10.0.0.1", "10.0.0.1", true},
  };
  for (const ContainsRow& row : rows) {
    EXPECT_EQ(IpNetwork::parse(row.network)->contains(*IpAddress::parse(row.address)), row.inside)
        << row.network << " " << row.address;
  }
  EXPECT_EQ(IpNetwork::parse("10.0.0.1/24")->to_string(), "10.0.0.1/24");
}

TEST(IpNetwork, masked_clears_bits_after_the_prefix) {
  const std::pair<const char*, const char*> rows[] = {{"10.1.2.255/24", "10.1.2.0/24"},
                                                      {"10.1.2.255/23", "10.1.2.0/23"},
                                                      {"10.1.3.255/23", "10.1.2.0/23"},
                                                      {"10.1.2.3/32", "10.1.2.3/32"},
                                                      {"10.1.2.3/0", "0.0.0.0/0"},
                                                      {"255.255.255.255/1", "128.0.0.0/1"},
                                                      {"fd01:2:3:4:5::6/64", "fd01:2:3:4::/64"},
                                                      {"fd01::ffff/127", "fd01::fffe/127"},
                                                      {"fd01::1/128", "fd01::1/128"},
                                                      {"fd01::1/0", "::/0"}};
  for (const auto& [network, masked] : rows)
    EXPECT_EQ(IpNetwork::parse(network)->masked(), *IpNetwork::parse(masked)) << network;
}

TEST(IpNetwork, rejects_invalid_prefix_length) {
  for (const char* text : {"10.0.0.1/33", "fd00::1/129", "10.0.0.1/", "10.0.0.1/-1", "10.0.0.1/8x",
                           "10.0.0.1/ 8", "10.0.0.1/8/8", "/8", "10.0.0.1/4294967304"}) {
    EXPECT_FALSE(IpNetwork::parse(text)) << text;
  }
}

TEST(BigEndian, stores_value_in_network_order) {
  const Be24 three{0x00a1b2c3};
  const auto* bytes = reinterpret_cast<const uint8_t*>(&three);
  EXPECT_EQ(bytes[0], 0xa1);
  EXPECT_EQ(bytes[1], 0xb2);
  EXPECT_EQ(bytes[2], 0xc3);
  EXPECT_EQ(three.get(), 0xa1b2c3U);
  EXPECT_EQ(Be24{0xffa1b2c3}.get(), 0xa1b2c3U);  // the most significant byte is dropped
  Rng rng{12};
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = rng.next();
    EXPECT_EQ(Be64{value}.get(), value);
    EXPECT_EQ(Be32{static_cast<uint32_t>(value)}.get(), static_cast<uint32_t>(value));
    EXPECT_EQ(Be16{static_cast<uint16_t>(value)}.get(), static_cast<uint16_t>(value));
  }
}

// Changes each byte. Expects that addresses are equal only if all of their bytes are.
TEST(Addresses, are_equal_only_if_all_bytes_are_equal) {
  for (size_t at = 0; at < 16; ++at) {
    IpAddress ip = IpAddress::from_v4(0x0a000001);
    EXPECT_TRUE(ip == IpAddress::from_v4(0x0a000001));
    ip.bytes[at] ^= 0x40;
    EXPECT_FALSE(ip == IpAddress::from_v4(0x0a000001)) << "byte " << at;
    EXPECT_EQ(ip.is_v4(), at >= 12) << "byte " << at;
  }
  for (size_t at = 0; at < 6; ++at) {
    MacAddress mac = MacAddress::local(1);
    EXPECT_TRUE(mac == MacAddress::local(1));
    mac.bytes[at] ^= 1;
    EXPECT_FALSE(mac == MacAddress::local(1)) << "byte " << at;
  }
}

}  // namespace
}  // namespace roci
