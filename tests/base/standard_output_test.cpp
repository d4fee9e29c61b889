#include "base/os/standard_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace roci {
namespace {

// Ends with the checked exit status, after output to `file`. Run in a child process, as the state of stdout remains.
template <class Print>
[[noreturn]] void print_to(const char* file, Print print) {
  close(STDOUT_FILENO);
  if (file != nullptr && open(file, O_WRONLY) != STDOUT_FILENO) _exit(99);
  print();
  _exit(checked_exit_status("program", 0, 7));
}

TEST(StandardOutput, failed_write_is_reported_with_its_reason) {
  constexpr const char* kSentence = "program: standard output cannot be written: No space left on device";
  const auto exits = testing::ExitedWithCode(7);
  EXPECT_EXIT(print_to("/dev/full", [] { std::puts("text"); }), exits, kSentence);
  EXPECT_EXIT(print_to("/dev/full", [] { std::cout << "text"; }), exits, kSentence);
  const auto early = [] {
    std::puts("first");
    flush_standard_output();
    std::puts("second");
    flush_standard_output();
  };
  EXPECT_EXIT(print_to("/dev/full", early), exits, kSentence);
  EXPECT_EXIT(print_to(nullptr, [] { std::puts("text"); }), exits, "Bad file descriptor");
}

TEST(StandardOutput, failure_of_the_program_has_precedence) {
  const auto fails = [] {
    std::puts("text");
    _exit(checked_exit_status("program", 3, 7));
  };
  EXPECT_EXIT(print_to("/dev/full", fails), testing::ExitedWithCode(3), "standard output cannot be written");
}

TEST(StandardOutput, output_that_is_written_or_absent_is_no_error) {
  EXPECT_EXIT(print_to("/dev/null", [] { std::puts("text"); }), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(print_to("/dev/full", [] {}), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(print_to(nullptr, [] {}), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace roci
