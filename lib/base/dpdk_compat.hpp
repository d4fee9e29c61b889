// Differences between the DPDK versions 22.11 to 24.11. Code of the project that has to distinguish versions is in this
// file only.
#pragma once

#include <rte_fib6.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include <cstddef>
#include <cstdint>

namespace roci::dpdk_compat {

// DPDK 23.03 renamed the unsigned integers of telemetry, and deprecated the old names.
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
inline constexpr auto kTelemetryUint = RTE_TEL_UINT_VAL;
inline int add_dict_uint(rte_tel_data* data, const char* name, uint64_t value) {
  return rte_tel_data_add_dict_uint(data, name, value);
}
inline int add_array_uint(rte_tel_data* data, uint64_t value) {
  return rte_tel_data_add_array_uint(data, value);
}
#else
inline constexpr auto kTelemetryUint = RTE_TEL_U64_VAL;
inline int add_dict_uint(rte_tel_data* data, const char* name, uint64_t value) {
  return rte_tel_data_add_dict_u64(data, name, value);
}
inline int add_array_uint(rte_tel_data* data, uint64_t value) {
  return rte_tel_data_add_array_u64(data, value);
}
#endif

// DPDK 24.11 replaced arrays of 16 bytes by a type for IPv6 addresses. `uint8_t (*)[16]` is an array of addresses.
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
inline int fib6_add(rte_fib6* fib, const uint8_t* prefix, uint8_t length, uint64_t next_hop) {
  return rte_fib6_add(fib, reinterpret_cast<const rte_ipv6_addr*>(prefix), length, next_hop);
}
inline int fib6_lookup_bulk(rte_fib6* fib, uint8_t (*addresses)[16], uint64_t* next_hops, size_t count) {
  static_assert(sizeof(rte_ipv6_addr) == 16 && alignof(rte_ipv6_addr) == 1);
  return rte_fib6_lookup_bulk(fib, reinterpret_cast<const rte_ipv6_addr*>(addresses), next_hops,
                              static_cast<int>(count));
}
#else
inline int fib6_add(rte_fib6* fib, const uint8_t* prefix, uint8_t length, uint64_t next_hop) {
  return rte_fib6_add(fib, prefix, length, next_hop);
}
inline int fib6_lookup_bulk(rte_fib6* fib, uint8_t (*addresses)[16], uint64_t* next_hops, size_t count) {
  return rte_fib6_lookup_bulk(fib, addresses, next_hops, static_cast<int>(count));
}
#endif

}  // namespace roci::dpdk_compat
