// The part of the command line that is about congestion control.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "roci/congestion_control_config.hpp"

namespace roci::perf {

class CommandOptions;

// Beside what a configuration file says of it.
struct CongestionOptions {
  std::optional<std::string> profile;        // a profile of the file, or an algorithm
  std::map<std::string, double> parameters;  // values in the place of its own
  std::vector<std::string> plugins;          // shared objects with further algorithms
  std::optional<Nanos> base_rtt;
  std::optional<BitsPerSec> line_rate;
  std::optional<uint32_t> cores;
  bool report = false;
  std::string trace_file;
  uint32_t trace_events = 100'000;

  // What they say, over what is there.
  void apply(CongestionControlConfig& control) const;
};

// `options` must outlive the parsing.
void add_congestion_options(CommandOptions& command, CongestionOptions& options);

}  // namespace roci::perf
