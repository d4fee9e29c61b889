// The table of a switch: a row for each port and each class of it that has done something, with rates since the snapshot
// before. What is not zero and has no column in this width gets a line of its own below.
#pragma once

#include <vector>

#include "roci-top/look.hpp"
#include "roci-top/snapshot.hpp"

namespace roci::top {

// `before`: null when it was not there.
void add_switch(std::vector<Line>& lines, const ProcessSeen& process, const SwitchSeen& sw,
                const SwitchSeen* before, const Look& look);

}  // namespace roci::top
