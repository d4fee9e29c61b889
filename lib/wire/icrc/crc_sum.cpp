#include "wire/icrc/crc_sum.hpp"

namespace roci {

bool has_carryless_product() {
  static const bool has = __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
  return has;
}

}  // namespace roci
