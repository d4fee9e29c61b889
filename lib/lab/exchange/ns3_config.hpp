// Configuration file of HPCC's ns-3 simulator and its descendants: a key and its values per line.
//
//   CC_MODE 3
//   KMAX_MAP 2 100000000000 1600 400000000000 6400
//
// Ns3Config has the words of a file, Ns3Settings the values that the lab uses. Keys that start with ROCI_ are additions
// of the lab's exporter; the simulator skips unknown words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "lab/exchange/ns3_words.hpp"

namespace roci::lab {

class Ns3Config {
 public:
  // `name` of the file, for errors. Fails on unknown and duplicate keys and on a wrong number of values.
  static Result<Ns3Config> parse(std::string_view text, const std::string& name);

  [[nodiscard]] bool has(std::string_view key) const { return values_.contains(key); }
  // Words after the key; empty if the file does not have the key.
  [[nodiscard]] const std::vector<std::string>& words(std::string_view key) const;
  // Read a value; `out` keeps its value if the file does not have the key.
  Status number(std::string_view key, double low, double high, double& out) const;
  Status integer(std::string_view key, uint64_t low, uint64_t high, uint64_t& out) const;
  Status flag(std::string_view key, bool& out) const;
  Status rate(std::string_view key, double& out) const;  // bit/s
  Status time(std::string_view key, Nanos& out) const;   // without a unit: seconds
  Status by_rate(std::string_view key, double low, double high, std::map<uint64_t, double>& out) const;
  Status text(std::string_view key, std::string& out) const;
  [[nodiscard]] Error error(std::string_view key, const std::string& message) const;

 private:
  struct Value {
    std::vector<std::string> words;
    size_t line = 0;
  };
  std::string name_;
  std::map<std::string, Value, std::less<>> values_;
};

// Values of CC_MODE that the lab supports.
enum class Ns3Mode : uint8_t { kDcqcn = 1, kHpcc = 3, kTimely = 7, kDctcp = 8 };
const char* ns3_mode_name(Ns3Mode mode);

// Defaults are those of the simulator. Intervals are in us, as in the file.
struct Ns3Settings {
  std::string topology_file, flow_file;
  Ns3Mode mode = Ns3Mode::kDcqcn;
  uint64_t payload = 1000;    // bytes per packet
  uint64_t ack_interval = 1;  // bytes per acknowledgment
  bool mark = true, pfc = true, selective_repeat = false;
  bool has_window = true, variable_window = false;
  bool global_t = true;  // one base round trip for all flows
  bool fast_react = true;
  double utilization = 0.95;
  uint64_t additive_stages = 5;
  double alpha_interval = 55, decrease_interval = 4, increase_interval = 300;
  double gain = 1.0 / 16;
  uint64_t fast_recoveries = 5;
  double increase = 0, hyper_increase = 0, min_rate = 100e6;  // bit/s
  double dctcp_increase = 1000e6;                             // bit/s per round trip
  bool clamp_target = false;
  double loss = 0;  // of each link without its own
  uint64_t buffer_mib = 16;
  std::map<uint64_t, double> kmin, kmax, pmax;  // by rate: KB (1000 bytes), KB, probability
  Nanos stop{3'010'000'000}, monitor_start = 2s, monitor_end{2'100'000'000};
  Nanos sample = 1us;
  uint64_t seed = 1;
  Nanos time_origin = kNever;  // kNever: not in the file
};

Result<Ns3Settings> read_ns3_settings(const Ns3Config& config);
// `trace_file` lists the traced nodes, and must exist for the simulator; `suffix` of its output files.
std::string format_ns3_settings(const Ns3Settings& settings, const std::string& trace_file,
                                const std::string& suffix);

// One sentence for each reason for which keys of the file were not translated.
std::vector<std::string> untranslated_ns3_keys(const Ns3Config& config, Ns3Mode mode);

}  // namespace roci::lab
