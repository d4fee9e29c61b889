// Real cables of a scenario file, used in real time.
#include <algorithm>

#include "lab/scenario/scenario_sections.hpp"
#include "port/dpdk/device_args.hpp"

namespace roci::lab {

Status read_between(ConfigNode& node, const Topology& topology, CableEnds& ends) {
  std::vector<std::string> between;
  ROCI_TRY(node.required_values("between", between));
  if (between.size() != 2) return node.error("between", "must name the two ends of a link");
  const auto found = std::ranges::find_if(topology.cables, [&](const Cable& cable) {
    const std::string &a = topology.name_of(cable.a), &b = topology.name_of(cable.b);
    return (a == between[0] && b == between[1]) || (a == between[1] && b == between[0]);
  });
  if (found == topology.cables.end())
    return node.error("between", "there is no link between '" + between[0] + "' and '" + between[1] + "'");
  ends.cable = static_cast<uint32_t>(found - topology.cables.begin());
  ends.first_is_a = topology.name_of(found->a) == between[0];
  return {};
}

Status read_ports(ConfigNode& root, Scenario& scenario) {
  std::vector<std::string> known;  // names of devices
  return root.each("ports", Need::kOptional, [&](ConfigNode& node) -> Status {
    CableEnds ends;
    ROCI_TRY(read_between(node, scenario.topology, ends));
    if (std::ranges::any_of(scenario.ports, [&](const RealCable& one) { return one.cable == ends.cable; }))
      return node.error("between", "names a link that already has ports");
    std::vector<std::string> devices;
    ROCI_TRY(node.required_values("devices", devices));
    if (devices.size() != 2) return node.error("devices", "must name two devices, one per end of the link");
    for (const std::string& device : devices) {
      const auto parsed = DeviceArgs::parse(device);
      if (!parsed) return node.error("devices", parsed.error().message);
      if (std::ranges::find(known, parsed->name) != known.end())
        return node.error("devices",
                          "'" + parsed->name + "' is a duplicate; change the number of one of them");
      known.push_back(parsed->name);
    }
    if (!ends.first_is_a) std::swap(devices[0], devices[1]);
    scenario.ports.push_back(
        {.cable = ends.cable, .devices = {devices[0], devices[1]}, .where = node.piece("devices")->where});
    return {};
  });
}

Status check_real(const Scenario& scenario) {
  for (const RealCable& real : scenario.ports) {
    if (!scenario.payload)
      return fail(
          real.where +
          ": packets without payload cannot be sent through real ports; --real requires payload: carried");
    if (std::ranges::any_of(scenario.faults,
                            [&](const FaultSpec& fault) { return fault.cable == real.cable; }))
      return fail(real.where + ": the link has faults; with --real only simulated links can have faults");
  }
  return {};
}

}  // namespace roci::lab
