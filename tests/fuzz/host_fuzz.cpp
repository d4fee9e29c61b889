// Fuzz target: a program for one host (host_program.hpp): packets of peers derived from the state of a queue pair,
// application calls, and passing time. LiveHost verifies the invariants after each step.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace roci::test;
  const HostProgram program = HostProgram::read({data, size});
  LiveHost host(program.setup);
  for (const Step& step : program.steps) host.step(step);
  host.finish();
  return 0;
}
