// Pools of mbufs that ThreadSanitizer can see through: buffers that change threads do so under a lock, where DPDK's rings
// order them inside a library that is not instrumented.
#pragma once

namespace roci::test {

// From here on every pool of the process is made that way. After start_eal().
void use_locked_pools();

}  // namespace roci::test
