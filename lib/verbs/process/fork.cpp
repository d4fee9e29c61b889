// Applications that fork. No action is needed: no device writes to memory by DMA, so the kernel's copy-on-write is
// safe. The child must not use objects that the parent has opened.
#include <infiniband/verbs.h>

#include <cstddef>

int ibv_fork_init() { return 0; }

ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

// No public header declares these two.
extern "C" int ibv_dontfork_range(void* /*base*/, size_t /*size*/) { return 0; }
extern "C" int ibv_dofork_range(void* /*base*/, size_t /*size*/) { return 0; }
