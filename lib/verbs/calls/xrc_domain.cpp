// XRC domains. The file by which processes could share a domain is validated, but not used: each process has its own
// device, and therefore its own domains.
#include <infiniband/verbs.h>
#include <sys/stat.h>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  constexpr uint32_t kBoth = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (attr->comp_mask != kBoth) return refuse(EINVAL);
  struct stat status {};
  if (attr->fd != -1 && fstat(attr->fd, &status) != 0) return refuse(EBADF);
  auto domain = Context::of(context).device->open_xrc_domain();
  if (!domain) return refuse(domain.error());
  auto* xrcd = new Xrcd;
  xrcd->verbs.context = context;
  xrcd->domain = std::move(*domain);
  return &live(xrcd)->verbs;
}

int close_xrcd(ibv_xrcd* handle) {
  if (const int code = check_handle<Xrcd>(handle); code != 0) return code;
  Xrcd& xrcd = of<Xrcd>(handle);
  if (const int code = code_of(destroy(xrcd.domain)); code != 0) return code;
  destroy_handle(xrcd);
  return 0;
}

}  // namespace roci::verbs
