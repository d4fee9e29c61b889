// A profile made ready: an algorithm that exists, values that are allowed, and what to do where it cannot run.
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

struct Profile {
  std::string name;
  const roci_cc_plugin* plugin = nullptr;
  std::vector<double> values;  // of all parameters, in the plugin's order
  Nanos base_rtt{0};
  const Profile* fallback = nullptr;  // null with falls_back: no control at all
  bool falls_back = false;
};

// All values of an algorithm, in its order, from some by name; the others have their standard. Fails on a parameter that it
// does not have, and on a value out of range.
Result<std::vector<double>> parameter_values(const roci_cc_plugin& plugin,
                                             const std::map<std::string, double>& given);

// The profiles of a device; they do not change once it runs.
class Profiles {
 public:
  // Names without an algorithm. kWindow: the requester's own window, which follows loss and delay where the peer does not repeat
  // selectively (transport/loss_recovery.hpp). kNone: nothing beside the window of DeviceConfig::window_bytes.
  static constexpr const char* kWindow = "window";
  static constexpr const char* kNone = "none";
  // Fails on an algorithm that there is not, on a parameter that it does not have or a value out of range, and on fallbacks
  // that lead back to where they began.
  static Result<std::unique_ptr<Profiles>> create(const CongestionControlConfig& config);

  // A profile, or an algorithm with its standard values, by name; null for kWindow and kNone.
  [[nodiscard]] Result<const Profile*> find(const std::string& name) const;
  // The same for a queue pair, which is to run it: fails also where the configuration itself leaves out what it needs, and there
  // is nothing to fall back to.
  [[nodiscard]] Result<const Profile*> choose(const std::string& name) const;
  // What queue pairs have that are not told otherwise.
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
