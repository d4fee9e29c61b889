// Memory regions and windows.
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <span>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace roci::verbs {
namespace {

ibv_mr* hand_out(ibv_pd* handle, Result<std::unique_ptr<MemoryRegion>> region) {
  if (!region) return refuse(region.error());
  auto* mr = new Mr;
  mr->region = std::move(*region);
  mr->verbs = *mr->region->verbs();
  mr->verbs.context = handle->context;
  mr->verbs.pd = handle;
  mr->verbs.handle = mr->verbs.lkey;
  ++of<Pd>(handle).users;
  return &live(mr)->verbs;
}

// Finds the memory of a scatter element of ibv_advise_mr(). Returns 0 or an errno.
int locate(const Pd& pd, const ibv_sge& sge, bool writes, uint8_t*& first) {
  std::shared_ptr<MemoryRegion> region;
  bool of_domain = false;
  const Mr* const found = LiveHandles<Mr>::table().find([&](const Mr& mr) {
    if (mr.verbs.lkey != sge.lkey || mr.region->rkey() == 0) return false;  // a null region has no pages
    region = mr.region;
    of_domain = of<Pd>(mr.verbs.pd).domain == pd.domain;
    return true;
  });
  if (found == nullptr) return ENOENT;
  if (!of_domain || (writes && (region->access() & IBV_ACCESS_LOCAL_WRITE) == 0)) return EPERM;
  const uint64_t offset = sge.addr - region->iova();
  if (sge.addr < region->iova() || offset > region->length() || sge.length > region->length() - offset)
    return EFAULT;
  first = static_cast<uint8_t*>(region->address()) + offset;
  return 0;
}

// Kernels before 5.14 fault in only the pages of files.
bool fault_in(uint8_t* first, uint64_t length, bool writes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto before = reinterpret_cast<uint64_t>(first) % page;
  void* const start = first - before;
  if (madvise(start, before + length, writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) return true;
  return errno == EINVAL && madvise(start, before + length, MADV_WILLNEED) == 0;
}

}  // namespace

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  if (const int code = check_handle<Pd>(pd); code != 0) return refuse(code);
  return hand_out(pd, of<Pd>(pd).domain->allocate_null_region());
}

ibv_mw* alloc_mw(ibv_pd* handle, ibv_mw_type type) {
  if (const int code = check_handle<Pd>(handle); code != 0) return refuse(code);
  Pd& pd = of<Pd>(handle);
  auto window = pd.domain->allocate_window(type);
  if (!window) return refuse(window.error());
  auto* mw = new Mw;
  mw->window = std::move(*window);
  mw->verbs = *mw->window->verbs();
  mw->verbs.context = handle->context;
  mw->verbs.pd = handle;
  ++pd.users;
  return &live(mw)->verbs;
}

int dealloc_mw(ibv_mw* handle) {
  if (const int code = check_handle<Mw>(handle); code != 0) return code;
  Mw& mw = of<Mw>(handle);
  --of<Pd>(mw.verbs.pd).users;
  destroy_handle(mw);
  return 0;
}

int bind_mw(ibv_qp* qp, ibv_mw* handle, ibv_mw_bind* bind) {
  if (const int code = refuse_child(); code != 0) return code;
  Mw& mw = of<Mw>(handle);
  const int code = of<Qp>(qp).queue_pair->bind_window(*mw.window, *bind);
  if (code == 0) mw.verbs.rkey = mw.window->rkey();
  return code;
}

// Pages are faulted in on access. The advice only faults them in earlier.
int advise_mr(ibv_pd* handle, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list, uint32_t count) {
  if (const int code = check_handle<Pd>(handle); code != 0) return code;
  if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
      advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
    return refuse_with(EOPNOTSUPP);
  if ((flags & ~uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0 || count == 0 || list == nullptr)
    return refuse_with(EINVAL);
  const bool writes = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  for (const ibv_sge& sge : std::span(list, count)) {
    uint8_t* first = nullptr;
    if (const int code = locate(of<Pd>(handle), sge, writes, first); code != 0) return refuse_with(code);
    if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) continue;
    // Without the flag, the device executes the advice later, and reports no errors.
    if (!fault_in(first, sge.length, writes) && (flags & IBV_ADVISE_MR_FLAG_FLUSH) != 0)
      return refuse_with(EFAULT);
  }
  return 0;
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  if (const int code = check_handle<Pd>(pd); code != 0) return refuse(code);
  return hand_out(pd, of<Pd>(pd).domain->register_memory(address, length, access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned access) {
  if (const int code = check_handle<Pd>(pd); code != 0) return refuse(code);
  // In headers, ibv_reg_mr() can be a call of this function with the memory's address, which such a region does not use.
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) iova = 0;
  return hand_out(pd, of<Pd>(pd).domain->register_memory(address, length, iova, static_cast<int>(access)));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return ibv_reg_mr_iova2(pd, address, length, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) { return refuse(EOPNOTSUPP); }

int ibv_rereg_mr(ibv_mr* handle, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  if (check_handle<Mr>(handle) != 0) return IBV_REREG_MR_ERR_INPUT;
  Mr& mr = of<Mr>(handle);
  // Arguments that rdma-core's library itself refuses are input errors, those that a device refuses are command errors. The
  // region stays valid in both cases.
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 ||
      ((flags & IBV_REREG_MR_CHANGE_PD) != 0 && pd == nullptr) ||
      ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (address == nullptr || length == 0))) {
    errno = EINVAL;
    return IBV_REREG_MR_ERR_INPUT;
  }
  const ProtectionDomain* domain = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? of<Pd>(pd).domain.get() : nullptr;
  if (Status done = mr.region->reregister(flags, domain, address, length, access); !done) {
    code_of(done);  // sets errno
    return IBV_REREG_MR_ERR_CMD;
  }
  if (domain != nullptr) {
    ++of<Pd>(pd).users;
    --of<Pd>(mr.verbs.pd).users;
    mr.verbs.pd = pd;
  }
  mr.verbs.addr = mr.region->address();
  mr.verbs.length = mr.region->length();
  return 0;
}

int ibv_dereg_mr(ibv_mr* handle) {
  if (const int code = check_handle<Mr>(handle); code != 0) return code;
  Mr& mr = of<Mr>(handle);
  if (const int code = code_of(mr.region->deregister()); code != 0) return code;
  --of<Pd>(mr.verbs.pd).users;
  if (mr.of_dm != nullptr) --mr.of_dm->users;
  destroy_handle(mr);
  return 0;
}

// Another handle of a memory region of this process. As documented, its address is null.
ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t number) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  const Mr* original = LiveHandles<Mr>::table().find([&](const Mr& mr) { return mr.verbs.handle == number; });
  if (original == nullptr) return refuse(EINVAL);
  auto* mr = new Mr;
  mr->region = original->region;
  mr->verbs = original->verbs;
  mr->verbs.context = pd->context;
  mr->verbs.pd = pd;
  mr->verbs.addr = nullptr;
  ++of<Pd>(pd).users;
  return &live(mr)->verbs;
}

// Frees only the handle.
void ibv_unimport_mr(ibv_mr* handle) {
  if (check_handle<Mr>(handle) != 0) return;
  --of<Pd>(handle->pd).users;
  destroy_handle(of<Mr>(handle));
}

}  // extern "C"
