// Protection domains, thread domains, and parent domains, which
// are protection domains with hints that this library ignores.
#include <infiniband/verbs.h>

#include <atomic>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

std::atomic<uint32_t> next_pd_number{0};

}  // namespace

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) return refuse(EINVAL);
  auto* td = new Td;
  td->verbs.context = context;
  return &live(td)->verbs;
}

int dealloc_td(ibv_td* handle) {
  if (const int code = check_handle<Td>(handle); code != 0) return code;
  Td& td = of<Td>(handle);
  if (td.users > 0) return refuse_with(EBUSY);
  destroy_handle(td);
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  constexpr uint32_t kAllocators =
      IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (attr->pd == nullptr || (attr->comp_mask & ~kAllocators) != 0) return refuse(EINVAL);
  Pd& base = of<Pd>(attr->pd);
  auto* pd = new Pd;
  pd->verbs.context = context;
  pd->verbs.handle = base.verbs.handle;
  pd->domain = base.domain;
  pd->made_from = &base;
  ++base.users;
  if (attr->td != nullptr) {
    pd->thread_domain = &of<Td>(attr->td);
    ++pd->thread_domain->users;
  }
  return &live(pd)->verbs;
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  auto domain = Context::of(context).device->allocate_pd();
  if (!domain) return refuse(domain.error());
  auto* pd = new Pd;
  pd->verbs.context = context;
  pd->verbs.handle = next_pd_number++;
  pd->domain = std::move(*domain);
  return &live(pd)->verbs;
}

int ibv_dealloc_pd(ibv_pd* handle) {
  if (const int code = check_handle<Pd>(handle); code != 0) return code;
  Pd& pd = of<Pd>(handle);
  if (pd.users > 0) return refuse_with(EBUSY);
  if (pd.made_from != nullptr) --pd.made_from->users;
  if (pd.thread_domain != nullptr) --pd.thread_domain->users;
  destroy_handle(pd);
  return 0;
}

// Another handle of a protection domain of this process.
ibv_pd* ibv_import_pd(ibv_context* context, uint32_t number) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  const Pd* original = LiveHandles<Pd>::table().find([&](const Pd& pd) { return pd.verbs.handle == number; });
  if (original == nullptr) return refuse(EINVAL);
  auto* pd = new Pd;
  pd->verbs.context = context;
  pd->verbs.handle = number;
  pd->domain = original->domain;
  return &live(pd)->verbs;
}

// Frees only the handle.
void ibv_unimport_pd(ibv_pd* handle) {
  if (check_handle<Pd>(handle) == 0 && of<Pd>(handle).users == 0) destroy_handle(of<Pd>(handle));
}

}  // extern "C"
