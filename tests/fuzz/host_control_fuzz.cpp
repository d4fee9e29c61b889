// Fuzz target: host_fuzz with congestion control. The input selects the algorithms of the queue pairs and their
// parameters. Congestion feedback is close to valid values, so that the host accepts some of it.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  roci::test::run_host_program({data, size}, roci::test::LiveKind::kControlled);
  return 0;
}
