// The congestion control algorithms that there are: those built in, and those of shared objects (include/roci/cc.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "roci/cc.h"

namespace roci {

// Of the control path; one thread at a time. What it gives lives as long as it does.
class Algorithms {
 public:
  // Knows what is built in.
  Algorithms();
  Algorithms(const Algorithms&) = delete;
  Algorithms& operator=(const Algorithms&) = delete;
  ~Algorithms();

  // Adds what a shared object exports (ROCI_CC_ENTRY). Fails with nothing added when one of its plugins is not sound, or
  // has the name of another. Its code stays loaded for as long as this lives.
  Status load(const std::string& path);

  // By name, whatever its case: also by the names that perftest and the drivers of NICs use (docs/congestion-control.md). An
  // error says which there are, or why one of those names cannot be had.
  [[nodiscard]] Result<const roci_cc_plugin*> find(std::string_view name) const;
  // In alphabetical order.
  [[nodiscard]] std::vector<const roci_cc_plugin*> all() const;
  // The shared object it came from; empty for what is built in.
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

// Whether a plugin says about itself what the engine relies on: its version, its sizes, its tables.
Status check_plugin(const roci_cc_plugin& plugin);

// What a set of ROCI_CC_NEEDS_ means, for people: "telemetry of the switches (INT) and the base round trip".
std::string needs_text(uint32_t needs);

}  // namespace roci
