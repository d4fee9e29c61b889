#include "support/ports/locked_pool.hpp"

#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include <cerrno>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace roci::test {
namespace {

struct Stack {
  std::mutex mutex;
  std::vector<void*> objects;
};

Stack& stack_of(const rte_mempool* pool) { return *static_cast<Stack*>(pool->pool_data); }

int make_stack(rte_mempool* pool) {
  pool->pool_data = new Stack;
  return 0;
}
void free_stack(rte_mempool* pool) { delete &stack_of(pool); }

int put(rte_mempool* pool, void* const* objects, unsigned count) {
  Stack& stack = stack_of(pool);
  const std::scoped_lock guard(stack.mutex);
  stack.objects.insert(stack.objects.end(), objects, objects + count);
  return 0;
}

int take(rte_mempool* pool, void** objects, unsigned count) {
  Stack& stack = stack_of(pool);
  const std::scoped_lock guard(stack.mutex);
  if (stack.objects.size() < count) return -ENOBUFS;
  for (unsigned i = 0; i < count; ++i) {
    objects[i] = stack.objects.back();
    stack.objects.pop_back();
  }
  return 0;
}

unsigned count_of(const rte_mempool* pool) {
  Stack& stack = stack_of(pool);
  const std::scoped_lock guard(stack.mutex);
  return static_cast<unsigned>(stack.objects.size());
}

constexpr char kName[] = "roci_locked";

int register_ops() {
  rte_mempool_ops ops{};
  std::char_traits<char>::copy(ops.name, kName, sizeof kName);
  ops.alloc = make_stack;
  ops.free = free_stack;
  ops.enqueue = put;
  ops.dequeue = take;
  ops.get_count = count_of;
  return rte_mempool_register_ops(&ops);
}

}  // namespace

void use_locked_pools() {
  static const int registered = register_ops();
  if (registered < 0 || rte_mbuf_set_user_mempool_ops(kName) != 0)
    throw std::runtime_error("DPDK does not take our pool operations");
}

}  // namespace roci::test
