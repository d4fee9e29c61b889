#include "switch/pipeline/switch_port.hpp"

namespace roci {

SwitchPort::SwitchPort(Port& p, const SwitchPortConfig& config, uint16_t number, uint64_t seed,
                       uint32_t worker_number, const EgressPort::Context& context)
    : port(p),
      capabilities(p.capabilities()),
      index(number),
      worker(worker_number),
      native(config.vlan),
      role(config.telemetry),
      keeps_cn_tags(config.keeps_cn_tags),
      egress({config.rate, config.queue, config.queue_frames, config.classes, config.watchdog,
              config.telemetry, index, seed},
             context, counters) {
  if (config.all_tagged) {
    for (uint16_t vlan = 1; vlan <= kLastVlan; ++vlan) member.set(vlan);
  }
  for (const uint16_t vlan : config.tagged) member.set(vlan);
  member.set(native);
}

}  // namespace roci
