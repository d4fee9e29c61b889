// Limit for two hosts on a core each, by payload size and maximum of frames in flight. One core allocates buffers,
// copies a payload into each, computes its CRC and sends it through a DPDK ring. The other receives it, computes the
// CRC, copies the payload and frees the buffer. The slower core determines the rate. No headers, queue pairs,
// completions or acknowledgments.
#include <isa-l/crc.h>
#include <pthread.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "loopback/limit_frames.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "support/against.hpp"
#include "support/must.hpp"
#include "wire/icrc/copy_crc.hpp"

namespace roci::bench {
namespace {

using test::must;

// size of the memory for payloads, like that of a message
constexpr size_t kMessage = 64 * 1024;
constexpr uint32_t kBatches = 256;  // bursts per iteration

// Copies the payload of a packet and returns its CRC.
using Move = uint32_t (*)(uint8_t* to, const uint8_t* from, size_t bytes);
uint32_t move_nothing(uint8_t* /*to*/, const uint8_t* /*from*/, size_t /*bytes*/) { return 0; }
uint32_t copy_then_crc(uint8_t* to, const uint8_t* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return crc32_gzip_refl(0, to, bytes);
}
uint32_t crc_then_copy(uint8_t* to, const uint8_t* from, size_t bytes) {
  const uint32_t crc = crc32_gzip_refl(0, from, bytes);
  std::memcpy(to, from, bytes);
  return crc;
}
uint32_t one_pass(uint8_t* to, const uint8_t* from, size_t bytes) { return copy_crc(0, to, from, bytes); }

// Models external buffers: the sender only computes the CRC, stores the payload's address, and allocates two more
// buffers for a chain of headers, payload and ICRC. The receiver reads the memory of the sending application.
uint32_t sum_in_place(uint8_t* to, const uint8_t* from, size_t bytes) {
  std::memcpy(to, &from, sizeof from);
  return crc32_gzip_refl(0, from, bytes);
}
uint32_t one_pass_from_outside(uint8_t* to, const uint8_t* pointer_bytes, size_t bytes) {
  const uint8_t* from = nullptr;
  std::memcpy(&from, pointer_bytes, sizeof from);
  return copy_crc(0, to, from, bytes);
}

// The first two CPUs that this process may use, one per thread.
std::array<int, 2> two_cpus() {
  cpu_set_t cpus;
  std::array<int, 2> found{0, 0};
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return found;
  size_t count = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE && count < found.size(); ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) found[count++] = static_cast<int>(cpu);
  }
  return found;
}

