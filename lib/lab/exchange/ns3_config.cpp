#include "lab/exchange/ns3_config.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lab/exchange/ns3_keys.hpp"

namespace roci::lab {
namespace {

constexpr uint64_t kMaxRatesInMap = 64;
constexpr double kMaxInterval = 1e7;  // us

// Checks the number of words after a key. `words` starts with the key.
Status check_words(const Ns3Key& key, const std::vector<Ns3Word>& words) {
  size_t expected = key.values;
  if (key.values == Ns3Key::kByRate) {
    if (words.size() < 2) return fail(std::string(key.name) + ": the number of pairs is missing");
    auto pairs = parse_ns3_number(words[1].text, 1, kMaxRatesInMap);
    if (!pairs) return fail(std::string(key.name) + ": " + pairs.error().message);
    expected = 1 + 2 * *pairs;
  }
  if (words.size() - 1 == expected) return {};
  return fail(std::string(key.name) + ": " + std::to_string(words.size() - 1) + " values; " +
              std::to_string(expected) + " are required");
}

Result<double> parse_double(std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) return value;
  return fail(ns3_quoted(text) + " is not a number from " + shortest_number(low) + " to " +
              shortest_number(high));
}

// ConWeave specifies these times in seconds, the simulator in ns.
Status read_monitor_time(const Ns3Config& config, std::string_view key, Nanos& out) {
  constexpr double kLongest = 3600e9, kSeconds = 3600;
  double value = static_cast<double>(out.count());
  ROCI_TRY(config.number(key, 0, kLongest, value));
  out = Nanos{std::llround(value <= kSeconds ? value * 1e9 : value)};
  return {};
}

Status read_mode(const Ns3Config& config, Ns3Mode& mode) {
  auto number = static_cast<uint64_t>(mode);
  ROCI_TRY(config.integer("CC_MODE", 0, UINT32_MAX, number));
  for (const Ns3Mode one : {Ns3Mode::kDcqcn, Ns3Mode::kHpcc, Ns3Mode::kTimely, Ns3Mode::kDctcp}) {
    if (number != static_cast<uint64_t>(one)) continue;
    mode = one;
    return {};
  }
  return fail(config.error("CC_MODE", std::to_string(number) +
                                          " is not supported; allowed are 1 (DCQCN), 3 (HPCC), 7 (TIMELY) "
                                          "and 8 (DCTCP)"));
}

Status read_reaction(const Ns3Config& config, Ns3Settings& out) {
  ROCI_TRY(config.flag("HAS_WIN", out.has_window));
  ROCI_TRY(config.flag("VAR_WIN", out.variable_window));
  ROCI_TRY(config.flag("GLOBAL_T", out.global_t));
  ROCI_TRY(config.flag("FAST_REACT", out.fast_react));
  ROCI_TRY(config.number("U_TARGET", 0.1, 1, out.utilization));
  ROCI_TRY(config.integer("MI_THRESH", 0, 1000, out.additive_stages));
  ROCI_TRY(config.number("ALPHA_RESUME_INTERVAL", 0.001, kMaxInterval, out.alpha_interval));
  ROCI_TRY(config.number("RATE_DECREASE_INTERVAL", 0.001, kMaxInterval, out.decrease_interval));
  ROCI_TRY(config.number("RP_TIMER", 1, kMaxInterval, out.increase_interval));
  ROCI_TRY(config.number("EWMA_GAIN", 1.0 / 1024, 1, out.gain));
  ROCI_TRY(config.integer("FAST_RECOVERY_TIMES", 0, 1000, out.fast_recoveries));
  ROCI_TRY(config.rate("RATE_AI", out.increase));
  ROCI_TRY(config.rate("RATE_HAI", out.hyper_increase));
  ROCI_TRY(config.rate("MIN_RATE", out.min_rate));
  ROCI_TRY(config.rate("DCTCP_RATE_AI", out.dctcp_increase));
  return config.flag("CLAMP_TARGET_RATE", out.clamp_target);
}

Status read_network(const Ns3Config& config, Ns3Settings& out) {
  ROCI_TRY(config.integer("PACKET_PAYLOAD_SIZE", 1, 65536, out.payload));
  ROCI_TRY(config.integer("L2_ACK_INTERVAL", 0, UINT32_MAX, out.ack_interval));
  ROCI_TRY(config.flag("ENABLE_QCN", out.mark));
  ROCI_TRY(config.flag("ENABLE_PFC", out.pfc));
  ROCI_TRY(config.flag("ENABLE_IRN", out.selective_repeat));
  ROCI_TRY(config.number("ERROR_RATE_PER_LINK", 0, 1, out.loss));
  ROCI_TRY(config.integer("BUFFER_SIZE", 1, 4096, out.buffer_mib));
  ROCI_TRY(config.by_rate("KMIN_MAP", 0, 1e6, out.kmin));
  ROCI_TRY(config.by_rate("KMAX_MAP", 0, 1e6, out.kmax));
  return config.by_rate("PMAX_MAP", 0, 1, out.pmax);
}

uint8_t user_of(Ns3Mode mode) {
  switch (mode) {
    case Ns3Mode::kDcqcn:
      return kNs3Dcqcn;
    case Ns3Mode::kHpcc:
      return kNs3Hpcc;
    case Ns3Mode::kTimely:
      return kNs3Timely;
    case Ns3Mode::kDctcp:
      break;
  }
  return kNs3Dctcp;
}

// Keys without a usable default in the simulator, if the algorithm uses them.
Status require_keys(const Ns3Config& config, Ns3Mode mode) {
  for (const char* key : {"RATE_AI", "RATE_HAI", "RP_TIMER"}) {
    if ((find_ns3_key(key)->users & user_of(mode)) != 0 && !config.has(key))
      return fail(config.error(key, std::string("is required by ") + ns3_mode_name(mode)));
  }
  return {};
}

Status read_times(const Ns3Config& config, Ns3Settings& out) {
  uint64_t origin = 0, sample = 0;
  ROCI_TRY(config.time("SIMULATOR_STOP_TIME", out.stop));
  ROCI_TRY(read_monitor_time(config, "QLEN_MON_START", out.monitor_start));
  ROCI_TRY(read_monitor_time(config, "QLEN_MON_END", out.monitor_end));
  ROCI_TRY(config.integer("ROCI_TIME_ORIGIN", 0, 3'600'000'000'000, origin));
  if (config.has("ROCI_TIME_ORIGIN")) out.time_origin = Nanos{static_cast<int64_t>(origin)};
  for (const char* key : {"SW_MONITORING_INTERVAL", "ROCI_SAMPLE"}) {
    ROCI_TRY(config.integer(key, 100, 1'000'000'000, sample));
    if (config.has(key)) out.sample = Nanos{static_cast<int64_t>(sample)};
  }
  for (const char* key : {"RANDOM_SEED", "ROCI_SEED"}) ROCI_TRY(config.integer(key, 1, 1ULL << 48, out.seed));
  return {};
}

std::string map_text(const std::map<uint64_t, double>& map) {
  std::string out = std::to_string(map.size());
  for (const auto& [rate, value] : map) out += " " + std::to_string(rate) + " " + shortest_number(value);
  return out;
}

}  // namespace

Result<Ns3Config> Ns3Config::parse(std::string_view text, const std::string& name) {
  Ns3Words reader(text, name);
  Ns3Config out;
  out.name_ = name;
  for (auto words = reader.line(); !words.empty(); words = reader.line()) {
    const size_t line = words.front().line;
    const std::string key(words.front().text.substr(0, 64));
    const Ns3Key* const known = find_ns3_key(key);
    if (known == nullptr) return fail(reader.error(line, "unknown key " + ns3_quoted(key)));
    if (Status good = check_words(*known, words); !good)
      return fail(reader.error(line, good.error().message));
    Value value;
    value.line = line;
    for (size_t i = 1; i < words.size(); ++i) value.words.emplace_back(words[i].text);
    if (!out.values_.emplace(key, std::move(value)).second)
      return fail(reader.error(line, "duplicate key '" + key + "'"));
  }
  if (out.values_.empty()) return fail(name + ": contains no keys");
  return out;
}

const std::vector<std::string>& Ns3Config::words(std::string_view key) const {
  static const std::vector<std::string> none;
  const auto found = values_.find(key);
  return found == values_.end() ? none : found->second.words;
}

Error Ns3Config::error(std::string_view key, const std::string& message) const {
  const auto found = values_.find(key);
  const std::string where = found == values_.end() ? name_ : name_ + ":" + std::to_string(found->second.line);
  return {where + ": " + std::string(key) + ": " + message};
}

Status Ns3Config::number(std::string_view key, double low, double high, double& out) const {
  if (!has(key)) return {};
  auto value = parse_double(words(key).front(), low, high);
  if (!value) return fail(error(key, value.error().message));
  out = *value;
  return {};
}

Status Ns3Config::integer(std::string_view key, uint64_t low, uint64_t high, uint64_t& out) const {
  if (!has(key)) return {};
  auto value = parse_ns3_number(words(key).front(), low, high);
  if (!value) return fail(error(key, value.error().message));
  out = *value;
  return {};
}

Status Ns3Config::flag(std::string_view key, bool& out) const {
  uint64_t value = out ? 1 : 0;
  ROCI_TRY(integer(key, 0, 1, value));
  out = value != 0;
  return {};
}

Status Ns3Config::rate(std::string_view key, double& out) const {
  if (!has(key)) return {};
  auto value = parse_ns3_rate(words(key).front());
  if (!value) return fail(error(key, value.error().message));
  out = static_cast<double>(value->value());
  return {};
}

Status Ns3Config::time(std::string_view key, Nanos& out) const {
  if (!has(key)) return {};
  auto value = parse_ns3_time(words(key).front());
  if (!value) return fail(error(key, value.error().message));
  out = *value;
  return {};
}

Status Ns3Config::by_rate(std::string_view key, double low, double high,
                          std::map<uint64_t, double>& out) const {
  if (!has(key)) return {};
  const auto& all = words(key);
  for (size_t i = 1; i + 1 < all.size(); i += 2) {
    auto rate = parse_ns3_number(all[i], 1, 1'000'000'000'000'000);
    if (!rate) return fail(error(key, rate.error().message));
    auto value = parse_double(all[i + 1], low, high);
    if (!value) return fail(error(key, value.error().message));
    out[*rate] = *value;
  }
  return {};
}

Status Ns3Config::text(std::string_view key, std::string& out) const {
  if (!has(key)) return fail(name_ + ": the required key '" + std::string(key) + "' is missing");
  out = words(key).front();
  return {};
}

const char* ns3_mode_name(Ns3Mode mode) {
  switch (mode) {
    case Ns3Mode::kDcqcn:
      return "DCQCN";
    case Ns3Mode::kHpcc:
      return "HPCC";
    case Ns3Mode::kTimely:
      return "TIMELY";
    case Ns3Mode::kDctcp:
      break;
  }
  return "DCTCP";
}

Result<Ns3Settings> read_ns3_settings(const Ns3Config& config) {
  Ns3Settings out;
  ROCI_TRY(config.text("TOPOLOGY_FILE", out.topology_file));
  ROCI_TRY(config.text("FLOW_FILE", out.flow_file));
  ROCI_TRY(read_mode(config, out.mode));
  ROCI_TRY(require_keys(config, out.mode));
  ROCI_TRY(read_reaction(config, out));
  ROCI_TRY(read_network(config, out));
  ROCI_TRY(read_times(config, out));
  return out;
}

std::string format_ns3_settings(const Ns3Settings& of, const std::string& trace_file,
                                const std::string& suffix) {
  std::string out;
  const auto line = [&](const char* key, const std::string& value) {
    out += std::string(key) + " " + value + "\n";
  };
  const auto flag = [&](const char* key, bool value) { line(key, value ? "1" : "0"); };
  const auto integer = [&](const char* key, uint64_t value) { line(key, std::to_string(value)); };
  const auto nanos = [&](const char* key, Nanos value) { line(key, std::to_string(value.count())); };
  flag("ENABLE_QCN", of.mark);
  flag("USE_DYNAMIC_PFC_THRESHOLD", true);
  integer("PACKET_PAYLOAD_SIZE", of.payload);
  line("TOPOLOGY_FILE", of.topology_file);
  line("FLOW_FILE", of.flow_file);
  line("TRACE_FILE", trace_file);
  line("TRACE_OUTPUT_FILE", "trace_" + suffix);
  line("FCT_OUTPUT_FILE", "fct_" + suffix);
  line("PFC_OUTPUT_FILE", "pfc_" + suffix);
  line("QLEN_MON_FILE", "qlen_" + suffix);
  line("SIMULATOR_STOP_TIME", ns3_seconds(of.stop));
  integer("CC_MODE", static_cast<uint64_t>(of.mode));
  line("ALPHA_RESUME_INTERVAL", shortest_number(of.alpha_interval));
  line("RATE_DECREASE_INTERVAL", shortest_number(of.decrease_interval));
  flag("CLAMP_TARGET_RATE", of.clamp_target);
  line("RP_TIMER", shortest_number(of.increase_interval));
  line("EWMA_GAIN", shortest_number(of.gain));
  integer("FAST_RECOVERY_TIMES", of.fast_recoveries);
  line("RATE_AI", ns3_rate(of.increase));
  line("RATE_HAI", ns3_rate(of.hyper_increase));
  line("MIN_RATE", ns3_rate(of.min_rate));
  line("DCTCP_RATE_AI", ns3_rate(of.dctcp_increase));
  line("ERROR_RATE_PER_LINK", shortest_number(of.loss));
  line("L2_CHUNK_SIZE", "4000");
  integer("L2_ACK_INTERVAL", of.ack_interval);
  line("L2_BACK_TO_ZERO", "0");
  flag("HAS_WIN", of.has_window);
  flag("GLOBAL_T", of.global_t);
  flag("VAR_WIN", of.variable_window);
  flag("FAST_REACT", of.fast_react);
  line("U_TARGET", shortest_number(of.utilization));
  integer("MI_THRESH", of.additive_stages);
  line("INT_MULTI", "1");
  line("MULTI_RATE", "0");
  line("SAMPLE_FEEDBACK", "0");
  line("RATE_BOUND", "1");
  line("ACK_HIGH_PRIO", "0");
  line("LINK_DOWN", "0 0 0");
  line("ENABLE_TRACE", "0");
  line("KMAX_MAP", map_text(of.kmax));
  line("KMIN_MAP", map_text(of.kmin));
  line("PMAX_MAP", map_text(of.pmax));
  integer("BUFFER_SIZE", of.buffer_mib);
  if (!of.pfc) flag("ENABLE_PFC", false);
  if (of.selective_repeat) flag("ENABLE_IRN", true);
  nanos("QLEN_MON_START", of.monitor_start);
  nanos("QLEN_MON_END", of.monitor_end);
  nanos("ROCI_TIME_ORIGIN", of.time_origin);
  nanos("ROCI_SAMPLE", of.sample);
  integer("ROCI_SEED", of.seed);
  return out;
}

std::vector<std::string> untranslated_ns3_keys(const Ns3Config& config, Ns3Mode mode) {
  std::vector<std::pair<std::string, std::string>> reasons;  // reason and keys
  const auto add = [&](const std::string& reason, std::string_view key) {
    auto found = std::ranges::find(reasons, reason, &std::pair<std::string, std::string>::first);
    if (found == reasons.end()) found = reasons.insert(reasons.end(), {reason, ""});
    found->second += (found->second.empty() ? "" : ", ") + std::string(key);
  };
  for (const Ns3Key& key : ns3_keys()) {
    if (!config.has(key.name)) continue;
    if ((key.users & user_of(mode)) == 0) {
      add(std::string("not used by ") + ns3_mode_name(mode), key.name);
    } else if (!key.untranslated.empty() && config.words(key.name).front() != key.same) {
      add(std::string(key.untranslated), key.name);
    }
  }
  std::vector<std::string> out;
  for (const auto& [reason, keys] : reasons) out.push_back(keys + ": not translated: " + reason);
  return out;
}

}  // namespace roci::lab
