// Fuzz target: host_fuzz with congestion control. The input selects the algorithms of the queue pairs and their
// parameters. Congestion feedback is close to valid values, so that the host accepts some of it.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace roci::test;
  const HostProgram program = HostProgram::read({data, size});
  LiveHost host(program.setup, LiveKind::kControlled);
  for (const Step& step : program.steps) host.step(step);
  host.finish();
  return 0;
}
