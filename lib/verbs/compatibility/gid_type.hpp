#pragma once

// RoCE version of a port's GID. rdma-core has a private call for it, which ibv_devinfo uses.

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

// Values of that call, which differ from those of ibv_gid_type.
inline constexpr int kGidOfRoceV1 = 0;
inline constexpr int kGidOfRoceV2 = 1;

// Returns 0, or -1 with errno set.
int query_gid_type(ibv_context* context, uint8_t port, unsigned index, int* type);

}  // namespace roci
