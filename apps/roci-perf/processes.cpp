#include "roci-perf/processes.hpp"
namespace roci::perf {
Result<HostConfig> read_host_config(const std::string&) { return fail("stub"); }
Outcome run_on_port(const Options&, const HostConfig&, Report&) { return {}; }
}  // namespace roci::perf
