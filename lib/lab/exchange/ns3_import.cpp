#include "lab/exchange/ns3_import.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "lab/exchange/ns3_scenario_text.hpp"
#include "lab/exchange/ns3_words.hpp"

namespace roci::lab {
namespace {

namespace fs = std::filesystem;

// A file that the configuration names.
Result<std::string> find_ns3_file(const Ns3ImportOptions& options, const std::string& name) {
  std::vector<fs::path> folders;
  const fs::path own = fs::absolute(options.config).parent_path();
  if (!options.base.empty()) {
    folders = {options.base};
  } else {
    folders = {own, own.parent_path(), fs::current_path()};
  }
  std::error_code ignored;
  for (const fs::path& folder : folders)
    if (fs::is_regular_file(folder / name, ignored)) return (folder / name).lexically_normal().string();
  return fail("the file '" + name + "' that '" + options.config +
              "' names is not in its folder, the parent folder or the current folder; use --base FOLDER");
}

// Start of the traffic: the file's own value, else the start of the queue monitor or a whole ms before the first flow.
Nanos origin_of(const Ns3Settings& settings, Nanos first) {
  if (settings.time_origin != kNever) return std::min(settings.time_origin, first);
  const Nanos whole = first / 1ms * 1ms;
  return settings.monitor_start <= first && settings.monitor_start > whole - 1s ? settings.monitor_start
                                                                                : whole;
}

Status set_times(Ns3Experiment& of) {
  Nanos first = kNever, last{0};
  for (const Ns3Flow& flow : of.flows) {
    first = std::min(first, flow.start);
    last = std::max(last, flow.start);
  }
  const Ns3Settings& settings = of.settings;
  of.origin = origin_of(settings, first);
  const Nanos end = std::max({settings.monitor_end, last + 1us, of.origin + 1us});
  of.duration = end - of.origin;
  of.settle = std::max(Nanos{0}, settings.monitor_start - of.origin);
  if (of.settle >= of.duration) return fail("QLEN_MON_START: must be before QLEN_MON_END");
  of.drain = std::max(Nanos{0}, settings.stop - end);
  return {};
}

Result<Ns3Experiment> read_ns3_experiment(const Ns3ImportOptions& options, const Ns3Config& config,
                                          Ns3Import& import) {
  auto settings = read_ns3_settings(config);
  if (!settings) return fail(settings.error());
  Ns3Experiment out;
  out.settings = *settings;
  out.config_name = fs::path(options.config).filename().string();
  out.name = fs::path(options.config).stem().string();
  out.list_stem = options.out.empty() ? out.name : fs::path(options.out).stem().string();
  auto topology_file = find_ns3_file(options, settings->topology_file);
  if (!topology_file) return fail(topology_file.error());
  auto text = read_ns3_text(*topology_file);
  if (!text) return fail(text.error());
  auto topology = parse_ns3_topology(*text, *topology_file);
  if (!topology) return fail(topology.error());
  out.topology = std::move(*topology);
  auto flow_file = find_ns3_file(options, settings->flow_file);
  if (!flow_file) return fail(flow_file.error());
  if (text = read_ns3_text(*flow_file); !text) return fail(text.error());
  auto flows = parse_ns3_flows(*text, *flow_file, out.topology);
  if (!flows) return fail(flows.error());
  out.flows = std::move(flows->flows);
  if (flows->ignored_words > 0)
    import.notes.push_back(settings->flow_file + ": " + std::to_string(flows->ignored_words) +
                           " words after the last flow are ignored");
  import.inputs = {options.config, *topology_file, *flow_file};
  out.path_mtu = nearest_path_mtu(settings->payload);
  out.longest = longest_ns3_round_trip(out.topology, settings->payload);
  auto algorithm = ns3_algorithm(*settings, out.longest, out.path_mtu);
  if (!algorithm) return fail(algorithm.error().within(options.config));
  out.algorithm = std::move(*algorithm);
  if (Status good = set_times(out); !good) return fail(good.error().within(options.config));
  return out;
}

void add_notes(const Ns3Experiment& of, const Ns3Config& config, std::vector<std::string>& notes) {
  const std::vector<std::string> keys = untranslated_ns3_keys(config, of.settings.mode);
  notes.insert(notes.end(), keys.begin(), keys.end());
  notes.insert(notes.end(), of.algorithm.notes.begin(), of.algorithm.notes.end());
  if (of.path_mtu != of.settings.payload)
    notes.push_back("PACKET_PAYLOAD_SIZE: " + std::to_string(of.settings.payload) +
                    " is not a path MTU; packets have " + std::to_string(of.path_mtu) + " bytes");
  if (of.topology.ignored_words > 0)
    notes.push_back(of.settings.topology_file + ": " + std::to_string(of.topology.ignored_words) +
                    " words after the last link are ignored");
}

Status write_ns3_text(const fs::path& path, const std::string& text) {
  std::ofstream out{path, std::ios::binary};
  out << text;
  out.close();
  return out ? Status{} : fail("'" + path.string() + "' cannot be written", EIO);
}

}  // namespace

Result<Ns3Import> import_ns3(const Ns3ImportOptions& options) {
  auto text = read_ns3_text(options.config);
  if (!text) return fail(text.error());
  auto config = Ns3Config::parse(*text, options.config);
  if (!config) return fail(config.error());
  Ns3Import out;
  auto experiment = read_ns3_experiment(options, *config, out);
  if (!experiment) return fail(experiment.error());
  auto scenario = ns3_scenario_text(*experiment);
  if (!scenario) return fail(scenario.error().within(options.config));
  out.scenario = std::move(*scenario);
  out.lists = ns3_flow_lists(*experiment);
  add_notes(*experiment, *config, out.notes);
  return out;
}

Status write_ns3_import(const Ns3ImportOptions& options, const Ns3Import& imported) {
  const fs::path folder = fs::path(options.out).parent_path();
  std::vector<fs::path> written{options.out};
  for (const Ns3ListFile& list : imported.lists) written.push_back(folder / list.name);
  for (const fs::path& path : written) {
    for (const std::string& input : imported.inputs) {
      std::error_code ignored;
      if (fs::equivalent(path, input, ignored))
        return fail("'" + path.string() + "' is an input file; select another scenario file with --out");
    }
  }
  for (const Ns3ListFile& list : imported.lists) ROCI_TRY(write_ns3_text(folder / list.name, list.text));
  return write_ns3_text(options.out, imported.scenario);
}

}  // namespace roci::lab
