// Address handles.
#include <infiniband/verbs.h>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/process/fork_guard.hpp"

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  auto address = of<Pd>(pd).domain->create_address_handle(*attr);
  if (!address) return refuse(address.error());
  ibv_ah* handle = (*address)->handle();
  handle->context = pd->context;
  handle->pd = pd;
  ++of<Pd>(pd).users;
  Context& context = Context::of(pd->context);
  const std::scoped_lock guard(context.mutex);
  context.addresses.emplace(handle, std::move(*address));
  return handle;
}

int ibv_destroy_ah(ibv_ah* handle) {
  if (const int code = refuse_child(); code != 0) return code;
  Context& context = Context::of(handle->context);
  --of<Pd>(handle->pd).users;
  std::unique_ptr<AddressHandle> address;
  const std::scoped_lock guard(context.mutex);
  const auto found = context.addresses.find(handle);
  if (found == context.addresses.end()) return EINVAL;
  address = std::move(found->second);
  context.addresses.erase(found);
  return 0;
}

}  // extern "C"
