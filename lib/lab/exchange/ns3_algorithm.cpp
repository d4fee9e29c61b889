#include "lab/exchange/ns3_algorithm.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

namespace roci::lab {
namespace {

constexpr double kUnit = 1024;  // of alpha and of 1 - g in DCQCN
constexpr double kBits = 8e9;   // bits per byte, and ns per second

double ns3_t(const Ns3RoundTrip& longest) { return static_cast<double>(longest.rtt.count()); }

Ns3Algorithm dcqcn_of(const Ns3Settings& of) {
  const double window = !of.has_window ? 0 : of.variable_window ? 2 : 1;
  return {"dcqcn",
          {{"dce_tcp_g", (1 - of.gain) * kUnit},
           {"dce_tcp_rtt", of.alpha_interval * 1e3},
           {"initial_alpha_value", kUnit},
           {"rate_reduce_monitor_period", of.decrease_interval * 1e3},
           {"rpg_time_reset", of.increase_interval * 1e3},
           {"rpg_threshold", static_cast<double>(of.fast_recoveries)},
           {"rpg_ai_rate", of.increase},
           {"rpg_hai_rate", of.hyper_increase},
           {"rpg_min_rate", of.min_rate},
           {"clamp_tgt_rate", of.clamp_target ? 1.0 : 0.0},
           {"release_at_max", 0},
           {"window", window}},
          {}};
}

// The simulator's additive step is a rate; the window grows by what it sends in T.
Ns3Algorithm hpcc_of(const Ns3Settings& of, const Ns3RoundTrip& longest) {
  Ns3Algorithm out{"hpcc",
                   {{"eta", of.utilization},
                    {"max_stage", static_cast<double>(of.additive_stages)},
                    {"w_ai", of.increase * ns3_t(longest) / kBits},
                    {"min_rate", of.min_rate},
                    {"update", of.fast_react ? 0.0 : 2.0}},
                   {}};
  if (!of.has_window || !of.variable_window)
    out.notes.emplace_back("HAS_WIN, VAR_WIN: not translated: HPCC has a variable window");
  return out;
}

Result<Ns3Algorithm> timely_of(const Ns3Settings& of) {
  if (of.increase <= 0) return fail("RATE_AI: must be above 0 for TIMELY");
  Ns3Algorithm out{"timely",
                   {{"rescale", 0},
                    {"made_for", 0},
                    {"delta", of.increase},
                    {"hai_factor", of.hyper_increase / of.increase},
                    {"hai_run", 6},
                    {"low_counts", 1},
                    {"segment", 0},
                    {"per_round_trip", 1},
                    {"least_factor", 0},
                    {"min_rate", of.min_rate}},
                   {}};
  if (of.has_window) out.notes.emplace_back("HAS_WIN, VAR_WIN: not translated: TIMELY has no window");
  return out;
}

// Windows of the simulator are bytes of payload; the first is the largest, a bandwidth-delay product. It sends while
// fewer bytes are in flight, so a part of a packet permits a whole one.
Result<Ns3Algorithm> dctcp_of(const Ns3Settings& of, const Ns3RoundTrip& longest, uint32_t path_mtu) {
  const double shift = -std::log2(of.gain);
  if (shift != std::floor(shift)) return fail("EWMA_GAIN: must be a power of two for DCTCP");
  const auto packets = [&](double bytes) { return std::clamp(std::ceil(bytes / path_mtu), 1.0, 65536.0); };
  const double window = packets(static_cast<double>(longest.bdp));
  Ns3Algorithm out{"dctcp",
                   {{"shift_g", shift},
                    {"initial_window", window},
                    {"max_window", window},
                    {"min_window", packets(of.min_rate * ns3_t(longest) / kBits)},
                    {"use_before_growth", 0},
                    {"increase", of.dctcp_increase * ns3_t(longest) / kBits / path_mtu}},
                   {}};
  if (!of.has_window || !of.variable_window)
    out.notes.emplace_back("HAS_WIN, VAR_WIN: not translated: DCTCP has a variable window");
  return out;
}

// Values of a profile by name.
class ProfileValues {
 public:
  explicit ProfileValues(const Profile& of) : of_(of) {}
  [[nodiscard]] double at(std::string_view name) const {
    for (uint32_t i = 0; i < of_.plugin->parameter_count; ++i)
      if (name == of_.plugin->parameters[i].name) return of_.values[i];
    return 0;
  }

