// Start of threads that the library creates.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/os/quiet_signals.hpp"
#include "base/result.hpp"

namespace roci {

// Starts a thread that handles no signals of the program. EAGAIN: the limit of threads is reached; `what` names the thread
// in the error.
template <class Run>
Status start_thread(std::thread& thread, const std::string& what, Run&& run) {
  const QuietSignals quiet;
  try {
    thread = std::thread{std::forward<Run>(run)};
  } catch (const std::system_error& e) {
    return fail(what + " cannot be started: " + e.what(), EAGAIN);
  }
  return {};
}

}  // namespace roci
