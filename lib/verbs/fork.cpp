// Applications that fork. Nothing has to be done for them: no device writes into pages behind the processor's back, so the
// kernel may copy them on write as it does for any process. The child must not use what the parent opened.
#include <infiniband/verbs.h>

#include <cstddef>

int ibv_fork_init() { return 0; }

ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

// No public header declares these two.
extern "C" int ibv_dontfork_range(void* /*base*/, size_t /*size*/) { return 0; }
extern "C" int ibv_dofork_range(void* /*base*/, size_t /*size*/) { return 0; }
