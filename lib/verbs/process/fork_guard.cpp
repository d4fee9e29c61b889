#include "verbs/process/fork_guard.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

namespace roci::verbs {
namespace {

std::atomic<bool> forked_child{false};
std::mutex contexts_mutex;  // held during fork(), so that it is free in the child
std::set<ibv_context*> contexts;

// Calls only write(): the child of a multithreaded program must not even allocate.
int refuse_in_child() {
  static std::atomic<bool> logged{false};
  if (!logged.exchange(true)) {
    static constexpr char kWhy[] =
        "roci: this process was forked from a process that uses the RDMA device, and cannot use the device; "
        "open devices after fork()\n";
    const auto written = write(STDERR_FILENO, kWhy, sizeof kWhy - 1);
    static_cast<void>(written);
  }
  errno = EIO;
  return EIO;
}

int no_poll(ibv_cq*, int, ibv_wc*) {
  refuse_in_child();
  return -1;
}
int no_notify(ibv_cq*, int) { return refuse_in_child(); }
int no_post_send(ibv_qp*, ibv_send_wr* list, ibv_send_wr** bad) {
  if (bad != nullptr) *bad = list;
  return refuse_in_child();
}
int no_post_recv(ibv_qp*, ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (bad != nullptr) *bad = list;
  return refuse_in_child();
}
int no_post_srq_recv(ibv_srq*, ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (bad != nullptr) *bad = list;
  return refuse_in_child();
}

void before_fork() { contexts_mutex.lock(); }
void in_parent() { contexts_mutex.unlock(); }
void in_child() {
  forked_child.store(true);
  for (ibv_context* context : contexts) {
    context->ops.poll_cq = no_poll;
    context->ops.req_notify_cq = no_notify;
    context->ops.post_send = no_post_send;
    context->ops.post_recv = no_post_recv;
    context->ops.post_srq_recv = no_post_srq_recv;
  }
  contexts_mutex.unlock();
}

}  // namespace

void guard_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(before_fork, in_parent, in_child); });
}

bool is_forked_child() { return forked_child.load(std::memory_order_relaxed); }
int refuse_child() { return is_forked_child() ? refuse_in_child() : 0; }

void note_context(ibv_context& context) {
  const std::scoped_lock guard(contexts_mutex);
  contexts.insert(&context);
}

bool is_context(ibv_context& context) {
  const std::scoped_lock guard(contexts_mutex);
  return contexts.contains(&context);
}

bool remove_context(ibv_context& context) {
  const std::scoped_lock guard(contexts_mutex);
  return contexts.erase(&context) > 0;
}

}  // namespace roci::verbs
