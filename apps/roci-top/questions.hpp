// Questions that all kinds of things are asked with.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "roci-top/asker.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// The names of a list, which comes in pages when `paged`.
Result<std::vector<std::string>> read_names(Asker& asker, const std::string& question, bool paged);
// Numbers and texts of a map.
Status read_counted(Asker& asker, const std::string& question, Counted& counted);

}  // namespace roci::top
