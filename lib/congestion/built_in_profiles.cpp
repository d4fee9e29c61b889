#include "congestion/built_in_profiles.hpp"

#include <algorithm>
#include <vector>

#include "congestion/algorithms.hpp"

namespace roci {
namespace {

// HPCC-ns3 computes the increases of DCQCN and TIMELY from the line rate; the profiles have the values for one rate.
const std::vector<BuiltInProfile>& profiles() {
  static const std::vector<BuiltInProfile> all = {
      {"dcqcn_connectx",
       "dcqcn",
       "default values of ConnectX NICs, as their tools report them; the same as dcqcn",
       {}},
      {"dcqcn_hpcc_sim",
       "dcqcn",
       "HPCC-ns3, run.py, for 100 Gb/s; peers with a CNP interval of 0, switches with mark_at: dequeue",
       {{"dce_tcp_g", 1020},
        {"initial_alpha_value", 1024},
        {"rpg_ai_rate", 20e6},
        {"rpg_hai_rate", 200e6},
        {"rpg_min_rate", 1e9},
        {"release_at_max", 0}}},
      {"dcqcn_hpcc_sim_25g",
       "dcqcn",
       "HPCC-ns3, run.py, for 25 Gb/s; peers with a CNP interval of 0, switches with mark_at: dequeue",
       {{"dce_tcp_g", 1020}, {"initial_alpha_value", 1024}, {"rpg_min_rate", 1e9}, {"release_at_max", 0}}},
      {"dcqcn_paper",
       "dcqcn",
       "Zhu et al., SIGCOMM 2015, for 40 Gb/s; the paper has no R_HAI, here 10 R_AI; peers with a CNP "
       "interval "
       "of 50 us",
       {{"dce_tcp_g", 1020},
        {"dce_tcp_rtt", 55e3},
        {"initial_alpha_value", 1024},
        {"alpha_first", 0},
        {"rate_reduce_monitor_period", 0},
        {"rpg_time_reset", 55e3},
        {"rpg_byte_reset", 10e6},
        {"rpg_threshold", 5},
        {"threshold_inclusive", 0},
        {"rpg_ai_rate", 40e6},
        {"rpg_hai_rate", 400e6},
        {"hyper_step", 1},
        {"clamp_tgt_rate", 1},
        {"release_at_max", 0}}},
      {"dctcp_hpcc_sim",
       "dctcp",
       "HPCC-ns3: the initial window is a bandwidth-delay product; there it is the maximum too; mark_at: "
       "dequeue",
       {{"initial_window", 0}}},
      {"powertcp_sim",
       "powertcp",
       "PowerTCP's simulator (ns3-datacenter), for 25 Gb/s: an increase of 150 Mb/s",
       {{"target", 0.95}, {"flows", 25e9 / 150e6}, {"least_current", 0}, {"stored_windows", 0}}},
      {"theta_powertcp_sim",
       "theta_powertcp",
       "PowerTCP's simulator (ns3-datacenter), for 25 Gb/s: an increase of 150 Mb/s",
       {{"gamma", 0.7}, {"target", 1.05}, {"flows", 25e9 / 150e6}}},
      {"timely_hpcc_sim",
       "timely",
       "HPCC-ns3, run.py, for 100 Gb/s",
       {{"rescale", 0},
        {"made_for", 0},
        {"delta", 100e6},
        {"hai_run", 6},
        {"low_counts", 1},
        {"segment", 0},
        {"per_round_trip", 1},
        {"least_factor", 0},
        {"min_rate", 1e9}}},
      {"timely_paper",
       "timely",
       "Mittal et al., SIGCOMM 2015, for 10 Gb/s and a round trip of 20 us, with segments of 64 KB",
       {{"rescale", 0}, {"made_for", 0}, {"segment", 65536}, {"least_factor", 0}}},
  };
  return all;
}

}  // namespace

std::span<const BuiltInProfile> built_in_profiles() { return profiles(); }

const BuiltInProfile* find_built_in_profile(std::string_view name) {
  const auto at = std::ranges::find(profiles(), plain_name(name), &BuiltInProfile::name);
  return at == profiles().end() ? nullptr : &*at;
}

std::string_view algorithm_of(std::string_view profile) {
  const BuiltInProfile* const built_in = find_built_in_profile(profile);
  return built_in != nullptr ? built_in->algorithm : profile;
}

}  // namespace roci
