// The table of all hosts: a row each, with rates since the snapshot before, and below it who that is and what has gone wrong.
#pragma once

#include <vector>

#include "roci-top/look.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

void add_hosts(std::vector<Line>& lines, const Snapshot& now, const Snapshot& before, const Look& look);

}  // namespace roci::top
