// Built-in profiles: published sets of parameter values of the built-in algorithms.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace roci {

struct BuiltInProfile {
  std::string_view name;                     // algorithm and origin, for example dcqcn_paper
  std::string_view algorithm;                // name of a built-in algorithm
  std::string_view source;                   // of the values
  std::map<std::string, double> parameters;  // values that differ from the defaults
};

// In alphabetical order.
std::span<const BuiltInProfile> built_in_profiles();
// Case-insensitive. Null if there is none with this name.
const BuiltInProfile* find_built_in_profile(std::string_view name);
// Name of the algorithm of a built-in profile. Any other name is returned as it is.
std::string_view algorithm_of(std::string_view profile);

}  // namespace roci
