// Fuzz target: host_fuzz with XRC queue pairs, their domains and shared receive queues. Most packets have opcodes of XRC.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  roci::test::run_host_program({data, size}, roci::test::LiveKind::kXrc);
  return 0;
}
