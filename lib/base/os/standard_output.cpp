#include "base/os/standard_output.hpp"

#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

namespace roci {
namespace {

int first_output_error = 0;  // errno of the first failed flush

}  // namespace

bool flush_standard_output() {
  const bool had_failed = std::ferror(stdout) != 0;
  if (__fpending(stdout) > 0 && std::fflush(stdout) != 0 && !had_failed && first_output_error == 0)
    first_output_error = errno;
  std::cout.flush();  // of a program that has called sync_with_stdio(false)
  return std::ferror(stdout) == 0 && !std::cout.bad();
}

Status written_standard_output() {
  if (flush_standard_output()) {
    // File systems may report the failure of a write when a descriptor of the file is closed.
    const int copy = dup(STDOUT_FILENO);
    if (copy < 0 || close(copy) == 0) return {};
    first_output_error = errno;
  }
  constexpr const char* kSentence = "standard output cannot be written";
  if (first_output_error == 0) return fail(kSentence, EIO);
  return fail(std::string(kSentence) + ": " + std::generic_category().message(first_output_error),
              first_output_error);
}

int checked_exit_status(const char* program, int status, int failure) {
  const Status written = written_standard_output();
  if (written) return status;
  static bool reported = false;
  if (!reported) std::fprintf(stderr, "%s: %s\n", program, written.error().message.c_str());
  reported = true;
  return status == 0 ? failure : status;
}

std::optional<size_t> terminal_columns(int descriptor) {
  winsize size{};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return size.ws_col;
}

}  // namespace roci
