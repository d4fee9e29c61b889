#include "roci-switch/switch_file.hpp"

#include <algorithm>

namespace roci {
namespace {

Status read_port(ConfigNode& item, SwitchFile& file) {
  EthdevConfig& device = file.devices.emplace_back();
  device.promiscuous = true;  // a bridge takes frames for any MAC
  ROCI_TRY(read_device(item, device));
  PortFaults& faults = file.faults.emplace_back();
  if (item.has("faults") && !file.injection.enabled) return item.error("faults", kFaultsNotEnabled);
  return item.section("faults", Need::kOptional,
                      [&](ConfigNode& section) { return read_faults(section, faults); });
}

Status read_switch_section(ConfigNode& node, SwitchFile& file) {
  ROCI_TRY(read_idle(node, file.idle));
  ROCI_TRY(node.optional("awake", file.awake));
  ROCI_TRY(node.optional_list("cores", file.cores, integer_in<unsigned>(0, 4095)));
  ROCI_TRY(node.section("faults", Need::kOptional, [&](ConfigNode& section) -> Status {
    if (Status s = section.optional("enabled", file.injection.enabled); !s) return s;
    return section.optional("seed", file.injection.seed);
  }));
  ROCI_TRY(node.optional("last_words", file.last_words));
  ROCI_TRY(read_switch(node, file.sw, [&](ConfigNode& item, size_t) { return read_port(item, file); }));
  uint32_t workers = 0;
  for (const SwitchPortConfig& port : file.sw.ports) workers = std::max(workers, port.worker + 1);
  if (!file.cores.empty() && file.cores.size() != workers) {
    return node.error("cores", std::to_string(file.cores.size()) + " are listed, and the ports have " +
                                   std::to_string(workers) + " worker" + (workers == 1 ? "" : "s"));
  }
  return {};
}

}  // namespace

Result<SwitchFile> read_switch_file(const std::string& path) {
  SwitchFile file;
  file.eal.telemetry = true;  // what a switch does is meant to be watched
  const Status status = read_config(path, [&](ConfigNode& root) -> Status {
    if (Status eal = read_eal(root, file.eal); !eal) return eal;
    return root.section("switch", Need::kRequired,
                        [&](ConfigNode& node) { return read_switch_section(node, file); });
  });
  if (!status) return fail(status.error());
  return file;
}

}  // namespace roci
