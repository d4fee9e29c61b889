// Result and Error of the public API, used in all modules.
#pragma once

#include "roci/result.hpp"  // IWYU pragma: export
