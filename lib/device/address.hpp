// Addresses as verbs have them into ours.
#pragma once

#include <infiniband/verbs.h>

#include "base/result.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

class Host;

Gid from_ibv(const ibv_gid& gid);
ibv_gid to_ibv(const Gid& gid);

// Where the address may lead: a queue pair has one host as its peer.
enum class Destinations : uint8_t { kHosts, kHostsAndGroups };

// The path to an address, without the next hop's MAC. `what` begins the error's sentence.
Result<RocePath> read_path(const Host& host, const ibv_ah_attr& ah, const char* what, Destinations allowed);

}  // namespace roci