class Pinned {
 public:
  explicit Pinned(int cpu) {
    pthread_getaffinity_np(pthread_self(), sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(cpu), &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { pthread_setaffinity_np(pthread_self(), sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

// Positions of consecutive payloads in a message, cyclically.
class Cursor {
 public:
  explicit Cursor(size_t bytes) : memory_(kMessage, 1), bytes_(bytes) {}
  uint8_t* next() {
    uint8_t* here = memory_.data() + at_;
    at_ = at_ + 2 * bytes_ <= kMessage ? at_ + bytes_ : 0;
    return here;
  }

 private:
  std::vector<uint8_t> memory_;
  size_t bytes_;
  size_t at_ = 0;
};

// A wait loop with occasional sched_yield(): no cost on a dedicated core; on a shared core it lets the awaited thread
// run.
class Patience {
 public:
  explicit Patience(uint32_t between_yields = 64) : between_yields_(between_yields) {}
  void wait() {
    if (++rounds_ % between_yields_ == 0) sched_yield();
  }

 private:
  const uint32_t between_yields_;
  uint32_t rounds_ = 0;
};

void receive(Port& port, std::atomic<uint64_t>& received, const std::atomic<bool>& stop, size_t bytes,
             Move move) {
  Cursor to(bytes);
  Patience patience;
  std::array<rte_mbuf*, kBurst> burst;
  while (!stop.load(std::memory_order_relaxed)) {
    const uint16_t count = port.rx_burst(burst, Nanos{0});
    for (uint16_t i = 0; i < count; ++i)
      rte_prefetch0(rte_pktmbuf_mtod_offset(burst[i], const uint8_t*, kHeaders));
    for (uint16_t i = 0; i < count; ++i) {
      const uint8_t* payload = rte_pktmbuf_mtod_offset(burst[i], const uint8_t*, kHeaders);
      benchmark::DoNotOptimize(move(to.next(), payload, bytes));
    }
    if (count == 0) {
      patience.wait();
      continue;
    }
    rte_pktmbuf_free_bulk(burst.data(), count);
    received.store(received.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
}

void send_burst(Port& port, rte_mempool* pool, Cursor& from, size_t bytes, Move move, uint32_t segments) {
  std::array<rte_mbuf*, kBurst> burst;
  Patience patience;
  while (rte_pktmbuf_alloc_bulk(pool, burst.data(), kBurst) != 0) patience.wait();
  for (rte_mbuf* frame : burst) rte_prefetch0(rte_pktmbuf_mtod(frame, uint8_t*));
  const auto frame_bytes = static_cast<uint16_t>(kHeaders + bytes + kIcrc);
  for (rte_mbuf* frame : burst) {
    auto* start = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(frame, frame_bytes));
    const uint32_t crc = move(start + kHeaders, from.next(), bytes);
    std::memcpy(start + kHeaders + bytes, &crc, sizeof crc);
    for (uint32_t more = 1; more < segments; ++more) {
      rte_mbuf* segment = nullptr;
      while ((segment = rte_pktmbuf_alloc(pool)) == nullptr) patience.wait();
      rte_pktmbuf_chain(frame, segment);
    }
  }
  for (uint16_t sent = 0; sent < kBurst; patience.wait())
    sent = static_cast<uint16_t>(sent + port.tx_burst(std::span(burst).subspan(sent), Nanos{0}));
}

void run(benchmark::State& state, Move send_move, Move receive_move, uint32_t segments = 1) try {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto under_way = static_cast<uint32_t>(state.range(1));
  const auto cpus = two_cpus();
  must(start_eal());
  // In addition, each core may hold a burst.
  const auto pool = must(MbufPool::create("limit", segments * (under_way + 4 * kBurst),
                                          EthdevPort::data_room_for("net_ring", kMtu)));
  const auto [a, b] = must(make_ring_pair("limit", pool, kMtu, under_way));
  std::atomic<uint64_t> received{0};
  std::atomic<bool> stop{false};
  std::thread receiver([&, port = b.get()] {
    const Pinned pinned(cpus[1]);
    receive(*port, received, stop, bytes, receive_move);
  });
  const Pinned pinned(cpus[0]);
  Cursor from(bytes);
  Patience patience;
  uint64_t packets = 0;
  for (auto _ : state) {
    for (uint32_t batch = 0; batch < kBatches; ++batch)
      send_burst(*a, pool->get(), from, bytes, send_move, segments);
    packets += uint64_t{kBatches} * kBurst;
    while (received.load(std::memory_order_acquire) < packets) patience.wait();
  }
  stop = true;
  receiver.join();
  state.counters["packets_per_second"] = rate(static_cast<double>(packets));
  state.counters["Gb_per_second"] = rate(static_cast<double>(packets * bytes) * 8e-9);
} catch (const std::exception& failure) {
  state.SkipWithError(failure.what());
}

void limit_two_cores(benchmark::State& state) { run(state, copy_then_crc, crc_then_copy); }
void limit_two_cores_one_pass(benchmark::State& state) { run(state, one_pass, one_pass); }
void limit_two_cores_external(benchmark::State& state) { run(state, sum_in_place, one_pass_from_outside, 3); }
void limit_two_cores_ring(benchmark::State& state) { run(state, move_nothing, move_nothing); }

// Round-trip time of a cache line between two cores. A hypervisor migrates virtual CPUs, which changes this time and
// all two-core results from minute to minute.
void limit_core_round_trip(benchmark::State& state) {
  constexpr uint64_t kTurns = 10'000;
  constexpr uint64_t kEnd = UINT64_MAX;
  constexpr uint32_t kPatience = 1 << 16;  // large: a yield takes longer than the measured time
  const auto cpus = two_cpus();
  alignas(64) std::atomic<uint64_t> ball{0};  // odd: turn of the other core
  std::thread other([&] {
    const Pinned pinned(cpus[1]);
    Patience patience(kPatience);
    for (;;) {
      const uint64_t now = ball.load(std::memory_order_acquire);
      if (now == kEnd) return;
      if (now % 2 == 1) {
        ball.store(now + 1, std::memory_order_release);
      } else {
        patience.wait();
      }
    }
  });
  const Pinned pinned(cpus[0]);
  Patience patience(kPatience);
  uint64_t round_trips = 0;
  for (auto _ : state) {
    for (uint64_t i = 0; i < kTurns; ++i, ++round_trips) {
      ball.store(2 * round_trips + 1, std::memory_order_release);
      while (ball.load(std::memory_order_acquire) != 2 * round_trips + 2) patience.wait();
    }
  }
  ball.store(kEnd, std::memory_order_release);
  other.join();
  state.counters["ns_per_round_trip"] = benchmark::Counter(
      static_cast<double>(round_trips) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(limit_core_round_trip)->UseRealTime();

// Few frames in flight stay in the cache; many keep both cores busy if one is delayed. The limit is the better of the
// two.
const std::vector<std::vector<int64_t>> kShapes{{64, 4096}, {128, 1024}};

// Real time: the slower core determines the rate, independent of the activity of the other.
BENCHMARK(limit_two_cores)->ArgsProduct(kShapes)->UseRealTime();
BENCHMARK(limit_two_cores_one_pass)->ArgsProduct(kShapes)->UseRealTime();
BENCHMARK(limit_two_cores_external)->ArgsProduct(kShapes)->UseRealTime();
BENCHMARK(limit_two_cores_ring)->ArgsProduct(kShapes)->UseRealTime();

}  // namespace
}  // namespace roci::bench
