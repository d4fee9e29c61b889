#pragma once

// Of which RoCE a GID of a port is. rdma-core has a private call for it, which ibv_devinfo makes.

#include <infiniband/verbs.h>

#include <cstdint>

namespace roci {

// The values of that call, which are not those of ibv_gid_type.
inline constexpr int kGidOfRoceV1 = 0;
inline constexpr int kGidOfRoceV2 = 1;

// 0, or -1 and errno.
int query_gid_type(ibv_context* context, uint8_t port, unsigned index, int* type);

}  // namespace roci
