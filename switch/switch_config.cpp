#include "switch/switch_config.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "wire/cnm/l3_cnm_guard.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

constexpr uint32_t kMaxAddresses = 1U << 24;           // MAC table entries
constexpr uint32_t kMaxFlows = 1U << 20;               // of a ToR table, and of `senders`
constexpr Nanos kMinAgeing = 1ms;                      // of learned addresses and flows
constexpr uint32_t kMaxNotifications = 1'000'000'000;  // per second

std::string quoted(const std::string& text) { return "'" + text + "'"; }

Status check_vlan(uint16_t vlan, const std::string& where) {
  if (vlan >= 1 && vlan <= kLastVlan) return {};
  return fail(where + ": VLAN " + std::to_string(vlan) + " is out of range; allowed are 1 to " +
              std::to_string(kLastVlan));
}

Status check_ports(const SwitchConfig& config) {
  if (config.ports.empty()) return fail("at least one port is required");
  if (config.ports.size() > 1024)
    return fail("has " + std::to_string(config.ports.size()) + " ports; at most 1024 are allowed");
  std::set<std::string> names;
  std::set<uint32_t> workers;
  for (const SwitchPortConfig& port : config.ports) {
    workers.insert(port.worker);
    const std::string where = "port " + quoted(port.name);
    if (!names.insert(port.name).second) return fail(where + ": duplicate name");
    ROCI_TRY(check_vlan(port.vlan, where));
    for (const uint16_t vlan : port.tagged) ROCI_TRY(check_vlan(vlan, where));
    if (Status s = check_classes(port.classes); !s) return fail(s.error().within(where));
  }
  if (*workers.rbegin() >= kMaxSwitchWorkers)
    return fail("worker " + std::to_string(*workers.rbegin()) + " has a port; allowed are workers 0 to " +
                std::to_string(kMaxSwitchWorkers - 1));
  if (*workers.rbegin() + 1 != workers.size())
    return fail("worker " + std::to_string(*workers.rbegin()) +
                " has a port, and a worker with a lower number has none");
  return {};
}

Status check_bindings(const SwitchConfig& config) {
  std::map<uint64_t, const SwitchPortConfig*> macs;
  std::map<IpNetwork, const SwitchPortConfig*> networks;
  for (const SwitchPortConfig& port : config.ports) {
    const std::string where = "port " + quoted(port.name) + ": ";
    for (const MacAddress& mac : port.macs) {
      if (mac.is_multicast() || mac.is_zero())
        return fail(where + "macs: " + mac.to_string() + " is not a unicast MAC address");
      const auto [known, is_new] = macs.emplace(mac.bits(), &port);
      if (!is_new)
        return fail(where + "macs: " + mac.to_string() + " is bound to port " + quoted(known->second->name) +
                    " already");
    }
    for (const IpNetwork& network : port.addresses) {
      if (network.address.is_multicast())
        return fail(where + "addresses: " + network.to_string() + " is multicast; a source is unicast");
      const auto [known, is_new] = networks.emplace(network.masked(), &port);
      if (!is_new)
        return fail(where + "addresses: " + network.to_string() + " is bound to port " +
                    quoted(known->second->name) + " already");
    }
  }
  if (macs.size() > kMaxBindings || networks.size() > kMaxBindings)
    return fail("the ports have " + std::to_string(std::max(macs.size(), networks.size())) +
                " bound addresses; the maximum is " + std::to_string(kMaxBindings));
  return {};
}

// Interface with a network that contains the address, and this network; null if no interface has one.
struct Reachability {
  const SwitchInterfaceConfig* interface = nullptr;
  const IpNetwork* network = nullptr;
};
Reachability reach(const SwitchConfig& config, const IpAddress& address) {
  for (const SwitchInterfaceConfig& interface : config.interfaces) {
    for (const IpNetwork& own : interface.addresses) {
      if (own.contains(address)) return {&interface, &own};
    }
  }
  return {};
}

