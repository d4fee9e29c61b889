// Parser for the `switch` section of a configuration file, given as text without indentation.
#pragma once

#include <string>

#include "switch/switch_config.hpp"

namespace roci::test {

inline Result<SwitchConfig> read_switch_text(const std::string& text) {
  SwitchConfig config;
  const Status status = parse_config(text, "s.yaml", [&](ConfigNode& node) {
    return read_switch(node, config, [](ConfigNode&, size_t) -> Status { return {}; });
  });
  if (!status) return fail(status.error());
  return config;
}

// Returns the error message, or an empty string for a valid section.
inline std::string switch_text_error(const std::string& text) {
  const auto config = read_switch_text(text);
  return config ? "" : config.error().message;
}

}  // namespace roci::test
