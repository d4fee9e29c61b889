// What the switch costs a core: bursts of frames wait at one of its ports, are forwarded to the other one by MAC address,
// and are taken away there. Only the switch's own polls are timed: reception, its stages, queues and transmission over
// rings of DPDK. Rates are frames per second of that time.
#include <rte_mbuf.h>

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "base/tick_clock.hpp"
#include "port/ethdev_port.hpp"
#include "support/against.hpp"
#include "support/frames.hpp"
#include "support/must.hpp"
#include "switch/switch.hpp"

namespace roci::bench {
namespace {

using test::must;

constexpr uint16_t kBurst = 32;
constexpr uint32_t kBursts = 64;  // of an iteration
constexpr uint16_t kMtu = 1600;
constexpr uint16_t kIntPort = 5201;

enum Features : unsigned { kNothing = 0, kAqm = 1, kTelemetry = 2, kPfcAndShares = 4 };

SwitchConfig configuration(unsigned features) {
  SwitchConfig config{.name = "measured"};
  for (const char* name : {"in", "out"}) {
    SwitchPortConfig port{.name = name};
    port.queue = 16_MiB;
    if ((features & kAqm) != 0) {
      // Curves that are asked with every frame and say no: marking itself is rare.
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

// A frame of so many bytes on the line's side of an mbuf, from host 1 to host 2.
std::vector<uint8_t> frame_of(uint32_t bytes, uint8_t to, uint8_t from) {
  constexpr uint32_t kAround = 14 + 20 + 8 + 12 + 4;
  return test::roce_bytes({.destination = {{2, 0, 0, 0, 0, to}},
                           .source = {{2, 0, 0, 0, 0, from}},
                           .traffic_class = 2,
                           .payload = (bytes - kAround) / 4 * 4});
}

void fill(const std::vector<uint8_t>& bytes, std::array<rte_mbuf*, kBurst>& burst) {
  for (rte_mbuf* frame : burst)
    std::memcpy(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size())), bytes.data(), bytes.size());
}

void forward(benchmark::State& state, unsigned features) {
  try {
    must(start_eal());
    const auto pool = must(MbufPool::create("switch", 4096, EthdevPort::data_room_for("net_ring", kMtu)));
    const auto [left, in] = must(make_ring_pair("left", pool, kMtu, 1024));
    const auto [right, out] = must(make_ring_pair("right", pool, kMtu, 1024));
    const auto sw = must(Switch::create(configuration(features), {in.get(), out.get()}, pool));
    TickClock clock;
    const auto send = [&](Port& port, const std::vector<uint8_t>& bytes) {
      std::array<rte_mbuf*, kBurst> burst;
      if (rte_pktmbuf_alloc_bulk(pool->get(), burst.data(), kBurst) != 0) return false;
      fill(bytes, burst);
      return port.tx_burst(burst, clock.now()) == kBurst;
    };
    const auto take = [&](Port& port) {
      std::array<rte_mbuf*, kBurst> burst;
      uint32_t taken = 0;
      for (uint16_t count = 0; (count = port.rx_burst(burst, clock.now())) > 0; taken += count)
        rte_pktmbuf_free_bulk(burst.data(), count);
      return taken;
    };
    const auto bytes = frame_of(static_cast<uint32_t>(state.range(0)), 2, 1);
    if (!send(*right, frame_of(64, 1, 2))) return state.SkipWithError("no buffers");  // where host 2 is
    while (sw->poll(clock.now())) {
    }
    take(*left);
    uint64_t frames = 0;
    for (auto _ : state) {
      std::chrono::nanoseconds spent{0};
      for (uint32_t i = 0; i < kBursts; ++i) {
        if (!send(*left, bytes)) return state.SkipWithError("no buffers");
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

void forward_plain(benchmark::State& state) { forward(state, kNothing); }
void forward_aqm(benchmark::State& state) { forward(state, kAqm); }
void forward_telemetry(benchmark::State& state) { forward(state, kTelemetry); }
void forward_everything(benchmark::State& state) { forward(state, kAqm | kTelemetry | kPfcAndShares); }

BENCHMARK(forward_plain)->Arg(64)->Arg(1024)->UseManualTime();
BENCHMARK(forward_aqm)->Arg(64)->Arg(1024)->UseManualTime();
BENCHMARK(forward_telemetry)->Arg(64)->Arg(1024)->UseManualTime();
BENCHMARK(forward_everything)->Arg(64)->Arg(1024)->UseManualTime();

}  // namespace
}  // namespace roci::bench
