// Requests that are common to all object types.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "roci-top/asker.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// Reads a list of names; in pages if `paged`.
Result<std::vector<std::string>> read_names(Asker& asker, const std::string& question, bool paged);
// Reads the numbers and texts of a map.
Status read_counted(Asker& asker, const std::string& question, Counted& counted);

}  // namespace roci::top
