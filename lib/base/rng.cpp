#include "base/rng.hpp"

#include <sys/random.h>

#include <cstdio>
#include <cstdlib>

namespace roci {

uint64_t Rng::below(uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * bound;
  auto low = static_cast<uint64_t>(product);
  if (low < bound) {
    const uint64_t threshold = (0 - bound) % bound;
    while (low < threshold) {
      product = static_cast<Wide>(next()) * bound;
      low = static_cast<uint64_t>(product);
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

uint64_t os_random() {
  uint64_t value = 0;
  if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    std::fputs("roci: getrandom() failed; the operating system provides no random numbers\n", stderr);
    std::abort();
  }
  return value;
}

}  // namespace roci
