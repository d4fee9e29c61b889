// Environment of the program: library path, and the device's entries below /dev and /sys.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace roci::run {

// Folder of this program's executable file.
Result<std::filesystem::path> program_folder();
// Folder with libibverbs.so.1 and the other drop-in libraries: lib/rocinante or the installed library folder, next to
// the folder `programs`. Empty if it does not exist.
std::filesystem::path library_folder(const std::filesystem::path& programs);

// Prepends `folder` to a colon-separated list, unless the list already starts with it.
std::string prepended(const std::string& folder, const std::string& list);

// First network interface that has one of the addresses ("10.0.0.1/24"); otherwise "lo".
std::string interface_with(const std::vector<std::string>& addresses);

// Creates the tree that the path shim (lib/paths) shows as /sys/class/infiniband/NAME, its virtual PCI function and
// /dev/infiniband. The GIDs of the device belong to `interface`. The tree is in the runtime folder and created once per
// name and interface.
Result<std::filesystem::path> device_tree(const std::string& name, const std::string& interface);

// Sets LD_LIBRARY_PATH. Also sets LD_PRELOAD and ROCI_PATHS if /dev/infiniband/uverbs0 is not a usable device or the
// device is not in /sys. `addresses`: those of the device, if they are known.
Status set_environment(const std::filesystem::path& programs, const std::string& device_name,
                       const std::vector<std::string>& addresses);

}  // namespace roci::run
