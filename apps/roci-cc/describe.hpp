// Text descriptions of congestion control plugins, for a terminal or in Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roci/cc.h"

namespace roci::cc_tool {

struct Look {
  bool markdown = false;
  size_t width = 100;  // output width in characters
};

// A table with one row per plugin.
std::string describe_all(const std::vector<const roci_cc_plugin*>& plugins, const Look& look);
// The full description of one plugin. `origin`: path of its shared object; empty for a built-in plugin.
std::string describe(const roci_cc_plugin& plugin, std::string_view origin, const Look& look);

// The shortest readable form: "0.95", "4000", "300e3", "10e12".
std::string number_text(double value);

}  // namespace roci::cc_tool
