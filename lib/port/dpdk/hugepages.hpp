// The hugepages that this process can allocate.
#pragma once

#include <cstdint>
#include <string>

namespace roci {

struct FreeHugepages {
  uint64_t bytes = 0;   // of all page sizes: allocated in the system, and neither in use nor reserved
  std::string refused;  // why this process cannot map them nevertheless; empty if it can
};
// Reads sysfs, and maps one page of each size to check that the process may do so.
FreeHugepages free_hugepages();

}  // namespace roci
