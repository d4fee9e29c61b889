// Device memory. It is host memory, because the device is software.
#include <infiniband/verbs.h>

#include <atomic>
#include <cstring>
#include <new>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/process_device.hpp"

namespace roci::verbs {
namespace {

bool fits(const Dm& dm, uint64_t offset, size_t length) {
  return offset <= dm.length && length <= dm.length - offset;
}

// As on NICs with device memory, the processor accesses it in words of four bytes.
bool may_copy(const Dm& dm, uint64_t offset, size_t length) {
  return fits(dm, offset, length) && offset % 4 == 0 && length % 4 == 0;
}

std::atomic<uint32_t> next_dm_number{0};

int copy_to(ibv_dm* handle, uint64_t offset, const void* from, size_t length) {
  Dm& dm = of<Dm>(handle);
  if (!may_copy(dm, offset, length)) return refuse_with(EINVAL);
  std::memcpy(dm.bytes.get() + offset, from, length);
  return 0;
}

int copy_from(void* to, ibv_dm* handle, uint64_t offset, size_t length) {
  const Dm& dm = of<Dm>(handle);
  if (!may_copy(dm, offset, length)) return refuse_with(EINVAL);
  std::memcpy(to, dm.bytes.get() + offset, length);
  return 0;
}

ibv_dm* hand_out(ibv_context* context, uint32_t number, size_t length, std::shared_ptr<uint8_t[]> bytes) {
  auto* dm = new Dm;
  dm->length = length;
  dm->bytes = std::move(bytes);
  dm->verbs.context = context;
  dm->verbs.handle = number;
  dm->verbs.memcpy_to_dm = copy_to;
  dm->verbs.memcpy_from_dm = copy_from;
  return &live(dm)->verbs;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  ibv_device_attr_ex device{};
  query_device_ex(context, nullptr, &device, sizeof device);
  if (attr->comp_mask != 0 || attr->length == 0 || attr->length > device.max_dm_size) return refuse(EINVAL);
  std::unique_ptr<uint8_t[]> bytes(new (std::nothrow) uint8_t[attr->length]());
  if (bytes == nullptr) return refuse(ENOMEM);
  return hand_out(context, next_dm_number++, attr->length, std::move(bytes));
}

int free_dm(ibv_dm* handle) {
  if (const int code = check_handle<Dm>(handle); code != 0) return code;
  Dm& dm = of<Dm>(handle);
  if (dm.users > 0) return refuse_with(EBUSY);
  destroy_handle(dm);
  return 0;
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* handle, uint64_t offset, size_t length, unsigned access) {
  Dm& dm = of<Dm>(handle);
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || !fits(dm, offset, length)) return refuse(EINVAL);
  ibv_mr* mr = ibv_reg_mr_iova2(pd, dm.bytes.get() + offset, length, 0, access);
  if (mr == nullptr) return nullptr;
  of<Mr>(mr).of_dm = &dm;
  ++dm.users;
  return mr;
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

// Another handle of device memory of this process.
ibv_dm* ibv_import_dm(ibv_context* context, uint32_t number) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  const Dm* original = LiveHandles<Dm>::table().find([&](const Dm& dm) { return dm.verbs.handle == number; });
  return original == nullptr ? refuse(EINVAL) : hand_out(context, number, original->length, original->bytes);
}

// Frees only the handle.
void ibv_unimport_dm(ibv_dm* handle) {
  if (check_handle<Dm>(handle) == 0 && of<Dm>(handle).users == 0) destroy_handle(of<Dm>(handle));
}

}  // extern "C"
