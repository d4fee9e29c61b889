// The table of a switch: one row per port and per class with activity, with rates since the previous snapshot. Nonzero
// values without a column at this width are listed in a line below.
#pragma once

#include <vector>

#include "roci-top/readers/snapshot.hpp"
#include "roci-top/tables/look.hpp"

namespace roci::top {

// `before`: null if the switch has no earlier sample.
void add_switch(std::vector<Line>& lines, const ProcessSample& process, const SwitchSample& sw,
                const SwitchSample* before, const Look& look);

}  // namespace roci::top