 private:
  const Profile& of_;
};

uint64_t whole_number(double value) { return static_cast<uint64_t>(std::llround(std::max(value, 0.0))); }

void set_dcqcn(const ProfileValues& of, Ns3Settings& out) {
  out.mode = Ns3Mode::kDcqcn;
  out.gain = 1 - of.at("dce_tcp_g") / kUnit;
  out.alpha_interval = of.at("dce_tcp_rtt") / 1e3;
  out.decrease_interval = of.at("rate_reduce_monitor_period") / 1e3;
  out.increase_interval = of.at("rpg_time_reset") / 1e3;
  out.fast_recoveries = whole_number(of.at("rpg_threshold"));
  out.increase = of.at("rpg_ai_rate");
  out.hyper_increase = of.at("rpg_hai_rate");
  out.min_rate = of.at("rpg_min_rate");
  out.clamp_target = of.at("clamp_tgt_rate") > 0;
  out.has_window = of.at("window") > 0;
  out.variable_window = of.at("window") > 1;
}

void set_hpcc(const ProfileValues& of, const Ns3RoundTrip& longest, Ns3Settings& out) {
  out.mode = Ns3Mode::kHpcc;
  out.utilization = of.at("eta");
  out.additive_stages = whole_number(of.at("max_stage"));
  out.increase = std::round(of.at("w_ai") * kBits / ns3_t(longest));
  out.hyper_increase = out.increase;
  out.min_rate = of.at("min_rate");
  out.fast_react = of.at("update") == 0;
  out.has_window = out.variable_window = true;
}

void set_timely(const ProfileValues& of, Ns3Settings& out) {
  out.mode = Ns3Mode::kTimely;
  out.increase = of.at("delta");
  out.hyper_increase = of.at("delta") * of.at("hai_factor");
  out.min_rate = of.at("min_rate");
  out.has_window = out.variable_window = false;
}

void set_dctcp(const ProfileValues& of, const Ns3RoundTrip& longest, uint32_t path_mtu, Ns3Settings& out) {
  out.mode = Ns3Mode::kDctcp;
  out.gain = std::exp2(-of.at("shift_g"));
  out.dctcp_increase = std::round(of.at("increase") * path_mtu * kBits / ns3_t(longest));
  out.min_rate = std::floor(of.at("min_window") * path_mtu * kBits / ns3_t(longest));
  out.has_window = out.variable_window = true;
}

// Compares the parameters that the settings give with those of the profile.
Status check_same(const Profile& profile, const Ns3Algorithm& given) {
  auto values = parameter_values(*profile.plugin, {given.parameters.begin(), given.parameters.end()});
  if (!values) return fail(values.error());
  for (size_t i = 0; i < values->size(); ++i) {
    if ((*values)[i] == profile.values[i]) continue;
    return fail(std::string(profile.plugin->parameters[i].name) + " of " + given.plugin + " is " +
                shortest_number(profile.values[i]) + "; the simulator has " + shortest_number((*values)[i]));
  }
  return {};
}

}  // namespace

Result<Ns3Algorithm> ns3_algorithm(const Ns3Settings& settings, const Ns3RoundTrip& longest,
                                   uint32_t path_mtu) {
  switch (settings.mode) {
    case Ns3Mode::kDcqcn:
      return dcqcn_of(settings);
    case Ns3Mode::kHpcc:
      return hpcc_of(settings, longest);
    case Ns3Mode::kTimely:
      return timely_of(settings);
    case Ns3Mode::kDctcp:
      break;
  }
  return dctcp_of(settings, longest, path_mtu);
}

Status set_ns3_algorithm(const Profile& profile, const Ns3RoundTrip& longest, uint32_t path_mtu,
                         Ns3Settings& settings) {
  const std::string_view plugin = profile.plugin->name;
  const ProfileValues values(profile);
  if (plugin == "dcqcn") {
    set_dcqcn(values, settings);
  } else if (plugin == "hpcc") {
    set_hpcc(values, longest, settings);
  } else if (plugin == "timely") {
    set_timely(values, settings);
  } else if (plugin == "dctcp") {
    set_dctcp(values, longest, path_mtu, settings);
  } else {
    return fail("congestion control '" + std::string(plugin) +
                "' does not exist in the simulator; allowed are dcqcn, hpcc, timely and dctcp");
  }
  auto given = ns3_algorithm(settings, longest, path_mtu);
  if (!given) return fail(given.error());
  return check_same(profile, *given);
}

}  // namespace roci::lab
