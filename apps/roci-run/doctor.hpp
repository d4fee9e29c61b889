// `roci-run --doctor`: checks whether this machine can run programs, and prints what to change.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace roci::run {

// Prints one line per check to standard output. `join` sets the environment of a program that joins the network `net`,
// which must not exist; it is called in a child process, which then opens a device. The network is removed afterwards.
// Returns the exit status: 1 if a check failed.
int doctor(const std::filesystem::path& programs, const std::string& net,
           const std::function<Status()>& join);

}  // namespace roci::run
