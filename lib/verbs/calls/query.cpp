// Queries of a context: device, port, GIDs and P_Keys.
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ctime>

#include "memory/flush_verbs.hpp"
#include "verbs/calls/calls.hpp"
#include "verbs/compatibility/gid_type.hpp"
#include "verbs/error.hpp"
#include "verbs/process/process_device.hpp"

#undef ibv_query_port

namespace roci::verbs {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint64_t kNanosPerTick = 1;  // timestamps are ns of CLOCK_MONOTONIC
constexpr uint64_t kMaxDm = 64 << 20;  // maximum size of a device memory allocation, in bytes

Result<ibv_gid_entry> gid_entry(ibv_context* context, uint32_t port, uint32_t index) {
  if (port != kPort) return fail("port " + std::to_string(port) + " does not exist; the only port is 1");
  auto gid = Context::of(context).device->query_gid(static_cast<int>(index));
  if (!gid) return fail(gid.error().message, ENODATA);
  return ibv_gid_entry{
      .gid = *gid, .gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = 0};
}

ibv_device_attr attributes(ibv_context* context) {
  ibv_device_attr attr = Context::of(context).device->query_device();
  const DeviceIdentity shown = listed_identity();
  attr.vendor_id = shown.vendor;
  attr.vendor_part_id = shown.part;
  return attr;
}

}  // namespace

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t size) {
  if (port != kPort) return refuse_with(EINVAL);
  const ibv_port_attr all = Context::of(context).device->query_port();
  std::memset(attr, 0, size);
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    size_t size) {
  if (input != nullptr && input->comp_mask != 0) return refuse_with(EINVAL);
  ibv_device_attr_ex all{};
  all.orig_attr = attributes(context);
  // The CPU copies the data, so page faults are handled by the kernel.
  constexpr uint32_t kEverywhere = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
  constexpr uint32_t kReliable =
      kEverywhere | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  all.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  all.odp_caps.per_transport_caps.rc_odp_caps = kReliable;
  all.odp_caps.per_transport_caps.uc_odp_caps = kEverywhere | IBV_ODP_SUPPORT_WRITE;
  all.odp_caps.per_transport_caps.ud_odp_caps = kEverywhere;
  all.xrc_odp_caps = kReliable;
  all.completion_timestamp_mask = UINT64_MAX;
  all.hca_core_clock = 1'000'000 / kNanosPerTick;  // kHz
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags | kDeviceFlushGlobal | kDeviceAtomicWrite;
  all.max_dm_size = kMaxDm;
  all.rss_caps.supported_qpts = 1U << IBV_QPT_RAW_PACKET;
  all.rss_caps.max_rwq_indirection_tables = static_cast<uint32_t>(all.orig_attr.max_qp);
  all.rss_caps.max_rwq_indirection_table_size = RssTable::kMaxQueues;
  all.rss_caps.rx_hash_fields_mask = RssTable::kFields;
  all.rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
  all.max_wq_type_rq = static_cast<uint32_t>(all.orig_attr.max_qp);
  all.phys_port_cnt_ex = 1;
  std::memset(attr, 0, size);
  std::memcpy(attr, &all, std::min(size, sizeof all));
  return 0;
}

int query_rt_values(ibv_context*, ibv_values_ex* values) {
  const uint32_t wanted = values->comp_mask;
  values->comp_mask = 0;
  if ((wanted & IBV_VALUES_MASK_RAW_CLOCK) == 0) return refuse_with(wanted == 0 ? EINVAL : EOPNOTSUPP);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  // A raw clock is a count of ticks, all of it in tv_nsec, like the timestamps of completions.
  values->raw_clock = {.tv_sec = 0, .tv_nsec = now.tv_sec * 1'000'000'000 + now.tv_nsec};
  values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return 0;
}

}  // namespace roci::verbs

namespace roci {

int query_gid_type(ibv_context* context, uint8_t port, unsigned index, int* type) {
  if (const auto entry = verbs::gid_entry(context, port, index); !entry) {
    errno = verbs::code_of(entry.error());
    return -1;
  }
  *type = kGidOfRoceV2;
  return 0;
}

}  // namespace roci

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  *attr = attributes(context);
  return 0;
}

// This symbol is used by programs that were compiled before ibv_port_attr was extended.
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attr) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr),
                    offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  auto entry = gid_entry(context, port, static_cast<uint32_t>(index));
  if (!entry) {
    errno = code_of(entry.error());
    return -1;
  }
  *gid = entry->gid;
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry,
                      uint32_t flags, size_t size) {
  if (flags != 0) return refuse_with(EINVAL);
  auto found = gid_entry(context, port, index);
  if (!found) return code_of(found.error());
  std::memset(entry, 0, size);
  std::memcpy(entry, &*found, std::min(size, sizeof *found));
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t most, uint32_t flags,
                             size_t size) {
  if (flags != 0) return -EINVAL;
  const auto count = static_cast<size_t>(Context::of(context).device->gid_count());
  if (count > most) return -EINVAL;
  for (uint32_t i = 0; i < count; ++i) {
    auto* entry = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<std::byte*>(entries) + i * size);
    if (const int code = _ibv_query_gid_ex(context, kPort, i, entry, 0, size); code != 0) return -code;
  }
  return static_cast<ssize_t>(count);
}

int ibv_query_pkey(ibv_context* context, uint8_t port, int index, __be16* pkey) {
  auto found = Context::of(context).device->query_pkey(index);
  if (port != kPort || !found) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htons(*found);
  return 0;
}

int ibv_get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) {
  auto only = Context::of(context).device->query_pkey(0);
  if (port == kPort && only && htons(*only) == pkey) return 0;
  errno = EINVAL;
  return -1;
}

}  // extern "C"
