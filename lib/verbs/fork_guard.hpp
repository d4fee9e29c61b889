// A child of fork() has no threads of DPDK and no port of its own, and its parent goes on with both. So the child's calls fail
// with EIO; the first says why.
#pragma once

#include <infiniband/verbs.h>

namespace roci::verbs {

// From now on forks are watched; once a process.
void guard_forks();

// Whether this process was forked from one that uses the device: nothing of it works here.
bool is_forked_child();
// 0, or in such a child EIO, after a sentence on standard error at the first call: what control calls begin with.
int refuse_child();

// Contexts whose calls a forked child must not make.
void note_context(ibv_context& context);
void forget_context(ibv_context& context);

}  // namespace roci::verbs
