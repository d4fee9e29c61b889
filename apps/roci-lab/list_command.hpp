// roci-lab list: the scenario files of folders, one line per file.
#pragma once

#include <string>
#include <vector>

namespace roci::lab {

// Returns the exit status: 0, 1 if a file is invalid, 2 if a folder cannot be read.
int list_command(const std::vector<std::string>& folders);

}  // namespace roci::lab
