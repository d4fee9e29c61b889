// roci-switch: a software switch between DPDK ports, from a configuration file.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "port/ethdev_port.hpp"
#include "roci-switch/report.hpp"
#include "roci-switch/switch_file.hpp"

namespace roci {
namespace {

struct Options {
  std::string config;
  bool check = false;
  Nanos duration = kNever;
  Nanos stats = kNever;
  std::string ready_file;
};

// Exists while the switch is ready; holds its process id.
class ReadyFile {
 public:
  ReadyFile() = default;
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;
  ~ReadyFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  Status write(const std::string& path) {
    // Whoever waits for the file must not see it half written.
    const std::string draft = path + ".tmp";
    std::ofstream{draft} << getpid() << '\n';
    std::error_code error;
    std::filesystem::rename(draft, path, error);
    if (error)
      return fail("the ready file '" + path + "' cannot be written: " + error.message(), error.value());
    path_ = path;
    return {};
  }

 private:
  std::string path_;
};

// Buffers for full queues and rings of every port, and some in hand for answers and batches.
Result<std::shared_ptr<MbufPool>> make_pool(const SwitchFile& file) {
  constexpr uint32_t kSpare = 2048;
  uint32_t count = kSpare;
  uint16_t room = 2048;
  for (size_t i = 0; i < file.devices.size(); ++i) {
    const EthdevConfig& device = file.devices[i];
    count += file.sw.ports[i].queue_frames + device.rx_descriptors + device.tx_descriptors;
    room = std::max(room, EthdevPort::data_room_for(device.device, device.mtu));
  }
  auto pool = MbufPool::create(file.sw.name, count, room);
  if (!pool) {
    return fail(pool.error().message + " (" + std::to_string(count) + " buffers of " + std::to_string(room) +
                    " bytes are needed: raise eal.memory, or lower the ports' queue_frames and descriptors)",
                pool.error().code);
  }
  return pool;
}

// SIGINT and SIGTERM are blocked in every thread and waited for by this one. Prints a table every `stats`.
void serve(const Options& options, const sigset_t& signals, SwitchReport& report) {
  const Nanos begin = monotonic_now();
  const Nanos end = options.duration == kNever ? kNever : begin + options.duration;
  report.start(begin);
  Nanos next_report = options.stats == kNever ? kNever : begin + options.stats;
  for (;;) {
    const Nanos now = monotonic_now();
    if (now >= end) return;
    if (now >= next_report) {
      report.print(stdout, now);
      next_report += options.stats;
      continue;
    }
    const Nanos wait = std::min({end, next_report, now + Nanos{1h}}) - now;
    const timespec span{static_cast<time_t>(wait.count() / 1'000'000'000),
                        static_cast<long>(wait.count() % 1'000'000'000)};
    if (sigtimedwait(&signals, nullptr, &span) > 0) return;
  }
}

Status run(const Options& options) {
  auto file = read_switch_file(options.config);
  if (!file) return fail(file.error());
  if (options.check) {
    std::printf("%s: switch '%s' with %zu ports: correct\n", options.config.c_str(), file->sw.name.c_str(),
                file->sw.ports.size());
    return {};
  }

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread is made, so all inherit it

  ROCI_TRY(start_eal(file->eal));
  auto pool = make_pool(*file);
  if (!pool) return fail(pool.error());
  std::vector<std::unique_ptr<EthdevPort>> ports;
  std::vector<Port*> ends;
  for (size_t i = 0; i < file->devices.size(); ++i) {
    EthdevConfig& device = file->devices[i];
    device.pool = *pool;
    auto port = EthdevPort::open(device);
    if (!port) return fail(port.error().within(options.config + ": port '" + file->sw.ports[i].name + "'"));
    ends.push_back(ports.emplace_back(std::move(*port)).get());
  }
  auto sw = Switch::create(file->sw, ends, *pool);
  if (!sw) return fail(sw.error().within(options.config));

  RealtimeRunner runner{
      {{.name = "roci-switch", .pollers = {sw->get()}, .core = file->core, .idle = file->idle}}};
  ROCI_TRY(runner.start());
  ReadyFile ready;
  if (!options.ready_file.empty()) ROCI_TRY(ready.write(options.ready_file));
  std::printf("roci-switch: '%s' is ready: %zu ports\n", file->sw.name.c_str(), ports.size());
  std::fflush(stdout);

  SwitchReport report{**sw};
  serve(options, signals, report);
  runner.stop();
  report.print_total(stdout, monotonic_now());
  return {};
}

// Seconds, or a time with its unit.
Result<Nanos> parse_span(const std::string& text) {
  constexpr double kMostSeconds = 1e9;
  if (const auto seconds = parse_number(text, 0, kMostSeconds))
    return Nanos{static_cast<int64_t>(*seconds * 1e9)};
  return parse_duration(text);
}

// For CLI11, which takes an error text or nothing.
CLI::Validator is_positive_span() {
  return CLI::Validator{[](const std::string& text) {
                          const auto span = parse_span(text);
                          if (!span) return span.error().message;
                          return *span > Nanos{0} ? std::string{}
                                                  : "'" + text + "' is not longer than nothing";
                        },
                        "SECONDS"};
}

int main_(int argc, char** argv) {
  CLI::App app{
      "A software switch between DPDK ports: learning bridge with VLANs, static routing, bounded queues."};
  Options options;
  std::string duration, stats;
  app.add_option("--config", options.config, "configuration file (YAML)")->required()->type_name("FILE");
  app.add_flag("--check", options.check, "only say whether the configuration file is correct");
  app.add_option("--duration", duration, "stop after so many seconds, or after 5min")
      ->check(is_positive_span());
  app.add_option("--stats", stats, "print a table of the ports every so many seconds, or every 500ms")
      ->check(is_positive_span());
  app.add_option("--ready-file", options.ready_file, "make this file when all ports are open")
      ->type_name("PATH");
  app.footer("Stops at SIGINT and SIGTERM and prints the counters.");
  CLI11_PARSE(app, argc, argv);
  if (!duration.empty()) options.duration = *parse_span(duration);
  if (!stats.empty()) options.stats = *parse_span(stats);

  if (const Status status = run(options); !status) {
    std::fprintf(stderr, "roci-switch: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace roci

int main(int argc, char** argv) { return roci::main_(argc, argv); }