Status check_interfaces(const SwitchConfig& config) {
  std::set<std::string> names;
  std::set<uint16_t> vlans;
  std::vector<IpNetwork> networks;
  for (const SwitchInterfaceConfig& interface : config.interfaces) {
    const std::string where = "interface " + quoted(interface.name);
    if (!names.insert(interface.name).second) return fail(where + ": duplicate name");
    ROCI_TRY(check_vlan(interface.vlan, where));
    if (!vlans.insert(interface.vlan).second) {
      return fail(where + ": VLAN " + std::to_string(interface.vlan) + " already has an interface");
    }
    if (interface.addresses.empty()) return fail(where + " has no address");
    for (const IpNetwork& own : interface.addresses) {
      if (own.address.is_multicast() || own.address.is_zero()) {
        return fail(where + ": " + own.to_string() + " is not a unicast host address");
      }
      for (const IpNetwork& other : networks) {
        if (own.contains(other.address) || other.contains(own.address)) {
          return fail(where + ": " + own.to_string() + " overlaps " + other.to_string());
        }
      }
      networks.push_back(own);
    }
  }
  if (networks.size() > kMaxOwnAddresses) {
    return fail("the interfaces have " + std::to_string(networks.size()) + " addresses; the maximum is " +
                std::to_string(kMaxOwnAddresses));
  }
  return {};
}

Status check_next_hops(const SwitchConfig& config, const SwitchRouteConfig& route) {
  const std::string prefix = "route " + route.prefix.to_string();
  if (route.via.empty()) return fail(prefix + " has no next hop");
  if (route.via.size() > kMaxNextHops) {
    return fail(prefix + " has " + std::to_string(route.via.size()) + " next hops; the maximum is " +
                std::to_string(kMaxNextHops));
  }
  std::set<IpAddress> seen;
  for (const IpAddress& via : route.via) {
    const std::string where = prefix + " via " + via.to_string();
    if (route.prefix.address.is_v4() != via.is_v4()) return fail(where + " mixes IPv4 and IPv6");
    const Reachability reached = reach(config, via);
    if (reached.network == nullptr) return fail(where + ": the next hop is in no interface's network");
    if (reached.network->address == via) return fail(where + ": the next hop is the switch itself");
    if (!seen.insert(via).second) return fail(where + ": duplicate next hop");
  }
  return {};
}

Status check_routes(const SwitchConfig& config) {
  if (config.routes.size() > kMaxRoutes) {
    return fail("has " + std::to_string(config.routes.size()) + " routes; the maximum is " +
                std::to_string(kMaxRoutes));
  }
  std::map<IpNetwork, const SwitchRouteConfig*> seen;
  for (const SwitchRouteConfig& route : config.routes) {
    ROCI_TRY(check_next_hops(config, route));
    const std::string where = "route " + route.prefix.to_string();
    const auto [known, is_new] = seen.emplace(route.prefix.masked(), &route);
    if (!is_new) {
      return fail(where + ": duplicate prefix; list several next hops in one route: via: [" +
                  known->second->via.front().to_string() + ", " + route.via.front().to_string() + "]");
    }
    const Reachability own = reach(config, route.prefix.address);
    if (own.network != nullptr && (own.network->masked() == route.prefix.masked() ||
                                   IpNetwork::host(own.network->address) == route.prefix)) {
      return fail(where + ": the prefix is that of interface " + quoted(own.interface->name) +
                  ", which is routed already");
    }
  }
  return {};
}

Status check_neighbors(const SwitchConfig& config) {
  for (const SwitchNeighborConfig& n : config.neighbors) {
    const std::string where = "neighbor " + n.address.to_string();
    if (reach(config, n.address).network == nullptr) return fail(where + " is in no interface's network");
    if (n.mac.is_multicast() || n.mac.is_zero())
      return fail(where + ": " + n.mac.to_string() + " is not a unicast MAC address");
  }
  return {};
}

