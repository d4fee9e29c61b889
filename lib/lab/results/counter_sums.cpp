#include "lab/results/counter_sums.hpp"

namespace roci::lab {

CounterSums CounterSums::minus(const CounterSums& before) const {
  const auto subtract = [](const auto& from, const auto& what) {
    auto out = from;
    for (const auto& [name, value] : what) out[name] -= value;
    return out;
  };
  return {subtract(hosts, before.hosts), subtract(switches, before.switches), subtract(drops, before.drops)};
}

CounterSums count(Network& network) {
  CounterSums sums;
  const Topology& topology = network.scenario().topology;
  for (uint32_t h = 0; h < topology.hosts.size(); ++h) {
    for (const auto& [name, value] : network.device(h).counters()) sums.hosts[name] += value;
  }
  for (uint32_t s = 0; s < topology.switches.size(); ++s) {
    const Switch& one = network.at(s);
    for (size_t p = 0; p < one.port_count(); ++p) {
      const SwitchPortCounters& port = one.counters(p);
      sums.switches["rx_packets"] += port.rx_packets;
      sums.switches["tx_packets"] += port.tx_packets;
      sums.switches["tx_bytes"] += port.tx_bytes;
      sums.switches["telemetry_hops"] += port.telemetry_hops;
      for (const SwitchClassCounters& one_class : port.classes) {
        sums.switches["marked"] += one_class.marked;
        sums.switches["pauses_sent"] += one_class.pauses_sent;
        sums.switches["paused_ns"] += one_class.paused_nanos;
      }
      for (unsigned reason = 1; reason < kDropReasonCount; ++reason) {  // 0 is kNone
        sums.drops[std::string(drop_reason_name(static_cast<DropReason>(reason)))] += port.drops[reason];
        sums.drops["all"] += port.drops[reason];
      }
    }
    sums.switches["cnps_sent"] += one.cnp_counts().of(CnpEvent::kSent);
    sums.switches["cnms_sent"] += one.cnm_counts().of(CnmEvent::kSent);
  }
  return sums;
}

}  // namespace roci::lab
