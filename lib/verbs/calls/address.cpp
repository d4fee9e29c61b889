// Address handles.
#include <infiniband/verbs.h>

#include <mutex>
#include <unordered_map>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

struct Addresses {
  std::mutex mutex;  // protects the following field
  std::unordered_map<ibv_ah*, std::unique_ptr<AddressHandle>> all;
};

// Never destroyed: programs destroy handles while they exit.
Addresses& addresses() {
  static auto* const addresses = new Addresses;
  return *addresses;
}

}  // namespace

void destroy_addresses(const ibv_context& context) {
  const std::scoped_lock guard(addresses().mutex);
  std::erase_if(addresses().all, [&](const auto& entry) { return entry.first->context == &context; });
}

}  // namespace roci::verbs

using namespace roci;         // NOLINT(google-build-using-namespace): functions of the C ABI
using namespace roci::verbs;  // NOLINT(google-build-using-namespace)

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (const int code = check_handle<Pd>(pd); code != 0) return refuse(code);
  auto address = of<Pd>(pd).domain->create_address_handle(*attr);
  if (!address) return refuse(address.error());
  ibv_ah* handle = (*address)->handle();
  handle->context = pd->context;
  handle->pd = pd;
  ++of<Pd>(pd).users;
  const std::scoped_lock guard(addresses().mutex);
  addresses().all.emplace(handle, std::move(*address));
  return handle;
}

int ibv_destroy_ah(ibv_ah* handle) {
  if (const int code = refuse_child(); code != 0) return code;
  std::unique_ptr<AddressHandle> address;
  const std::scoped_lock guard(addresses().mutex);
  const auto found = addresses().all.find(handle);
  // A number that the program has overwritten is refused, as for other handles. Address handles have the number 0.
  if (found == addresses().all.end() || handle->handle != 0) return refuse_with(ENOENT);
  --of<Pd>(handle->pd).users;
  address = std::move(found->second);
  addresses().all.erase(found);
  return 0;
}

}  // extern "C"
