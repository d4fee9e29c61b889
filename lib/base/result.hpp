// The house uses the same Result and Error as its users do.
#pragma once

#include "roci/result.hpp"  // IWYU pragma: export
