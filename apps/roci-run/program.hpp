// Running the user's program.
#pragma once

#include <string>
#include <vector>

namespace roci::run {

// As shells have it.
inline constexpr int kCannotRun = 126;
inline constexpr int kNotFound = 127;

// Becomes the program. Comes back only when it cannot be run, with the exit code for that, having said why.
int become(const std::vector<std::string>& command);

// Runs it as a child and waits for it: its exit code, or 128 and the signal that ended it. Signals that are sent to this process
// go on to the program; those that the terminal sends to both do not go there twice. When the program stops this process does
// too, and lets it go on when it goes on itself.
int run_and_wait(const std::vector<std::string>& command);

}  // namespace roci::run
