// Mbuf pools for ThreadSanitizer. Buffers change threads under a lock, because DPDK's ring library is not
// instrumented.
#pragma once

namespace roci::test {

// All pools that the process creates after this call use the lock. Call after start_eal().
void use_locked_pools();

}  // namespace roci::test
