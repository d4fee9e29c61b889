#include "device/host/address.hpp"

#include <cstring>

#include "device/host/host.hpp"

namespace roci {

Gid from_ibv(const ibv_gid& gid) {
  Gid out;
  std::memcpy(out.bytes.data(), gid.raw, sizeof gid.raw);
  return out;
}

ibv_gid to_ibv(const Gid& gid) {
  ibv_gid out;
  std::memcpy(out.raw, gid.bytes.data(), sizeof out.raw);
  return out;
}

Result<RocePath> read_path(const Host& host, const ibv_ah_attr& ah, const char* what, Destinations allowed) {
  const std::string prefix = std::string(what) + ": ";
  if (ah.is_global == 0)
    return fail(prefix + "the address vector has no GRH; RoCE requires one (is_global = 1)");
  if (ah.grh.sgid_index >= host.gids().size()) {
    return fail(prefix + "sgid_index " + std::to_string(ah.grh.sgid_index) + " does not exist; 0 to " +
                std::to_string(host.gids().size() - 1) + " are valid");
  }
  RocePath path;
  path.source_ip = host.gids()[ah.grh.sgid_index];
  path.destination_ip = from_ibv(ah.grh.dgid);
  if (path.destination_ip.is_v4() != path.source_ip.is_v4()) {
    return fail(prefix + "the peer's GID " + path.destination_ip.to_string() + " and the local GID " +
                path.source_ip.to_string() + " have different IP versions");
  }
  const bool group = path.destination_ip.is_multicast();
  if (path.destination_ip.is_zero() || (group && allowed == Destinations::kHosts))
    return fail(prefix + path.destination_ip.to_string() + " is not a unicast host address");
  path.source_mac = host.mac();
  path.vlan_id = host.config().vlan;
  path.priority = host.config().priority;
  path.traffic_class = ah.grh.traffic_class;
  path.flow_label = ah.grh.flow_label & 0xfffff;
  path.hop_limit = ah.grh.hop_limit == 0 ? uint8_t{64} : ah.grh.hop_limit;
  return path;
}

}  // namespace roci
