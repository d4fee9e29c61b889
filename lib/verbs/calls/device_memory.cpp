// Device memory. It is host memory, because the device is software.
#include <infiniband/verbs.h>

#include <cstring>
#include <new>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/process/process_device.hpp"

namespace roci::verbs {
namespace {

bool fits(const Dm& dm, uint64_t offset, size_t length) {
  return offset <= dm.length && length <= dm.length - offset;
}

int copy_to(ibv_dm* handle, uint64_t offset, const void* from, size_t length) {
  Dm& dm = of<Dm>(handle);
  if (!fits(dm, offset, length)) return EINVAL;
  std::memcpy(dm.bytes.get() + offset, from, length);
  return 0;
}

int copy_from(void* to, ibv_dm* handle, uint64_t offset, size_t length) {
  const Dm& dm = of<Dm>(handle);
  if (!fits(dm, offset, length)) return EINVAL;
  std::memcpy(to, dm.bytes.get() + offset, length);
  return 0;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  ibv_device_attr_ex device{};
  query_device_ex(context, nullptr, &device, sizeof device);
  if (attr->comp_mask != 0 || attr->length == 0 || attr->length > device.max_dm_size) return refuse(EINVAL);
  std::unique_ptr<uint8_t[]> bytes(new (std::nothrow) uint8_t[attr->length]());
  if (bytes == nullptr) return refuse(ENOMEM);
  auto* dm = new Dm;
  dm->length = attr->length;
  dm->bytes = std::move(bytes);
  dm->verbs.context = context;
  dm->verbs.memcpy_to_dm = copy_to;
  dm->verbs.memcpy_from_dm = copy_from;
  return &dm->verbs;
}

int free_dm(ibv_dm* handle) {
  Dm& dm = of<Dm>(handle);
  if (dm.users > 0) return EBUSY;
  delete &dm;
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

extern "C" {

ibv_dm* ibv_import_dm(ibv_context*, uint32_t) { return roci::verbs::refuse(EOPNOTSUPP); }
void ibv_unimport_dm(ibv_dm*) {}

}  // extern "C"
