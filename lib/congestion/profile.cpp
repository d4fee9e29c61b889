#include "congestion/profile.hpp"

#include <cstdio>

#include "congestion/built_in_profiles.hpp"

namespace roci {
namespace {

std::string value_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

}  // namespace

Result<std::vector<double>> parameter_values(const roci_cc_plugin& plugin,
                                             const std::map<std::string, double>& given) {
  std::vector<double> values;
  size_t used = 0;
  for (uint32_t i = 0; i < plugin.parameter_count; ++i) {
    const roci_cc_parameter& p = plugin.parameters[i];
    const auto at = given.find(p.name);
    values.push_back(at == given.end() ? p.default_value : at->second);
    if (at == given.end()) continue;
    ++used;
    if (!(at->second >= p.min && at->second <= p.max)) {
      return fail("parameter " + std::string(p.name) + " is " + value_text(at->second) + "; " +
                  value_text(p.min) + " to " + value_text(p.max) + " " + p.unit + " is allowed");
    }
  }
  if (used == given.size()) return values;
  std::string names;
  for (uint32_t i = 0; i < plugin.parameter_count; ++i) {
    names += names.empty() ? "" : ", ";
    names += plugin.parameters[i].name;
  }
  for (const auto& [name, value] : given) {
    bool known = false;
    for (uint32_t i = 0; i < plugin.parameter_count; ++i) known |= name == plugin.parameters[i].name;
    if (!known) {
      return fail(std::string(plugin.name) + " has no parameter '" + name + "'; available are " +
                  (names.empty() ? "none" : names));
    }
  }
  return values;
}

Result<std::unique_ptr<Profiles>> Profiles::create(const CongestionControlConfig& config) {
  std::unique_ptr<Profiles> made(new Profiles);
  for (const std::string& path : config.plugins) ROCI_TRY(made->algorithms_.load(path));
  // Profiles of the configuration first: one may have the name of an algorithm or of a built-in profile, with other
  // values.
  for (const auto& [name, profile] : config.profiles) {
    if (name.empty() || name == Profiles::kNone || name == Profiles::kWindow)
      return fail("profiles: invalid profile name '" + name + "'");
    if (Status s = made->add(name, profile, Nanos{config.base_rtt}); !s)
      return fail(s.error().within("profiles: " + name));
  }
  const auto add_default = [&](const std::string& name) -> Status {
    if (made->profiles_.contains(name)) return {};
    return made->add(name, {.algorithm = name, .parameters = {}, .fallback = {}}, Nanos{config.base_rtt});
  };
  for (const roci_cc_plugin* plugin : made->algorithms_.all()) ROCI_TRY(add_default(plugin->name));
  for (const BuiltInProfile& built_in : built_in_profiles())
    ROCI_TRY(add_default(std::string(built_in.name)));
  for (const auto& [name, profile] : config.profiles) {
    if (Status s = made->link(name, profile.fallback); !s) return fail(s.error().within("profiles: " + name));
  }
  auto standard = made->choose(config.profile);
  if (!standard) return fail(standard.error().within("profile"));
  made->standard_ = *standard;
  made->reactive_window_ = config.profile != kNone;
  return made;
}

Status Profiles::add(const std::string& name, const CongestionProfile& config, Nanos base_rtt) {
  const BuiltInProfile* const built_in = find_built_in_profile(config.algorithm);
  auto plugin = algorithms_.find(built_in != nullptr ? built_in->algorithm : config.algorithm);
  if (!plugin) return fail(plugin.error().within("algorithm"));
  std::map<std::string, double> given = config.parameters;
  if (built_in != nullptr) given.insert(built_in->parameters.begin(), built_in->parameters.end());
  auto values = parameter_values(**plugin, given);
  if (!values) return fail(values.error());
  if (config.base_rtt < Nanos{0} || config.base_rtt > Nanos{10s}) return fail("base_rtt must be 0 to 10 s");
  if (config.dscp < -1 || config.dscp > 63) return fail("dscp must be 0 to 63, or -1 for that of the path");
  Profile profile{.name = name,
                  .plugin = *plugin,
                  .values = std::move(*values),
                  .base_rtt = config.base_rtt.count() != 0 ? Nanos{config.base_rtt} : base_rtt,
                  .dscp = config.dscp};
  if (profile.plugin->check != nullptr) {
    if (const char* wrong = profile.plugin->check(nullptr, profile.values.data()); wrong != nullptr)
      return fail(std::string(wrong));
  }
  profiles_.emplace(name, std::move(profile));
  return {};
}

Status Profiles::link(const std::string& name, const std::string& fallback) {
  if (fallback.empty()) return {};
  Profile& profile = profiles_.find(name)->second;
  auto other = find(fallback);
  if (!other) return fail(other.error().within("fallback"));
  profile.falls_back = true;
  profile.fallback = *other;
  for (const Profile* next = *other; next != nullptr; next = next->fallback) {
    if (next == &profile) return fail("fallback '" + fallback + "' forms a cycle with this profile");
  }
  return {};
}

Result<const Profile*> Profiles::choose(const std::string& name) const {
  auto profile = find(name);
  if (!profile || *profile == nullptr || (*profile)->falls_back || (*profile)->base_rtt > Nanos{0})
    return profile;
  const roci_cc_plugin& plugin = *(*profile)->plugin;
  if ((plugin.capabilities & ROCI_CC_NEEDS_BASE_RTT) != 0)
    return fail(name + ": requires " + needs_text(ROCI_CC_NEEDS_BASE_RTT) + ", which is not set");
  // Some algorithms require base_rtt only with certain values. All other requirements may be met later.
  constexpr roci_cc_flow kAny{.line_rate = 100'000'000'000,
                              .base_rtt_ns = 0,
                              .packet_bytes = 1106,
                              .payload_bytes = 1024,
                              .direction = ROCI_CC_REQUESTS,
                              .provides = UINT32_MAX,
                              .seed = 1};
  if (plugin.check == nullptr) return profile;
  if (const char* wrong = plugin.check(&kAny, (*profile)->values.data()); wrong != nullptr)
    return fail(name + ": " + wrong);
  return profile;
}

Result<const Profile*> Profiles::find(const std::string& name) const {
  if (name.empty() || name == kNone || name == kWindow) return nullptr;
  if (const auto at = profiles_.find(name); at != profiles_.end()) return &at->second;
  if (const BuiltInProfile* built_in = find_built_in_profile(name); built_in != nullptr)
    return &profiles_.find(built_in->name)->second;
  auto plugin = algorithms_.find(name);
  if (plugin) return &profiles_.find((*plugin)->name)->second;
  std::string own;
  for (const auto& [known, profile] : profiles_)
    if (known != profile.plugin->name) own += (own.empty() ? "" : ", ") + known;
  Error error = plugin.error();
  if (!own.empty() && error.code != EOPNOTSUPP) error.message += "; profiles are " + own;
  return fail(std::move(error));
}

}  // namespace roci
