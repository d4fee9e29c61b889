#include "wire/extensions/siphash.hpp"

#include <gtest/gtest.h>

#include "wire/roce/packet_fields.hpp"
#include "wire/wire_test_support.hpp"

namespace roci {
namespace {

SipKey counting_key() {
  SipKey key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i);
  return key;
}

ByteVector counting_bytes(size_t length) {
  ByteVector bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(i);
  return bytes;
}

// Key 00…0f, message of n bytes 00, 01, …: the 64 published results, in byte order.
constexpr std::string_view kPublished[64] = {
    "310e0edd47db6f72", "fd67dc93c539f874", "5a4fa9d909806c0d", "2d7efbd796666785", "b7877127e09427cf",
    "8da699cd64557618", "cee3fe586e46c9cb", "37d1018bf50002ab", "6224939a79f5f593", "b0e4a90bdf82009e",
    "f3b9dd94c5bb5d7a", "a7ad6b22462fb3f4", "fbe50e86bc8f1e75", "903d84c02756ea14", "eef27a8e90ca23f7",
    "e545be4961ca29a1", "db9bc2577fcc2a3f", "9447be2cf5e99a69", "9cd38d96f0b3c14b", "bd6179a71dc96dbb",
    "98eea21af25cd6be", "c7673b2eb0cbf2d0", "883ea3e395675393", "c8ce5ccd8c030ca8", "94af49f6c650adb8",
    "eab8858ade92e1bc", "f315bb5bb835d817", "adcf6b0763612e2f", "a5c91da7acaa4dde", "716595876650a2a6",
    "28ef495c53a387ad", "42c341d8fa92d832", "ce7cf2722f512771", "e37859f94623f3a7", "381205bb1ab0e012",
    "ae97a10fd434e015", "b4a31508beff4d31", "81396229f0907902", "4d0cf49ee5d4dcca", "5c73336a76d8bf9a",
    "d0a704536ba93e0e", "925958fcd6420cad", "a915c29bc8067318", "952b79f3bc0aa6d4", "f21df2e41d4535f9",
    "87577519048f53a9", "10a56cf5dfcd9adb", "eb75095ccd986cd0", "51a9cb9ecba312e6", "96afadfc2ce666c7",
    "72fe52975a4364ee", "5a1645b276d592a1", "b274cb8ebf87870a", "6f9bb4203de7b381", "eaecb2a30b22a87f",
    "9924a43cc1315724", "bd838d3aafbf8db7", "0b1a2a3265d51aea", "135079a3231ce660", "932b2846e4d70666",
    "e1915f5cb1eca46c", "f325965ca16d629f", "575ff28e60381be5", "724506eb4c328a95",
};

TEST(SipHash, matches_published_results) {
  for (size_t length = 0; length < 64; ++length) {
    const uint64_t mac = siphash(counting_key(), counting_bytes(length));
    ByteVector little_endian;
    for (unsigned i = 0; i < 8; ++i) little_endian.push_back(static_cast<uint8_t>(mac >> (8 * i)));
    EXPECT_EQ(hex_text(little_endian), kPublished[length]) << length;
  }
  EXPECT_EQ(siphash(counting_key(), counting_bytes(15)), 0xa129ca6149be45e5) << "appendix A of the paper";
}

// Lengths beyond one byte, random keys and contents, hashed in random parts.
TEST(SipHash, result_is_independent_of_update_sizes) {
  Rng rng{31};
  for (int round = 0; round < 500; ++round) {
    const ByteVector bytes = test::random_bytes(rng, rng.below(600));
    SipKey key;
    for (uint8_t& byte : key) byte = static_cast<uint8_t>(rng.next());
    SipHash hash(key);
    for (size_t at = 0; at < bytes.size();) {
      const size_t piece = std::min<size_t>(rng.below(20), bytes.size() - at);
      hash.update(std::span(bytes).subspan(at, piece));
      at += piece;
    }
    EXPECT_EQ(hash.finish(), siphash(key, bytes));
  }
}

TEST(SipHash, changes_with_every_bit_of_key_and_message) {
  const ByteVector message = counting_bytes(21);
  const uint64_t right = siphash(counting_key(), message);
  for (size_t bit = 0; bit < 8 * message.size(); ++bit) {
    ByteVector changed = message;
    changed[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    EXPECT_NE(siphash(counting_key(), changed), right);
  }
  for (size_t bit = 0; bit < 128; ++bit) {
    SipKey key = counting_key();
    key[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    EXPECT_NE(siphash(key, message), right);
  }
}

TEST(SipHash, macs_are_equal_only_if_all_bits_are_equal) {
  Rng rng{32};
  for (int round = 0; round < 100; ++round) {
    const uint64_t mac = rng.next();
    EXPECT_TRUE(is_same_mac(mac, mac));
    for (unsigned bit = 0; bit < 64; ++bit) EXPECT_FALSE(is_same_mac(mac, mac ^ uint64_t{1} << bit));
    EXPECT_FALSE(is_same_mac(mac, ~mac));
  }
}

}  // namespace
}  // namespace roci
