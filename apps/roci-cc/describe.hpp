// Text descriptions of congestion control plugins, for a terminal or in Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "congestion/built_in_profiles.hpp"
#include "roci/cc.h"

namespace roci::cc_tool {

struct Look {
  bool markdown = false;
  size_t width = 100;  // output width in characters
};

// A table with one row per plugin, and one of the built-in profiles.
std::string describe_all(const std::vector<const roci_cc_plugin*>& plugins, const Look& look);
// The full description of one plugin. `origin`: path of its shared object; empty for a built-in plugin.
std::string describe(const roci_cc_plugin& plugin, std::string_view origin, const Look& look);

// A built-in profile: its source, and the values of all parameters of its algorithm.
std::string describe(const BuiltInProfile& profile, const roci_cc_plugin& plugin, const Look& look);

}  // namespace roci::cc_tool
