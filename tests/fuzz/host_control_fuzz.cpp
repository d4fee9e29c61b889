// host_fuzz with congestion control: the inputs say which algorithms the queue pairs have and what these are given to go by,
// and what peers say of congestion is aimed at what the host would believe.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace roci::test;
  const HostProgram program = HostProgram::read({data, size});
  LiveHost host(program.setup, true);
  for (const Step& step : program.steps) host.step(step);
  host.finish();
  return 0;
}
