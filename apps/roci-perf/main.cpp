#include <csignal>
#include <cstdio>

#include "base/os/interrupt.hpp"
#include "roci-perf/hosts/loopback.hpp"
#include "roci-perf/hosts/processes.hpp"

namespace {

using roci::perf::Outcome;

Outcome run(const roci::perf::Options& options, roci::perf::Report& report) {
  if (options.loopback) {
    roci::Status status = run_loopback(options, report);
    const int exit_code = status ? 0 : status.error().code == EINTR ? 130 : 1;
    return {std::move(status), exit_code};
  }
  auto config = options.config_file.empty() ? roci::perf::take_slot(options.net_folder)
                                            : roci::perf::read_host_config(options.config_file);
  if (!config) return {roci::fail(config.error()), 2};
  return run_on_port(options, *config, report);
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = roci::perf::parse_options(argc, argv);
  if (!parsed) {
    std::fprintf(stderr, "roci-perf: %s\n", parsed.error().message.c_str());
    return 2;
  }
  if (!parsed->text.empty()) {
    std::fputs(parsed->text.c_str(), stdout);
    return 0;
  }
  roci::catch_interrupts();
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed connection returns an error instead
  roci::perf::Report report(parsed->options);
  const Outcome outcome = run(parsed->options, report);
  if (!outcome.status) {
    std::fprintf(stderr, "roci-perf: %s\n", outcome.status.error().message.c_str());
    report.failure(outcome.status.error());
  }
  return outcome.exit_code;
}
