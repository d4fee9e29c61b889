// The congestion control options of the command line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "roci/congestion_control_config.hpp"

namespace roci::perf {

class CommandOptions;

// Options that override the congestion control section of a configuration file.
struct CongestionOptions {
  std::optional<std::string> profile;        // a profile of the file, or an algorithm
  std::map<std::string, double> parameters;  // parameter values that override those of the profile
  std::vector<std::string> plugins;          // shared objects with further algorithms
  std::optional<Nanos> base_rtt;
  std::optional<BitsPerSec> line_rate;
  std::optional<uint32_t> cores;
  bool report = false;
  std::string trace_file;
  static constexpr uint32_t kTraceEvents = 100'000;  // default
  std::optional<uint32_t> trace_events;

  // Rejects options without effect.
  Status finish(bool loopback);
  // Overrides values in `control` with the options that were given.
  void apply(CongestionControlConfig& control) const;
};

// `options` must outlive the parsing of the command line.
void add_congestion_options(CommandOptions& command, CongestionOptions& options);

}  // namespace roci::perf