// Reads the keys of a port that are common to all configuration files with a switch.
Status read_port(ConfigNode& item, SwitchPortConfig& port) {
  const auto vlan = integer_in<uint16_t>(1, kLastVlan);
  ROCI_TRY(item.required("name", port.name));
  ROCI_TRY(item.optional("rate", port.rate));
  ROCI_TRY(item.optional("queue", port.queue));
  ROCI_TRY(item.optional("queue_frames", port.queue_frames, integer_in<uint32_t>(1, 1U << 20)));
  ROCI_TRY(item.optional("vlan", port.vlan, vlan));
  port.all_tagged = !item.has("tagged");
  ROCI_TRY(item.optional_list("tagged", port.tagged, vlan));
  ROCI_TRY(item.optional("telemetry", port.telemetry,
                         one_of<TelemetryRole>({{"transit", TelemetryRole::kTransit},
                                                {"source", TelemetryRole::kSource},
                                                {"sink", TelemetryRole::kSink},
                                                {"edge", TelemetryRole::kEdge}})));
  enum class CnTag : uint8_t { kKeep, kRemove };
  CnTag cn_tag = port.keeps_cn_tags ? CnTag::kKeep : CnTag::kRemove;
  ROCI_TRY(
      item.optional("cn_tag", cn_tag, one_of<CnTag>({{"keep", CnTag::kKeep}, {"remove", CnTag::kRemove}})));
  port.keeps_cn_tags = cn_tag == CnTag::kKeep;
  ROCI_TRY(item.optional("worker", port.worker, integer_in<uint32_t>(0, kMaxSwitchWorkers - 1)));
  ROCI_TRY(item.optional_list("macs", port.macs));
  ROCI_TRY(item.optional_list("addresses", port.addresses));
  ROCI_TRY(item.section("pause_watchdog", Need::kOptional, [&](ConfigNode& watchdog) -> Status {
    if (Status s = watchdog.required("detect", port.watchdog.detect); !s) return s;
    return watchdog.optional("restore", port.watchdog.restore);
  }));
  return read_classes(item, port.classes, port.rate);
}

Status read_buffer(ConfigNode& node, BufferConfig& buffer) {
  return node.section("buffer", Need::kOptional, [&](ConfigNode& item) -> Status {
    ROCI_TRY(item.required("size", buffer.size));
    return item.optional("alpha", buffer.alpha, number_in(0, 1024));
  });
}

Status read_notify(ConfigNode& node, NotifyConfig& notify) {
  using UnknownFlow = NotifyConfig::UnknownFlow;
  ROCI_TRY(node.optional("cnm_port", notify.port));
  ROCI_TRY(node.optional("cnm_rate", notify.rate, integer_in<uint32_t>(1, kMaxNotifications)));
  SipKey key{};
  ROCI_TRY(node.optional("cnm_key", key, parse_sip_key));
  if (node.has("cnm_key")) notify.key = key;
  ROCI_TRY(node.optional("cnm_tolerance", notify.tolerance));
  return node.section("tor", Need::kOptional, [&](ConfigNode& tor) -> Status {
    notify.tor_size = 4096;
    ROCI_TRY(tor.optional("size", notify.tor_size, integer_in<uint32_t>(1, kMaxFlows)));
    ROCI_TRY(tor.optional("ageing", notify.tor_ageing));
    return tor.optional(
        "unknown", notify.tor_unknown,
        one_of<UnknownFlow>({{"drop", UnknownFlow::kDrop}, {"deliver", UnknownFlow::kDeliver}}));
  });
}

Status read_senders(ConfigNode& node, SwitchSendersConfig& senders) {
  return node.section("senders", Need::kOptional, [&](ConfigNode& item) -> Status {
    if (Status s = item.optional("flows", senders.flows, integer_in<uint32_t>(1, kMaxFlows)); !s) return s;
    return item.optional("ageing", senders.ageing);
  });
}

Status read_cnp(ConfigNode& node, SwitchCnpConfig& cnp) {
  return node.section("cnp", Need::kOptional, [&](ConfigNode& item) -> Status {
    ROCI_TRY(item.optional("spacing", cnp.spacing));
    ROCI_TRY(item.optional("rate", cnp.rate, integer_in<uint32_t>(1, kMaxNotifications)));
    return item.optional("suppress", cnp.suppress);
  });
}

