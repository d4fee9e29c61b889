// Flow rules of raw packet queue pairs.
#include <infiniband/verbs.h>

#include <atomic>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/live_handles.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {

ibv_flow* create_flow(ibv_qp* handle, ibv_flow_attr* attr) {
  if (const int code = refuse_child(); code != 0) return refuse(code);
  if (const int code = check_handle<Qp>(handle); code != 0) return refuse(code);
  static std::atomic<uint32_t> next{1};
  Qp& qp = of<Qp>(handle);
  auto rule = qp.queue_pair->create_flow(*attr, qp.rss.get());
  if (!rule) return refuse(rule.error());
  auto* flow = new Flow;
  flow->verbs.context = handle->context;
  flow->verbs.handle = next.fetch_add(1, std::memory_order_relaxed);
  flow->rule = std::move(*rule);
  flow->qp = &qp;
  ++qp.flows;
  return &live(flow)->verbs;
}

int destroy_flow(ibv_flow* handle) {
  if (const int code = check_handle<Flow>(handle); code != 0) return code;
  Flow& flow = of<Flow>(handle);
  flow.rule.reset();
  --flow.qp->flows;
  destroy_handle(flow);
  return 0;
}

}  // namespace roci::verbs
