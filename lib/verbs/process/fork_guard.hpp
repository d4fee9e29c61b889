// Protection against use of the device in a child of fork(). The child has no DPDK threads and no port of its own,
// while the parent continues to use both. The child's calls fail with EIO; the first call prints the reason.
#pragma once

#include <infiniband/verbs.h>

namespace roci::verbs {

// Registers the fork handlers, once per process.
void guard_forks();

// Whether this process was forked from one that uses the device: the device cannot be used here.
bool is_forked_child();
// Called first by control calls. Returns 0, or EIO in such a child and sets errno; the first call prints a message to standard error.
int refuse_child();

// Registers contexts whose calls must fail in a forked child.
void note_context(ibv_context& context);
[[nodiscard]] bool is_context(ibv_context& context);
// False for a context that is not registered (any more).
bool remove_context(ibv_context& context);

}  // namespace roci::verbs
