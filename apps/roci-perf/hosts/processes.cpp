#include "roci-perf/hosts/processes.hpp"

#include "base/log.hpp"
#include "device/api/create_device.hpp"
#include "device/config/start_device.hpp"
#include "device/monitoring/device_endpoints.hpp"
#include "net/stats_file.hpp"
#include "roci-perf/connection/control.hpp"
#include "roci-perf/hosts/capture_tap.hpp"
#include "roci-perf/hosts/cores.hpp"
#include "roci-perf/hosts/watchdog.hpp"
#include "roci-perf/measurement/session.hpp"
#include "roci-perf/options/device_options.hpp"

namespace roci::perf {
namespace {

constexpr int kFailed = 1, kMisconfigured = 2;

Outcome outcome(Status status, int exit_code) {
  if (status) return {};
  const bool stopped = status.error().code == EINTR;
  return {std::move(status), stopped ? 130 : exit_code};  // 130: exit status of shells for Ctrl-C
}

Result<std::unique_ptr<Port>> open_port(const Options& options, const HostConfig& config,
                                        const EthdevConfig& port_config) {
  if (config.slot != nullptr) return config.slot->open_port(config.eal);
  const Nanos timeout = from_seconds(options.host_timeout);
  auto port = start_port(config.eal, port_config, config.host.device.name, timeout);
  if (!port) return fail(port.error());
  return std::unique_ptr<Port>{std::move(*port)};
}

Result<std::unique_ptr<Device>> open_device(const Options& options, const HostConfig& config,
                                            Report& report) {
  EthdevConfig port_config = config.host.port;
  if (!options.capture_file.empty()) port_config.queues = 1;  // a capture has one sequence of frames
  auto port = open_port(options, config, port_config);
  if (!port) return fail(port.error());
  auto tapped = with_capture(std::move(*port), options, report.capture_saved());
  if (!tapped) return fail(tapped.error());
  DeviceConfig device = config.host.device;
  apply_device_options(options, device);
  if (options.given.contains("seed")) device.seed = options.test.seed;
  return create_device(std::move(*tapped), device);
}

// "[::1]:18515"
std::string address_and_port(const Options& options) {
  const bool v6 = options.bind.find(':') != std::string::npos;
  return (v6 ? "[" + options.bind + "]" : options.bind) + ":" + std::to_string(options.tcp_port);
}

Result<std::unique_ptr<Channel>> wait_for_client(const Options& options, Report& report) {
  auto listener = Listener::open(options.bind, options.tcp_port);
  if (!listener) return fail(listener.error());
  const bool local = options.bind == "127.0.0.1" || options.bind == "::1";
  report.note("waiting for a client on " + address_and_port(options) +
              (local ? " (this machine only; --bind 0.0.0.0 for other machines)" : ""));
  return listener->accept(options.given.contains("host-timeout") ? from_seconds(options.host_timeout)
                                                                 : kNever);
}

// Runs the test in the role that the command line specifies.
Status exchange(const Options& options, Device& device, const std::string& path, Report& report) {
  const WaitLimits limits = limits_for(options.qp_timeout, options.retry_count);
  std::unique_ptr<Channel> channel;
  if (options.peers.empty()) {
    auto opened = options.is_server()
                      ? wait_for_client(options, report)
                      : connect_to(options.host, options.tcp_port, from_seconds(options.host_timeout));
    if (!opened) return fail(opened.error());
    channel = std::move(*opened);
  }
  const char* other = !options.peers.empty() ? "the peer" : options.is_server() ? "the client" : "the server";
  Control control(device, std::move(channel), other, limits);
  const Watchdog watchdog(control.heartbeat(),
                          limits.stall + from_seconds(options.host_timeout) + Watchdog::kMargin);
  if (!options.peers.empty()) return run_with_peers(control, device, options, path, report);
  if (options.is_server()) return run_server(control, device, options, path, &report);
  return run_client(control, device, options, path, report);
}

}  // namespace

Result<HostConfig> take_slot(const std::string& folder) {
  auto slot = NetSlot::take(folder);
  if (!slot) return fail(slot.error());
  HostConfig config;
  config.host = (*slot)->device();
  config.slot = std::move(*slot);
  config.eal.telemetry = true;  // as for all programs that roci-run starts
  return config;
}

Result<HostConfig> read_host_config(const std::string& file) {
  HostConfig config;
  auto read = read_config(file, [&](ConfigNode& root) -> Status {
    ROCI_TRY(read_eal(root, config.eal));
    return read_device_section(root, config.host);
  });
  if (!read) return fail(read.error());
  if (config.host.device.addresses.empty()) {
    return fail(file +
                ": device.addresses is empty; at least one address is required, such as [10.0.0.1/24]");
  }
  return config;
}

Outcome run_on_port(const Options& options, const HostConfig& config, Report& report) {
  if (Status good = check_congestion_control(options, config.host.device); !good)
    return outcome(std::move(good), kMisconfigured);
  auto device = open_device(options, config, report);
  if (!device) return outcome(fail(device.error()), kFailed);
  report.watch(**device);
  std::unique_ptr<DeviceEndpoints> endpoints;
  if (config.eal.telemetry) {
    auto opened = DeviceEndpoints::open({device->get()});
    if (!opened) return outcome(fail(opened.error()), kFailed);
    endpoints = std::move(*opened);
  }
  if (!options.cores.empty()) {
    if (Status pinned = stay_on(options.cores[0]); !pinned) return outcome(std::move(pinned), kMisconfigured);
  }
  if (auto mtu = usable_mtu(**device, options.test.mtu); !mtu)
    return outcome(fail(mtu.error()), kMisconfigured);
  const int index = chosen_gid_index(**device, options);
  if (index >= (*device)->gid_count()) {
    return outcome(fail("--gid-index " + std::to_string(index) + " does not exist; " + (*device)->name() +
                        " has the indices 0 to " + std::to_string((*device)->gid_count() - 1)),
                   kMisconfigured);
  }
  const std::string& argument = config.host.port.device;
  const std::string path = "port " + argument.substr(0, argument.find(','));
  Status exchanged = exchange(options, **device, path, report);
  report.save_trace();
  if (!options.stats_file.empty()) {
    if (Status written = write_stats(options.stats_file, **device); !written)
      log().warn("{}", written.error().message);
  }
  return outcome(std::move(exchanged), kFailed);
}

}  // namespace roci::perf
