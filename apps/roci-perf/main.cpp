#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/os/interrupt.hpp"
#include "base/os/standard_output.hpp"
#include "roci-perf/hosts/cores.hpp"
#include "roci-perf/hosts/loopback.hpp"
#include "roci-perf/hosts/processes.hpp"

namespace {

using roci::perf::Outcome;

Outcome run(const roci::perf::Options& options, roci::perf::Report& report) {
  if (roci::Status good = roci::perf::check_cores(options.cores); !good) return {std::move(good), 2};
  if (options.loopback) {
    if (roci::Status good = roci::perf::check_loopback(options); !good) return {std::move(good), 2};
  }
  if (roci::Status opened = report.open_trace(); !opened) return {std::move(opened), 1};
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
    return roci::checked_exit_status("roci-perf", 0, 1);
  }
  // ROCI_CC, which devices read, has precedence over their configuration; the command line has precedence over both.
  if (parsed->options.congestion.profile) unsetenv("ROCI_CC");
  roci::catch_interrupts();
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed connection returns an error instead
  roci::perf::Report report(parsed->options);
  Outcome outcome = run(parsed->options, report);
  if (outcome.status) {
    outcome.status = report.written_files();
    if (!outcome.status) outcome.exit_code = 1;
  } else if (const roci::Status written = report.written_files(); !written) {
    std::fprintf(stderr, "roci-perf: %s\n", written.error().message.c_str());
  }
  if (!outcome.status) {
    std::fprintf(stderr, "roci-perf: %s\n", outcome.status.error().message.c_str());
    report.failure(outcome.status.error());
  }
  return roci::checked_exit_status("roci-perf", outcome.exit_code, 1);
}