Status read_reaction(ConfigNode& node, ReactionConfig& reaction) {
  return node.section("reaction", Need::kOptional, [&](ConfigNode& item) -> Status {
    ROCI_TRY(item.optional("threshold", reaction.threshold, integer_in<uint32_t>(1, 1000)));
    ROCI_TRY(item.optional("time_reset", reaction.time_reset));
    ROCI_TRY(item.optional("byte_reset", reaction.byte_reset));
    ROCI_TRY(item.optional("ai", reaction.ai));
    ROCI_TRY(item.optional("hai", reaction.hai));
    ROCI_TRY(item.optional("min", reaction.min));
    return item.optional("gd", reaction.gd, number_in(1.0 / 65'536, 1));
  });
}

Status read_shapers(ConfigNode& node, std::vector<SwitchShaperConfig>& shapers) {
  return node.each("shapers", Need::kOptional, [&](ConfigNode& item) -> Status {
    SwitchShaperConfig& shaper = shapers.emplace_back();
    ROCI_TRY(item.required("prefix", shaper.prefix));
    ROCI_TRY(item.required("class", shaper.traffic_class, integer_in<uint8_t>(0, kTrafficClasses - 1)));
    ROCI_TRY(item.required("rate", shaper.rate));
    ROCI_TRY(item.optional("queue", shaper.queue));
    ROCI_TRY(item.optional("queue_frames", shaper.queue_frames, integer_in<uint32_t>(1, 1U << 20)));
    ROCI_TRY(read_aqm(item, shaper.aqm, shaper.rate));
    QcnConfig qcn;
    ROCI_TRY(read_qcn(item, qcn, shaper.rate));
    if (item.has("qcn")) shaper.qcn = qcn;
    return read_reaction(item, shaper.reaction);
  });
}

Status check_reaction(const ReactionConfig& r, BitsPerSec rate) {
  if (r.threshold == 0) return fail("reaction: threshold must be at least 1");
  if (r.time_reset < 1us || r.time_reset > 10s) return fail("reaction: time_reset must be 1 us to 10 s");
  if (r.byte_reset < Bytes{100} || r.byte_reset > 1_GiB)
    return fail("reaction: byte_reset must be 100 bytes to 1 GiB");
  if (!(r.gd > 0 && r.gd <= 1)) return fail("reaction: gd must be above 0 and at most 1");
  // Else an interval without traffic takes too many steps.
  if (r.ai.value() < rate.value() / 1'000'000 || r.ai.value() == 0)
    return fail("reaction: ai must be at least a millionth of the shaper's rate");
  if (r.min.value() == 0 || r.min >= rate)
    return fail("reaction: min must be above 0 and below the shaper's rate");
  return {};
}

Status check_shaper(const SwitchConfig& config, const SwitchShaperConfig& shaper) {
  if (shaper.rate.value() == 0) return fail("rate must be above 0");
  if (shaper.traffic_class >= kTrafficClasses)
    return fail("class must be 0 to " + std::to_string(kTrafficClasses - 1));
  ROCI_TRY(check_aqm(shaper.aqm));
  if (shaper.qcn) {
    ROCI_TRY(check_qcn(*shaper.qcn));
    if (shaper.qcn->contents.any())
      return fail("qcn: additional_values is not supported; hosts of this switch receive only the feedback");
  }
  for (const SwitchPortConfig& port : config.ports) {
    const auto& lossless = port.classes[shaper.traffic_class].lossless;
    if (lossless && lossless->xoff + lossless->headroom > shaper.queue)
      return fail("xoff and headroom of port " + quoted(port.name) + " exceed the shaper's queue");
  }
  return check_reaction(shaper.reaction, shaper.rate);
}

Status check_shapers(const SwitchConfig& config) {
  if (config.shapers.size() > kMaxShapers) {
    return fail("has " + std::to_string(config.shapers.size()) + " shapers; the maximum is " +
                std::to_string(kMaxShapers));
  }
  if (!config.shapers.empty() && config.notify.port == 0) return fail("shapers require cnm_port");
  std::set<std::pair<IpNetwork, uint8_t>> seen;
  for (const SwitchShaperConfig& shaper : config.shapers) {
    const std::string where =
        "shaper of class " + std::to_string(shaper.traffic_class) + " to " + shaper.prefix.to_string();
    if (!seen.emplace(shaper.prefix.masked(), shaper.traffic_class).second)
      return fail(where + ": duplicate");
    if (Status s = check_shaper(config, shaper); !s) return fail(s.error().within(where));
  }
  return {};
}

// Dynamic thresholds of lossless classes require a buffer of a known size. Their headroom is reserved in it.
Status check_buffer(const SwitchConfig& config) {
  bool dynamic = false;
  uint64_t reserved = 0;
  for (const SwitchPortConfig& port : config.ports) {
    for (const ClassConfig& one : port.classes) {
      if (!one.lossless || !one.lossless->is_dynamic()) continue;
      dynamic = true;
      reserved += one.lossless->headroom.value();
    }
  }
  if (!dynamic) return {};
  if (config.buffer.size == BufferConfig{}.size)
    return fail("alpha of a lossless class requires buffer: size");
  if (reserved < config.buffer.size.value()) return {};
  return fail("buffer: the headroom of the lossless classes of all ports is " + std::to_string(reserved) +
              " bytes, which exceeds the size of " + std::to_string(config.buffer.size.value()));
}

Status check_senders(const SwitchSendersConfig& senders) {
  if (senders.flows == 0 || senders.flows > kMaxFlows) {
    return fail("senders: " + std::to_string(senders.flows) + " flows are out of range; allowed are 1 to " +
                std::to_string(kMaxFlows));
  }
  if (senders.ageing < kMinAgeing) return fail("senders: ageing must be at least 1 ms");
  return {};
}

Status check_cnp(const SwitchCnpConfig& cnp) {
  if (cnp.rate == 0 || cnp.rate > kMaxNotifications)
    return fail("cnp: rate must be 1 to " + std::to_string(kMaxNotifications));
  if (cnp.spacing < Nanos{0} || cnp.spacing > 1s) return fail("cnp: spacing must be 0 to 1 s");
  return {};
}

Status check_notify(const SwitchConfig& config) {
  const NotifyConfig& notify = config.notify;
  if (notify.port == kRoceUdpPort)
    return fail("cnm_port: " + std::to_string(kRoceUdpPort) + " is the port of RoCEv2; use a different port");
  if (notify.port != 0 && config.telemetry.enabled && notify.port == config.telemetry.udp_port)
    return fail("cnm_port: " + std::to_string(notify.port) +
                " is telemetry's udp_port; use a different port");
  if (notify.key && notify.port == 0) return fail("cnm_key requires cnm_port");
  if (notify.rate == 0 || notify.rate > kMaxNotifications)
    return fail("cnm_rate must be 1 to " + std::to_string(kMaxNotifications));
  if (notify.key && notify.rate > kMaxSignedCnms) {
    return fail("signed CNMs are distinguished by time; cnm_rate must be at most " +
                std::to_string(kMaxSignedCnms) + " with a cnm_key");
  }
  if (notify.tolerance < 1ms || notify.tolerance > L3CnmGuard::kMaxTolerance)
    return fail("cnm_tolerance must be 1 ms to 1 h");
  if (notify.tor_size > kMaxFlows)
    return fail("tor: a table of " + std::to_string(notify.tor_size) + " flows exceeds the maximum of " +
                std::to_string(kMaxFlows));
  if (notify.tor_size != 0 && notify.port == 0) return fail("tor requires cnm_port");
  if (notify.tor_ageing < kMinAgeing) return fail("tor: ageing must be at least 1 ms");
  for (const SwitchPortConfig& port : config.ports) {
    for (uint8_t c = 0; c < kTrafficClasses; ++c) {
      const ClassConfig& config_of = port.classes[c];
      if (config_of.notify != ClassConfig::Notify::kQcn || !config_of.qcn.l3) continue;
      const std::string where = "port " + quoted(port.name) + ": class " + std::to_string(c);
      if (notify.port == 0) return fail(where + ": l3 requires cnm_port");
      if (config.interfaces.empty()) return fail(where + ": l3 requires an interface");
      const QcnConfig::Contents& contents = config_of.qcn.contents;
      if (contents.rates() && port.rate.value() == 0)
        return fail(where + ": the rates in additional_values require a rate of the port");
      if (contents.port && !config.telemetry.enabled)
        return fail(where + ": additional_values: port requires telemetry of the switch");
    }
  }
  return {};
}

// Assignment of priorities in the draft (L3QCN 5.2.1): 5 for QCN servers, 7 for RoCEv2 servers.
void apply_l3qcn(ClassConfigs& classes) {
  classes[5].notify = ClassConfig::Notify::kQcn;
  classes[5].qcn.l3 = true;
  classes[7].notify = ClassConfig::Notify::kCnp;
}

Status read_tables(ConfigNode& node, SwitchConfig& config) {
  ROCI_TRY(node.section("mac_table", Need::kOptional, [&](ConfigNode& table) -> Status {
    if (Status s = table.optional("size", config.mac_table_size, integer_in<uint32_t>(1, kMaxAddresses)); !s)
      return s;
    return table.optional("ageing", config.mac_ageing);
  }));
  ROCI_TRY(node.each("interfaces", Need::kOptional, [&](ConfigNode& item) -> Status {
    SwitchInterfaceConfig& interface = config.interfaces.emplace_back();
    Status s = item.required("name", interface.name);
    if (s) s = item.optional("vlan", interface.vlan, integer_in<uint16_t>(1, kLastVlan));
    if (s) s = item.optional_list("addresses", interface.addresses);
    return s;
  }));
  ROCI_TRY(node.each("routes", Need::kOptional, [&](ConfigNode& item) -> Status {
    SwitchRouteConfig& route = config.routes.emplace_back();
    Status s = item.required("prefix", route.prefix);
    if (s) s = item.required_values("via", route.via);
    return s;
  }));
  return node.each(node.renamed("neighbors", "neighbours"), Need::kOptional, [&](ConfigNode& item) -> Status {
    SwitchNeighborConfig& neighbor = config.neighbors.emplace_back();
    Status s = item.required("address", neighbor.address);
    if (s) s = item.required("mac", neighbor.mac);
    return s;
  });
}

}  // namespace

bool sends_cnps(const SwitchConfig& config) {
  return std::any_of(config.ports.begin(), config.ports.end(), [](const SwitchPortConfig& port) {
    return std::any_of(port.classes.begin(), port.classes.end(),
                       [](const ClassConfig& c) { return c.notify == ClassConfig::Notify::kCnp; });
  });
}

Status check(const SwitchConfig& config) {
  const std::string where = "switch " + quoted(config.name);
  const auto checked = [&]() -> Status {
    if (config.mac.is_multicast()) return fail("mac: " + config.mac.to_string() + " is a multicast address");
    if (config.mac_table_size == 0 || config.mac_table_size > kMaxAddresses) {
      return fail("mac_table: size " + std::to_string(config.mac_table_size) +
                  " is out of range; allowed are 1 to " + std::to_string(kMaxAddresses));
    }
    if (config.mac_ageing < kMinAgeing) return fail("mac_table: ageing must be at least 1 ms");
    ROCI_TRY(check_telemetry(config.telemetry));
    ROCI_TRY(check_ports(config));
    ROCI_TRY(check_buffer(config));
    ROCI_TRY(check_bindings(config));
    ROCI_TRY(check_interfaces(config));
    ROCI_TRY(check_notify(config));
    ROCI_TRY(check_senders(config.senders));
    ROCI_TRY(check_cnp(config.cnp));
    ROCI_TRY(check_shapers(config));
    ROCI_TRY(check_routes(config));
    return check_neighbors(config);
  }();
  if (!checked) return fail(checked.error().within(where));
  return {};
}

namespace {

// Marks should slow senders down before a pause does (DCQCN, Zhu et al., SIGCOMM 2015).
void warn_of_pauses_before_marks(const SwitchConfig& config, std::vector<std::string>& out) {
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    const auto port = std::ranges::find_if(config.ports, [c](const SwitchPortConfig& p) {
      const ClassConfig& one = p.classes[c];
      return one.lossless && !one.lossless->is_dynamic() && !one.aqm.mark.never() &&
             one.aqm.mark.kmin >= one.lossless->xoff;
    });
    if (port == config.ports.end()) continue;
    const ClassConfig& one = port->classes[c];
    out.push_back("switch " + quoted(config.name) + ": port " + quoted(port->name) + ": class " +
                  std::to_string(c) + " pauses at " + std::to_string(one.lossless->xoff.value()) +
                  " bytes, before it marks at " + std::to_string(one.aqm.mark.kmin.value()) +
                  " bytes; congestion control that reacts to marks requires kmin below xoff");
  }
}

// Frames of lossless classes with static thresholds are dropped when the buffer is full, also below their thresholds.
void warn_of_small_buffer(const SwitchConfig& config, std::vector<std::string>& out) {
  if (config.buffer.size == BufferConfig{}.size) return;
  bool has_static = false;
  uint64_t sum = 0;
  for (const SwitchPortConfig& port : config.ports) {
    for (const ClassConfig& one : port.classes) {
      if (!one.lossless) continue;
      has_static |= !one.lossless->is_dynamic();
      sum += (one.lossless->xoff + one.lossless->headroom).value();
    }
  }
  if (!has_static || sum <= config.buffer.size.value()) return;
  out.push_back("switch " + quoted(config.name) +
                ": xoff and headroom of the lossless classes of all ports are " + std::to_string(sum) +
                " bytes, more than the buffer's size of " + std::to_string(config.buffer.size.value()) +
                " bytes; a full buffer drops frames of lossless classes");
}

}  // namespace

