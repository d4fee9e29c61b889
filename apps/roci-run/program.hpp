// Execution of the user's program.
#pragma once

#include <string>
#include <vector>

namespace roci::run {

// Exit codes as in shells; that for an error of roci-run itself as in env and timeout.
inline constexpr int kFailed = 125;
inline constexpr int kCannotRun = 126;
inline constexpr int kNotFound = 127;

// Replaces this process by the program. Returns only on failure, with the exit code, after printing the error.
int become(const std::vector<std::string>& command);

struct Ending {
  int exit_code = 0;  // of the program, or 128 plus the number of the signal that ended it
  int signal = 0;     // that ended the program; 0: the program has exited
};

// Runs the program as a child process and waits. Signals sent to this process are forwarded; signals from the terminal
// are not, as the program receives them itself. When the program stops, this process stops too; when this process is
// continued, it continues the program.
Ending run_and_wait(const std::vector<std::string>& command);

}  // namespace roci::run
