// Cost of the switch on one core. Bursts of frames wait at one port, are forwarded to the other port by MAC address,
// and are removed there. Only the switch's polls are timed: reception, pipeline stages, queues and transmission over
// DPDK rings. Rates are frames per second of this time.
#include <rte_mbuf.h>

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "base/time/tick_clock.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "support/against.hpp"
#include "support/must.hpp"
#include "support/ports/frames.hpp"
#include "switch/switch.hpp"

namespace roci::bench {
namespace {

using test::must;

constexpr uint16_t kBurst = 32;
constexpr uint32_t kBursts = 64;  // per iteration
constexpr uint16_t kMtu = 1600;
constexpr uint16_t kIntPort = 5201;

enum Features : unsigned { kNothing = 0, kAqm = 1, kTelemetry = 2, kPfcAndShares = 4 };

SwitchConfig configuration(unsigned features) {
  SwitchConfig config{.name = "measured"};
  for (const char* name : {"in", "out"}) {
    SwitchPortConfig port{.name = name};
    port.queue = 16_MiB;
    if ((features & kAqm) != 0) {
      // Curves that are evaluated for every frame but do not apply, since marking itself is rare.
      for (ClassConfig& one : port.classes) {
        one.aqm.mark = {.kmin = 1_MiB, .kmax = 2_MiB, .pmax = 0.1};
        one.aqm.drop = {.kmin = 1_MiB, .kmax = 2_MiB, .pmax = 0.1};
      }
    }
    if ((features & kPfcAndShares) != 0) {
      port.classes[0].lossless = LosslessConfig{.xoff = 4_MiB, .xon = 2_MiB, .headroom = 1_MiB};
      port.classes[1].weight = 3;
      port.classes[6].strict = true;
    }
    config.ports.push_back(port);
  }
  if ((features & kTelemetry) != 0) {
    config.telemetry.enabled = true;
    config.telemetry.udp_port = kIntPort;
    config.telemetry.switch_id = 1;
    config.ports[0].telemetry = TelemetryRole::kSource;
  }
  if ((features & kPfcAndShares) != 0) config.buffer = {.size = 32_MiB, .alpha = 1};
  return config;
}

// A frame of `bytes` bytes without FCS from host `from` to host `to`.
std::vector<uint8_t> frame_of(uint32_t bytes, uint8_t to, uint8_t from) {
  constexpr uint32_t kAround = 14 + 20 + 8 + 12 + 4;
  return test::roce_bytes({.destination = {{2, 0, 0, 0, 0, to}},
                           .source = {{2, 0, 0, 0, 0, from}},
                           .traffic_class = 2,
                           .payload = (bytes - kAround) / 4 * 4});
}

// A switch with two ports and the frames received on the first, 32 per burst. All of them leave by the second.
struct Traffic {
  SwitchConfig config;
  std::vector<std::vector<uint8_t>> frames;  // a multiple of a burst
  std::vector<uint8_t> answer;               // sent into the second port, so that the switch learns its host
};

void fill(std::span<const std::vector<uint8_t>> frames, std::array<rte_mbuf*, kBurst>& burst) {
  for (size_t i = 0; i < kBurst; ++i) {
    const std::vector<uint8_t>& bytes = frames[i % frames.size()];
    std::memcpy(rte_pktmbuf_append(burst[i], static_cast<uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
  }
}

void measure(benchmark::State& state, const Traffic& traffic) {
  try {
    must(start_eal());
    const auto pool = must(MbufPool::create("switch", 4096, EthdevPort::data_room_for("net_ring", kMtu)));
    const auto [left, in] = must(make_ring_pair("left", pool, kMtu, 1024));
    const auto [right, out] = must(make_ring_pair("right", pool, kMtu, 1024));
    const auto sw = must(Switch::create(traffic.config, {in.get(), out.get()}, pool));
    TickClock clock;
    const auto send = [&](Port& port, std::span<const std::vector<uint8_t>> frames) {
      std::array<rte_mbuf*, kBurst> burst;
      if (rte_pktmbuf_alloc_bulk(pool->get(), burst.data(), kBurst) != 0) return false;
      fill(frames, burst);
      return port.tx_burst(burst, clock.now()) == kBurst;
    };
    const auto take = [&](Port& port) {
      std::array<rte_mbuf*, kBurst> burst;
      uint32_t taken = 0;
      for (uint16_t count = 0; (count = port.rx_burst(burst, clock.now())) > 0; taken += count)
        rte_pktmbuf_free_bulk(burst.data(), count);
      return taken;
    };
    if (!send(*right, {&traffic.answer, 1})) return state.SkipWithError("no buffers");
    while (sw->poll(clock.now())) {
    }
    take(*left);
    uint64_t frames = 0;
    size_t next = 0;
    for (auto _ : state) {
      std::chrono::nanoseconds spent{0};
      for (uint32_t i = 0; i < kBursts; ++i) {
        if (!send(*left, std::span(traffic.frames).subspan(next, kBurst)))
          return state.SkipWithError("no buffers");
        next = (next + kBurst) % traffic.frames.size();
        const auto begin = std::chrono::steady_clock::now();
        sw->poll(clock.now());
        spent += std::chrono::steady_clock::now() - begin;
        const uint32_t taken = take(*right);
        if (taken != kBurst) return state.SkipWithError("the switch did not forward every frame");
        frames += taken;
      }
      state.SetIterationTime(std::chrono::duration<double>(spent).count());
    }
    state.counters["packets_per_second"] = rate(static_cast<double>(frames));
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
  }
}

void forward(benchmark::State& state, unsigned features) {
  const auto bytes = frame_of(static_cast<uint32_t>(state.range(0)), 2, 1);
  measure(state, {configuration(features), {kBurst, bytes}, frame_of(64, 1, 2)});
}

IpAddress network(bool v4, uint32_t i) {
  IpAddress address = IpAddress::from_v4(0x14000000 | i << 8);
  if (!v4) address.bytes = {0xfd, 0x14, 0, 0, 0, 0, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)};
  return address;
}

// Routed traffic between two networks with `routes` routes. Each packet uses a random route, to one of `hops`
// next hops at the second port.
Traffic routed(bool v4, uint32_t routes, uint8_t hops) {
  const MacAddress router{{2, 0, 0, 0, 0, 9}}, hop{{2, 0, 0, 0, 0, 2}};
  const auto behind = [v4](uint8_t i) {
    return must(IpAddress::parse((v4 ? "10.0.2." : "fd02::") + std::to_string(i)));
  };
  Traffic traffic;
  traffic.config = configuration(kNothing);
  SwitchConfig& config = traffic.config;
  config.mac = router;
  config.ports[1].vlan = 2;
  config.interfaces = {
      {.name = "in", .addresses = {must(IpNetwork::parse(v4 ? "10.0.1.1/24" : "fd01::1/64"))}},
      {.name = "out", .vlan = 2, .addresses = {must(IpNetwork::parse(v4 ? "10.0.2.1/24" : "fd02::1/64"))}}};
  std::vector<IpAddress> via;
  for (uint8_t i = 0; i < hops; ++i) {
    via.push_back(behind(static_cast<uint8_t>(2 + i)));
    config.neighbors.push_back({via.back(), hop});
  }
  for (uint32_t i = 0; i < routes; ++i)
    config.routes.push_back({{network(v4, i), static_cast<uint8_t>(v4 ? 24 : 64)}, via});
  Rng random{1};
  constexpr size_t kFrames = 64UL * kBurst;
  while (traffic.frames.size() < kFrames) {
    test::FrameSpec spec{.destination = router, .source = {{2, 0, 0, 0, 0, 1}}, .payload = 16};
    spec.to = network(v4, static_cast<uint32_t>(random.below(routes)));
    spec.to.bytes[15] = 5;
    spec.from = must(IpAddress::parse(v4 ? "10.0.1.2" : "fd01::2"));
    traffic.frames.push_back(test::roce_bytes(spec));
  }
  traffic.answer = test::roce_bytes({.destination = hop, .source = hop});
  return traffic;
}

void forward_plain(benchmark::State& state) { forward(state, kNothing); }
void forward_aqm(benchmark::State& state) { forward(state, kAqm); }
void forward_telemetry(benchmark::State& state) { forward(state, kTelemetry); }
void forward_everything(benchmark::State& state) { forward(state, kAqm | kTelemetry | kPfcAndShares); }

void route_v4(benchmark::State& state) {
  measure(state, routed(true, static_cast<uint32_t>(state.range(0)), 1));
}
void route_ecmp(benchmark::State& state) {
  measure(state, routed(true, static_cast<uint32_t>(state.range(0)), 4));
}
void route_v6(benchmark::State& state) {
  measure(state, routed(false, static_cast<uint32_t>(state.range(0)), 1));
}

// Lookups alone, in bursts of addresses that match one of the routes at random.
void look_up(benchmark::State& state, bool v4, RouteTable::Kind kind) {
  try {
    must(start_eal());
    Rng random{1};
    const auto count = static_cast<uint32_t>(state.range(0));
    std::vector<RouteEntry> entries;
    for (uint32_t i = 0; i < count; ++i)
      entries.push_back({{network(v4, i), static_cast<uint8_t>(v4 ? 24 : 64)}, static_cast<uint16_t>(i)});
    const RouteTable table = must(RouteTable::create(entries, kind));
    std::vector<IpAddress> addresses(64UL * kBurst);
    for (IpAddress& address : addresses) address = network(v4, static_cast<uint32_t>(random.below(count)));
    std::array<uint16_t, kBurst> found;
    for (auto _ : state) {
      for (size_t i = 0; i < addresses.size(); i += kBurst) {
        table.find({&addresses[i], kBurst}, found);
        benchmark::DoNotOptimize(found);
      }
    }
    state.counters["look_ups_per_second"] = rate(static_cast<double>(state.iterations() * addresses.size()));
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
  }
}
void look_up_ranges_v4(benchmark::State& state) { look_up(state, true, RouteTable::Kind::kRanges); }
void look_up_table_v4(benchmark::State& state) { look_up(state, true, RouteTable::Kind::kTable); }
void look_up_ranges_v6(benchmark::State& state) { look_up(state, false, RouteTable::Kind::kRanges); }
void look_up_table_v6(benchmark::State& state) { look_up(state, false, RouteTable::Kind::kTable); }

BENCHMARK(forward_plain)->Arg(64)->Arg(1024)->UseManualTime();
BENCHMARK(forward_aqm)->Arg(64)->Arg(1024)->UseManualTime();
BENCHMARK(forward_telemetry)->Arg(64)->Arg(1024)->UseManualTime();
BENCHMARK(forward_everything)->Arg(64)->Arg(1024)->UseManualTime();
BENCHMARK(route_v4)->ArgName("routes")->Arg(8)->Arg(64)->Arg(1000)->UseManualTime();
BENCHMARK(route_v6)->ArgName("routes")->Arg(8)->Arg(64)->Arg(1000)->UseManualTime();
BENCHMARK(route_ecmp)->ArgName("routes")->Arg(1000)->UseManualTime();
BENCHMARK(look_up_ranges_v4)->ArgName("routes")->Arg(8)->Arg(64)->Arg(256)->Arg(1000)->Arg(16384);
BENCHMARK(look_up_table_v4)->ArgName("routes")->Arg(8)->Arg(64)->Arg(256)->Arg(1000)->Arg(16384);
BENCHMARK(look_up_ranges_v6)->ArgName("routes")->Arg(8)->Arg(64)->Arg(256)->Arg(1000)->Arg(16384);
BENCHMARK(look_up_table_v6)->ArgName("routes")->Arg(8)->Arg(64)->Arg(256)->Arg(1000)->Arg(4096);

}  // namespace
}  // namespace roci::bench
