// What plugins say about themselves, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roci/cc.h"

namespace roci::cc_tool {

struct Look {
  bool markdown = false;
  size_t width = 100;  // of text
};

// A row for each.
std::string describe_all(const std::vector<const roci_cc_plugin*>& plugins, const Look& look);
// All of one. `origin`: the file that it came from; empty for what is built in.
std::string describe(const roci_cc_plugin& plugin, std::string_view origin, const Look& look);

// "0.95", "4000", "300e3", "10e12": as short as can be read.
std::string number_text(double value);

}  // namespace roci::cc_tool
