// Conversion of verbs addresses to internal types.
#pragma once

#include <infiniband/verbs.h>

#include "base/result.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

class Host;

Gid from_ibv(const ibv_gid& gid);
ibv_gid to_ibv(const Gid& gid);

// Permitted destinations: the peer of a queue pair is one host.
enum class Destinations : uint8_t { kHosts, kHostsAndGroups };

// Returns the path to an address, without the next hop's MAC address. `what` is the prefix of error messages.
Result<RocePath> read_path(const Host& host, const ibv_ah_attr& ah, const char* what, Destinations allowed);

}  // namespace roci
