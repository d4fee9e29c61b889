// Fuzz target: a program for one host (host_program.hpp): packets of peers derived from the state of a queue pair,
// application calls, and passing time. LiveHost verifies the invariants after each step.
#include "fuzz/live_host.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  roci::test::run_host_program({data, size}, roci::test::LiveKind::kServices);
  return 0;
}