// LDCP requires a queue of its own, and all its packets have one DSCP (draft-dai-tsvwg-pfc-free-congestion-control
// 2.3). Other traffic would fill the queue whose length LDCP measures, and its packets would be dropped by the curve
// for packets that are not ECN-capable.
std::vector<std::string> warnings(const SwitchConfig& config) {
  std::vector<std::string> out;
  warn_of_pauses_before_marks(config, out);
  warn_of_small_buffer(config, out);
  for (uint8_t c = 0; c < kTrafficClasses; ++c) {
    const auto port = std::find_if(config.ports.begin(), config.ports.end(), [c](const SwitchPortConfig& p) {
      return !p.classes[c].aqm.mark.never() && !p.classes[c].aqm.drop.never();
    });
    if (port == config.ports.end() || config.classifier.trust != ClassifierConfig::Trust::kDscp) continue;
    const auto& by_dscp = config.classifier.by_dscp;
    const auto count = std::count(by_dscp.begin(), by_dscp.end(), c);
    const std::string where = "switch " + quoted(config.name) + ": port " + quoted(port->name) + ": class " +
                              std::to_string(c) +
                              " has curves for ECN-capable and other packets, as LDCP requires";
    if (count > 1) {
      out.push_back(
          where + ", and " + std::to_string(count) +
          " DSCPs share it; LDCP requires a separate class: classify: {other: 0, dscp: [{dscp: 26, class: " +
          std::to_string(c) + "}]}");
    } else if (config.classifier.untagged == c) {
      out.push_back(
          where +
          ", and untagged non-IP frames share it; LDCP requires a separate class: classify: {untagged: 0}");
    }
  }
  return out;
}

