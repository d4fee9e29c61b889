// A snapshot as one JSON object: the values of all replies, and the increase of counters per second.
#pragma once

#include <nlohmann/json.hpp>

#include "roci-top/readers/snapshot.hpp"

namespace roci::top {

nlohmann::json to_json(const Snapshot& now, const Snapshot& before);

}  // namespace roci::top
