// What a program finds around it: where our libraries are, and the device's entries in /dev and /sys.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace roci::run {

// Of this program's own file.
Result<std::filesystem::path> program_folder();
// Where libibverbs.so.1 and the others lie that programs are to find before the system's: beside this program's folder, in
// lib/rocinante or where the installation put it. Empty when there is none.
std::filesystem::path library_folder(const std::filesystem::path& programs);

// `folder` in front of a list separated by colons, once.
std::string in_front(const std::string& folder, const std::string& list);

// A tree that looks as /sys/class/infiniband/NAME and /dev/infiniband do where there is such a device, for the path shim
// (lib/paths). Made once for each name; below the runtime folder.
Result<std::filesystem::path> device_tree(const std::string& name);

// Sets LD_LIBRARY_PATH and, where /dev/infiniband/uverbs0 is no device that can be opened or the device is not in /sys,
// LD_PRELOAD and ROCI_PATHS.
Status set_surroundings(const std::filesystem::path& programs, const std::string& device_name);

}  // namespace roci::run