Status read_of_all_ports(ConfigNode& node, SwitchConfig& config) {
  ROCI_TRY(read_classifier(node, config.classifier));
  ROCI_TRY(read_buffer(node, config.buffer));
  ROCI_TRY(read_telemetry(node, config.telemetry));
  ROCI_TRY(read_notify(node, config.notify));
  ROCI_TRY(read_senders(node, config.senders));
  ROCI_TRY(read_cnp(node, config.cnp));
  ROCI_TRY(read_shapers(node, config.shapers));
  ROCI_TRY(node.optional("seed", config.seed));
  ROCI_TRY(node.optional("ecmp_seed", config.ecmp_seed,
                         [](std::string_view text) -> Result<std::optional<uint64_t>> {
                           if (text == "auto") return std::nullopt;
                           const auto seed = parse_value<uint64_t>(text);
                           if (!seed) return fail(seed.error());
                           return *seed;
                         }));
  return {};
}

// Queue lengths may be times at the port's rate.
Status read_classes_of_all_ports(ConfigNode& node, SwitchPortConfig& port) {
  bool l3qcn = false;
  ROCI_TRY(node.optional("l3qcn", l3qcn));
  if (l3qcn) apply_l3qcn(port.classes);
  return read_classes(node, port.classes, port.rate);
}

Status read_switch(ConfigNode& node, SwitchConfig& config, const SwitchPortReader& read_more) {
  ROCI_TRY(node.optional("name", config.name));
  ROCI_TRY(node.optional("mac", config.mac, [](std::string_view text) -> Result<MacAddress> {
    if (text == "auto") return MacAddress{};
    return MacAddress::parse(text);
  }));
  ROCI_TRY(read_of_all_ports(node, config));
  ROCI_TRY(node.each("ports", Need::kRequired, [&](ConfigNode& item) -> Status {
    SwitchPortConfig& port = config.ports.emplace_back();
    if (Status s = item.optional("rate", port.rate); !s) return s;
    if (Status s = read_classes_of_all_ports(node, port); !s) return s;
    if (Status s = read_port(item, port); !s) return s;
    return read_more(item, config.ports.size() - 1);
  }));
  ROCI_TRY(read_tables(node, config));
  if (Status s = check(config); !s) return node.error(s.error().message);
  return {};
}

}  // namespace roci
