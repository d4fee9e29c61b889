// ibv_start_poll and related calls: completions are polled one at a time and read field by field. Between
// ibv_start_poll and ibv_end_poll the caller has exclusive access to the queue.
#include <infiniband/verbs.h>

#include <cstdlib>
#include <ctime>

#include "verbs/calls/calls.hpp"
#include "verbs/error.hpp"
#include "verbs/process/fork_guard.hpp"

namespace roci::verbs {
namespace {

Cq& queue_of(ibv_cq_ex* cq) { return of<Cq>(cq); }
const ibv_wc& current(ibv_cq_ex* cq) { return of<Cq>(cq).current; }

int take_next(Cq& cq) {
  const int got = cq.queue->poll(1, &cq.current, &cq.current_stamp);
  if (got <= 0) return got < 0 ? EIO : ENOENT;
  cq.verbs.wr_id = cq.current.wr_id;
  cq.verbs.status = cq.current.status;
  return 0;
}

int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  if (const int code = refuse_child(); code != 0) return code;
  Cq& cq = queue_of(handle);
  cq.polled_one_by_one.store(true, std::memory_order_relaxed);
  cq.polling.lock();
  const int code = take_next(cq);
  if (code != 0) cq.polling.unlock();
  return code;
}
int next_poll(ibv_cq_ex* cq) { return take_next(queue_of(cq)); }
void end_poll(ibv_cq_ex* cq) { queue_of(cq).polling.unlock(); }

int64_t nanos(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The difference of the clocks changes only when the time is set. A new measurement that differs by less than its error
// is not used, so that the times of completions do not decrease.
uint64_t wallclock(ibv_cq_ex* handle) {
  constexpr int64_t kLeastChange = 1'000;
  Cq& cq = queue_of(handle);
  const int64_t before = nanos(CLOCK_MONOTONIC);
  const int64_t realtime = nanos(CLOCK_REALTIME);
  const int64_t error = nanos(CLOCK_MONOTONIC) - before;
  const int64_t ahead = realtime - before - error / 2;
  if (std::abs(ahead - cq.realtime_ahead) > error + kLeastChange) cq.realtime_ahead = ahead;
  return cq.current_stamp + static_cast<uint64_t>(cq.realtime_ahead);
}

}  // namespace

void fill_polling(Cq& cq) {
  ibv_cq_ex& verbs = cq.verbs;
  verbs.start_poll = start_poll;
  verbs.next_poll = next_poll;
  verbs.end_poll = end_poll;
  verbs.read_opcode = [](ibv_cq_ex* from) { return current(from).opcode; };
  verbs.read_vendor_err = [](ibv_cq_ex* from) { return current(from).vendor_err; };
  verbs.read_byte_len = [](ibv_cq_ex* from) { return current(from).byte_len; };
  verbs.read_imm_data = [](ibv_cq_ex* from) { return current(from).imm_data; };
  verbs.read_qp_num = [](ibv_cq_ex* from) { return current(from).qp_num; };
  verbs.read_src_qp = [](ibv_cq_ex* from) { return current(from).src_qp; };
  verbs.read_wc_flags = [](ibv_cq_ex* from) { return current(from).wc_flags; };
  verbs.read_slid = [](ibv_cq_ex* from) { return uint32_t{current(from).slid}; };
  verbs.read_sl = [](ibv_cq_ex* from) { return current(from).sl; };
  verbs.read_dlid_path_bits = [](ibv_cq_ex* from) { return current(from).dlid_path_bits; };
  verbs.read_completion_ts = [](ibv_cq_ex* from) { return queue_of(from).current_stamp; };
  verbs.read_completion_wallclock_ns = wallclock;
}

}  // namespace roci::verbs
