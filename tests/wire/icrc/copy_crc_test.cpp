#include "wire/icrc/copy_crc.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/rng.hpp"
#include "wire/icrc/icrc.hpp"

namespace roci {
namespace {

struct Way {
  const char* name;
  CopyCrc function;
};

std::vector<Way> ways_of_this_processor() {
  std::vector<Way> ways{{"the one that is taken", copy_crc}, {"ISA-L", copy_crc_isal()}};
  if (copy_crc_avx512() != nullptr) ways.push_back({"AVX-512", copy_crc_avx512()});
  if (copy_crc_avx2() != nullptr) ways.push_back({"AVX2", copy_crc_avx2()});
  if (copy_crc_clmul() != nullptr) ways.push_back({"16 bytes", copy_crc_clmul()});
  return ways;
}

// Every length up to several packets, any alignment, any initial register. Bytes around the copy stay unchanged.
TEST(CopyCrc, equals_separate_copy_and_crc) {
  Rng rng(20261120);
  std::vector<uint8_t> from(10'000);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(rng.next());
  std::vector<uint8_t> to(from.size());
  for (const Way& way : ways_of_this_processor()) {
    for (size_t length = 0; length < 9'100; length += length < 4'500 ? 1 : 97) {
      const size_t source = rng.below(65);
      const size_t target = 1 + rng.below(65);
      const auto state = static_cast<uint32_t>(rng.next());
      std::fill(to.begin(), to.end(), uint8_t{0xa5});
      ASSERT_EQ(way.function(state, &to[target], &from[source], length),
                icrc_continue(state, &from[source], length))
          << way.name << ", " << length << " bytes";
      ASSERT_EQ(std::memcmp(&to[target], &from[source], length), 0) << way.name << ", " << length << " bytes";
      ASSERT_TRUE(to[target - 1] == 0xa5 && to[target + length] == 0xa5) << way.name << ", " << length;
    }
  }
}

TEST(CopyCrc, implementations_continue_the_crc_of_each_other) {
  Rng rng(7);
  std::vector<uint8_t> from(8192), to(8192);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(rng.next());
  const uint32_t whole = icrc_continue(0, from.data(), from.size());
  for (const Way& first : ways_of_this_processor()) {
    for (const Way& second : ways_of_this_processor()) {
      const uint32_t half = first.function(0, to.data(), from.data(), 4001);
      EXPECT_EQ(second.function(half, &to[4001], &from[4001], 4191), whole)
          << first.name << ", " << second.name;
    }
  }
}

}  // namespace
}  // namespace roci
