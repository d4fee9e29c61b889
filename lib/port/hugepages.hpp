// What hugepages the system has for this process.
#pragma once

#include <cstdint>
#include <string>

namespace roci {

struct FreeHugepages {
  uint64_t bytes = 0;   // of all sizes that are reserved and not in use
  std::string refused;  // why this process does not get them all the same; empty when it does
};
// Reads sysfs, and maps one page to see whether that is allowed.
FreeHugepages free_hugepages();

}  // namespace roci
