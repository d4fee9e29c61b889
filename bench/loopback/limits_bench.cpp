// Limits of the loopback by payload size: DPDK rings with allocation and release of buffers; the copy and CRC of every
// byte at both ends; and both together.
#include <isa-l/crc.h>
#include <rte_mbuf.h>

#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "loopback/limit_frames.hpp"
#include "loopback/loopback.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "support/against.hpp"
#include "support/must.hpp"

namespace roci::bench {
namespace {

using test::must;

// Moves bursts of frames with `payload` bytes from one end of a ring pair to the other. fill(bytes) and drain(bytes)
// are called for each payload.
template <class Fill, class Drain>
void move_bursts(benchmark::State& state, Fill fill, Drain drain) {
  must(start_eal());
  const auto pool = must(MbufPool::create("limit", 4096, EthdevPort::data_room_for("net_ring", kMtu)));
  const auto [a, b] = must(make_ring_pair("limit", pool, kMtu, 1024));
  const auto frame_bytes = static_cast<uint16_t>(kHeaders + state.range(0) + kIcrc);
  std::array<rte_mbuf*, kBurst> burst;
  uint64_t packets = 0;
  for (auto _ : state) {
    if (rte_pktmbuf_alloc_bulk(pool->get(), burst.data(), kBurst) != 0)
      return state.SkipWithError("no buffers");
    for (rte_mbuf* frame : burst)
      fill(reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, frame_bytes)) + kHeaders);
    a->tx_burst(burst, Nanos{0});
    const uint16_t received = b->rx_burst(burst, Nanos{0});
    for (uint16_t i = 0; i < received; ++i) drain(rte_pktmbuf_mtod_offset(burst[i], uint8_t*, kHeaders));
    rte_pktmbuf_free_bulk(burst.data(), received);
    packets += received;
  }
  state.counters["packets_per_second"] = rate(static_cast<double>(packets));
}

void limit_ring(benchmark::State& state) {
  try {
    move_bursts(
        state, [](uint8_t*) {}, [](const uint8_t*) {});
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
  }
}

void limit_ring_copy_crc(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> from(bytes, 1), to(bytes);
  try {
    move_bursts(
        state,
        [&](uint8_t* payload) {
          std::memcpy(payload, from.data(), bytes);
          benchmark::DoNotOptimize(crc32_gzip_refl(0, payload, bytes));
        },
        [&](const uint8_t* payload) {
          benchmark::DoNotOptimize(crc32_gzip_refl(0, payload, bytes));
          std::memcpy(to.data(), payload, bytes);
          benchmark::ClobberMemory();
        });
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
  }
}

void limit_copy_crc(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> from(bytes, 1), packet(bytes), to(bytes);
  for (auto _ : state) {
    std::memcpy(packet.data(), from.data(), bytes);
    benchmark::DoNotOptimize(crc32_gzip_refl(0, packet.data(), bytes));
    benchmark::DoNotOptimize(crc32_gzip_refl(0, packet.data(), bytes));
    std::memcpy(to.data(), packet.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK(limit_ring)->Arg(64)->Arg(1024)->Arg(4096);
BENCHMARK(limit_copy_crc)->Arg(64)->Arg(1024)->Arg(4096);
BENCHMARK(limit_ring_copy_crc)->Arg(64)->Arg(1024)->Arg(4096);

}  // namespace
}  // namespace roci::bench
