#include "roci-perf/hosts/loopback.hpp"

#include <thread>

#include "base/rng.hpp"
#include "device/api/create_device.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "port/sim/faulty_port.hpp"
#include "roci-perf/hosts/capture_tap.hpp"
#include "roci-perf/hosts/cores.hpp"
#include "roci-perf/hosts/watchdog.hpp"
#include "roci-perf/measurement/session.hpp"
#include "roci-perf/options/device_options.hpp"
#include "switch/switch.hpp"

namespace roci::perf {
namespace {

constexpr uint16_t kPortMtu = 4200;     // path MTU 4096 plus headers, for IPv4 and IPv6
constexpr uint32_t kRingFrames = 1024;  // per direction of a wire
constexpr uint32_t kPoolFrames = 4096;  // for frames copied by the switch
constexpr int kDrainRounds = 64;
constexpr const char* kNetwork = "10.0.0.";

// The wires, the optional switch between them, and the two ports of the hosts. Declared in order of creation, destroyed
// in reverse order.
struct RingPorts {
  std::shared_ptr<MbufPool> pool;
  std::vector<std::unique_ptr<Port>> switch_ports;
  std::unique_ptr<Switch> between;
  std::unique_ptr<Port> client, server;
};

Result<RingPorts> create_ring_ports(bool direct) {
  RingPorts wires;
  auto pool = MbufPool::create("loopback", kPoolFrames, EthdevPort::data_room_for("net_ring", kPortMtu));
  if (!pool) return fail(pool.error());
  wires.pool = *pool;
  auto first = make_ring_pair("loop0", wires.pool, kPortMtu, kRingFrames);
  if (!first) return fail(first.error());
  wires.client = std::move(first->first);
  if (direct) {
    wires.server = std::move(first->second);
    return wires;
  }
  auto second = make_ring_pair("loop1", wires.pool, kPortMtu, kRingFrames);
  if (!second) return fail(second.error());
  wires.server = std::move(second->second);
  wires.switch_ports.push_back(std::move(first->second));
  wires.switch_ports.push_back(std::move(second->first));
  SwitchConfig config;
  config.name = "switch";
  for (const char* name : {"client", "server"}) {
    SwitchPortConfig port;
    port.name = name;
    config.ports.push_back(port);
  }
  auto made = Switch::create(config, {wires.switch_ports[0].get(), wires.switch_ports[1].get()}, wires.pool);
  if (!made) return fail(made.error());
  wires.between = std::move(*made);
  return wires;
}

DeviceConfig host_config(const char* name, unsigned number, const Options& options) {
  DeviceConfig config;
  config.name = name;
  config.addresses = {kNetwork + std::to_string(number) + "/24"};
  // Most congestion control algorithms require extensions.
  config.extensions.mode = options.congestion.profile ? ExtensionMode::kAuto : ExtensionMode::kOff;
  config.congestion_control.line_rate = 100'000'000'000;  // the link speed of DPDK ring ports has no meaning
  return config;
}

Result<std::unique_ptr<Device>> make_host(std::unique_ptr<Port> port, const char* name, unsigned number,
                                          const Options& options) {
  DeviceConfig config = host_config(name, number, options);
  apply_device_options(options, config);
  if (options.given.contains("seed")) config.seed = options.test.seed * 2 + number;
  return create_device(std::move(port), config);
}

// Delivers the frames in flight, such as retransmissions, since they hold buffers of the devices' pools, which are
// destroyed next.
void drain(Switch* between, Device& client, Device& server) {
  for (int round = 0; round < kDrainRounds; ++round) {
    if (between != nullptr) between->poll(now());
    client.progress();
    server.progress();
  }
}

}  // namespace

Status check_loopback(const Options& options) {
  constexpr int kLastGidIndex = 1;  // the link-local address and the configured one
  if (options.gid_index > kLastGidIndex) {
    return fail("--gid-index " + std::to_string(options.gid_index) +
                " does not exist; the hosts of --loopback have the indices 0 to " +
                std::to_string(kLastGidIndex));
  }
  return check_congestion_control(options, host_config("client", 1, options));
}

Status run_loopback(const Options& options, Report& report) {
  ROCI_TRY(start_eal());
  auto wires = create_ring_ports(options.direct);
  if (!wires) return fail(wires.error());
  if (options.loss > 0) {
    Rng random(options.given.contains("seed") ? options.test.seed : os_random());
    for (std::unique_ptr<Port>* end : {&wires->client, &wires->server})
      *end = std::make_unique<FaultyPort>(std::move(*end), PortFaults{.loss = options.loss}, random.next());
  }
  auto tapped = with_capture(std::move(wires->client), options, report.capture_saved());
  if (!tapped) return fail(tapped.error());
  auto client = make_host(std::move(*tapped), "client", 1, options);
  if (!client) return fail(client.error());
  auto server = make_host(std::move(wires->server), "server", 2, options);
  if (!server) return fail(server.error());

  report.watch(**client);
  report.watch(**server);

  const std::string path = options.direct ? "loopback, back to back" : "loopback through a switch";
  const WaitLimits limits = limits_for(options.qp_timeout, options.retry_count);
  auto [client_end, server_end] = make_memory_channel();
  // The server's thread polls the switch, as it has less work than the client's thread.
  std::vector<Poller*> others;
  if (wires->between) others.push_back(wires->between.get());

  // Set after the creation of the devices, since their helper threads would inherit the affinity.
  if (!options.cores.empty()) ROCI_TRY(stay_on(options.cores[0]));
  Status server_status, server_pinned;
  std::thread server_thread([&, end = std::move(server_end)]() mutable {
    if (!options.cores.empty()) server_pinned = stay_on(options.cores[1]);
    if (!server_pinned) return;  // the server's end of the channel closes, which ends the client
    Control control(**server, std::move(end), "the client", limits, others);
    server_status = run_server(control, **server, options, path, nullptr);
  });
  Status client_status;
  {
    Control control(**client, std::move(client_end), "the server", limits);
    const Watchdog watchdog(control.heartbeat(), limits.stall + Watchdog::kMargin);
    client_status = run_client(control, **client, options, path, report);
  }  // closes the client's end of the channel, which ends the server
  server_thread.join();
  report.save_trace();
  drain(wires->between.get(), **client, **server);
  return server_pinned ? client_status : server_pinned;
}

}  // namespace roci::perf
