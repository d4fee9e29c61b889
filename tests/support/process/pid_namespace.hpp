// Process of a test in another PID namespace.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

namespace roci::test {

// Runs `work` in a process of a new PID namespace, and returns its result. nullopt: not permitted to this process.
template <class Work>
std::optional<bool> in_another_pid_namespace(Work work) {
  constexpr int kFailed = 1, kNotPermitted = 2;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWPID) != 0) _exit(kNotPermitted);
    const pid_t first = ::fork();  // the first process of the namespace
    if (first == 0) _exit(work() ? 0 : kFailed);
    int status = 0;
    const bool ended = first > 0 && ::waitpid(first, &status, 0) == first && WIFEXITED(status);
    _exit(ended ? WEXITSTATUS(status) : kFailed);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return false;
  if (WEXITSTATUS(status) == kNotPermitted) return std::nullopt;
  return WEXITSTATUS(status) == 0;
}

}  // namespace roci::test

// Ends the test if in_another_pid_namespace() was not permitted: skipped, or failed with ROCI_REQUIRE_ALL, as in CI.
#define ROCI_REQUIRE_PID_NAMESPACE(result)                                                \
  do {                                                                                    \
    if (result) break;                                                                    \
    if (std::getenv("ROCI_REQUIRE_ALL") != nullptr)                                       \
      FAIL() << "requires the right to make PID namespaces, and ROCI_REQUIRE_ALL is set"; \
    GTEST_SKIP() << "requires the right to make PID namespaces";                          \
  } while (false)
