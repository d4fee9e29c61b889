// A snapshot as one JSON object: all counters of the answers by their names, and what they grew a second.
#pragma once

#include <nlohmann/json.hpp>

#include "roci-top/snapshot.hpp"

namespace roci::top {

nlohmann::json to_json(const Snapshot& now, const Snapshot& before);

}  // namespace roci::top
