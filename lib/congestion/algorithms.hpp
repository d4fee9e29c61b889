// Registry of the congestion control algorithms: built-in ones and plugins from shared objects (include/roci/cc.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "roci/cc.h"

namespace roci {

// For the control path; one thread at a time. Returned plugins are valid as long as the registry exists.
class Algorithms {
 public:
  // Contains the built-in algorithms.
  Algorithms();
  Algorithms(const Algorithms&) = delete;
  Algorithms& operator=(const Algorithms&) = delete;
  ~Algorithms();

  // Adds the plugins that a shared object exports (ROCI_CC_ENTRY). Adds none and fails if one of them is invalid or its
  // name is in use. The shared object stays loaded as long as the registry exists.
  Status load(const std::string& path);

  // Finds a plugin by name, case-insensitively; accepts also names of perftest and NIC drivers
  // (docs/congestion-control.md). The error lists the known names, or states why an algorithm is not available.
  [[nodiscard]] Result<const roci_cc_plugin*> find(std::string_view name) const;
  // In alphabetical order.
  [[nodiscard]] std::vector<const roci_cc_plugin*> all() const;
  // Path of the plugin's shared object; empty for a built-in plugin.
  [[nodiscard]] std::string_view origin(const roci_cc_plugin& plugin) const;

 private:
  struct Known {
    const roci_cc_plugin* plugin;
    std::string origin;
  };
  Status add(const roci_cc_plugin* const* list, const std::string& origin);

  std::map<std::string, Known, std::less<>> known_;
  std::vector<void*> loaded_;
};

// A name of an algorithm or a built-in profile in the form in which it is compared: lower case, '_' for '-'.
std::string plain_name(std::string_view name);

// Validates the description of a plugin that the engine relies on: version, sizes, tables.
Status check_plugin(const roci_cc_plugin& plugin);

// Text of a set of ROCI_CC_NEEDS_: "telemetry of the switches (telemetry) and the base round trip (base_rtt)".
std::string needs_text(uint32_t needs);

}  // namespace roci
