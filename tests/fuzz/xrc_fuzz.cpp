// Fuzz target: host_fuzz with XRC queue pairs, their domains and shared receive queues. Most packets have opcodes of XRC.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace roci::test;
  const HostProgram program = HostProgram::read({data, size});
  LiveHost host(program.setup, LiveKind::kXrc);
  for (const Step& step : program.steps) host.step(step);
  host.finish();
  return 0;
}
