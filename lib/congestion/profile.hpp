// Congestion control profiles of a device, validated: an existing algorithm, allowed values, and a fallback.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "congestion/algorithms.hpp"
#include "roci/congestion_control_config.hpp"

namespace roci {

// Algorithm with parameter values, under a name.
struct Profile {
  std::string name;
  const roci_cc_plugin* plugin = nullptr;
  std::vector<double> values;  // values of all parameters, in the plugin's order
  Nanos base_rtt{0};
  const Profile* fallback = nullptr;  // null if falls_back: no congestion control
  bool falls_back = false;
  int dscp = -1;  // of all packets of the queue pair; -1: that of its path
};

// All values of an algorithm in its order. `given` has values by name; others have their defaults. Fails on an unknown
// parameter and on a value out of range.
Result<std::vector<double>> parameter_values(const roci_cc_plugin& plugin,
                                             const std::map<std::string, double>& given);

// Profiles of a device; constant while it runs.
class Profiles {
 public:
  // Names without an algorithm. kWindow: the requester's own window, which reacts to loss and delay towards peers
  // without selective repeat (transport/rc/loss_recovery.hpp). kNone: only the window of DeviceConfig::window_bytes.
  static constexpr const char* kWindow = "window";
  static constexpr const char* kNone = "none";
  // Fails on an unknown algorithm, an unknown parameter, a value out of range, and a cycle of fallbacks.
  static Result<std::unique_ptr<Profiles>> create(const CongestionControlConfig& config);

  // Finds a profile of the configuration, a built-in profile, or an algorithm with its default values, by name; null for
  // kWindow and kNone.
  [[nodiscard]] Result<const Profile*> find(const std::string& name) const;
  // The same for use by a queue pair: also fails if the configuration lacks a requirement of the algorithm and there is
  // no fallback.
  [[nodiscard]] Result<const Profile*> choose(const std::string& name) const;
  // Default profile of queue pairs.
  [[nodiscard]] const Profile* standard() const { return standard_; }
  [[nodiscard]] bool reactive_window() const { return reactive_window_; }
  [[nodiscard]] const Algorithms& algorithms() const { return algorithms_; }

 private:
  Profiles() = default;
  Status add(const std::string& name, const CongestionProfile& config, Nanos base_rtt);
  Status link(const std::string& name, const std::string& fallback);

  Algorithms algorithms_;
  std::map<std::string, Profile, std::less<>> profiles_;
  const Profile* standard_ = nullptr;
  bool reactive_window_ = true;
};

}  // namespace roci
