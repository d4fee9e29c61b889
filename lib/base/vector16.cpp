#include "base/vector16.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace roci {

bool has_carryless_product() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
#else
  static const bool has = (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0;
#endif
  return has;
}

}  // namespace roci
