// Bytes become a life of a host (host_program.hpp): packets of its peers that are aimed at the state it is in, what its
// application does meanwhile, and time. LiveHost checks after each step what must hold whatever comes.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace roci::test;
  const HostProgram program = HostProgram::read({data, size});
  LiveHost host(program.setup);
  for (const Step& step : program.steps) host.step(step);
  host.finish();
  return 0;
}
