// Tests that need root privileges.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

// Ends the test if the program does not run as root: skipped, or failed with ROCI_REQUIRE_ALL, as in CI.
#define ROCI_REQUIRE_ROOT(purpose)                                                 \
  do {                                                                             \
    if (geteuid() == 0) break;                                                     \
    if (std::getenv("ROCI_REQUIRE_ALL") != nullptr)                                \
      FAIL() << "requires root, " << (purpose) << ", and ROCI_REQUIRE_ALL is set"; \
    GTEST_SKIP() << "requires root, " << (purpose);                                \
  } while (false)
