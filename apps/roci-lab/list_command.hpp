// roci-lab list: the scenario files of folders, a line each.
#pragma once

#include <string>
#include <vector>

namespace roci::lab {

// The exit status: 0, 1 when a file cannot be read, 2 when a folder cannot.
int list_command(const std::vector<std::string>& folders);

}  // namespace roci::lab
