// Resource usage of a host without traffic. Prints lines of a name and a number.
//
//   roci-footprint start                              time from process start to the first delivered message; both
//                                                     hosts are in the process
//   roci-footprint idle [SECONDS]                     CPU time of a host whose own thread sleeps when idle
//   roci-footprint memory                             resident memory of a process with one host
//   roci-footprint queue-pairs [CONNECTIONS [DEPTH]]  resident memory per reliable queue pair
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "device/api/create_device.hpp"
#include "loopback/loopback.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "queue_pairs/many.hpp"
#include "support/must.hpp"

namespace roci::bench {
namespace {

using test::must;

constexpr uint16_t kMtu = 4200;            // path MTU 4096 plus headers
constexpr uint32_t kRing = 1024;           // frames
constexpr double kDefaultIdle = 3;         // seconds
constexpr auto kSettling = 500ms;          // until a new host is idle
constexpr const char* kSince = "--since";  // argument with the start time of the measured process

int64_t monotonic_nanoseconds() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// Executes this program again, so that the measured time includes its loading.
int start_again(char* program) {
  std::string command = "start", since = kSince, time = std::to_string(monotonic_nanoseconds());
  char* arguments[] = {program, command.data(), since.data(), time.data(), nullptr};
  execv("/proc/self/exe", arguments);
  std::fprintf(stderr, "roci-footprint: cannot execute itself: %s\n", std::strerror(errno));
  return 1;
}

void started(int64_t since) {
  const Loopback loopback({.depth = 1});  // transfers and verifies one message
  std::printf("start_to_first_message_ms %.1f\n",
              static_cast<double>(monotonic_nanoseconds() - since) * 1e-6);
}

// A host with default settings, and the objects that it requires.
struct FreshHost {
  explicit FreshHost(Progress progress, IdlePolicy when_idle = IdlePolicy::kYield) {
    DeviceConfig config;
    config.addresses = {"10.0.0.1/24"};
    config.progress = progress;
    config.idle = when_idle;
    pool = must(MbufPool::create("footprint", 2 * kRing, EthdevPort::data_room_for("net_ring", kMtu)));
    auto [local, remote] = must(make_ring_pair("footprint", pool, kMtu, kRing));
    other_end = std::move(remote);
    device = must(create_device(std::move(local), config));
  }
  std::shared_ptr<MbufPool> pool;
  std::unique_ptr<Port> other_end;
  std::unique_ptr<Device> device;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void idle(double seconds) {
  must(start_eal());
  const FreshHost host(Progress::kDedicated, IdlePolicy::kSleep);
  std::this_thread::sleep_for(kSettling);
  const double cpu = cpu_seconds();
  const int64_t begin = monotonic_nanoseconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double wall = static_cast<double>(monotonic_nanoseconds() - begin) * 1e-9;
  std::printf("idle_cpu_percent %.3f\n", (cpu_seconds() - cpu) / wall * 100);
}

double resident_mib() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;  // pages
  if (!(file >> all >> resident)) throw std::runtime_error("/proc/self/statm cannot be read");
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void memory() {
  const double before = resident_mib();
  must(start_eal());
  const double with_eal = resident_mib();
  const FreshHost host(Progress::kApplication);
  std::this_thread::sleep_for(kSettling);
  std::printf("resident_program_mib %.1f\nresident_eal_mib %.1f\nresident_host_mib %.1f\n", before, with_eal,
              resident_mib());
}

// Memory per queue pair: queue pairs in RTS between two idle hosts. The increase of resident memory since before their
// creation, divided by their number, includes tables, public objects and allocator overhead.
void queue_pairs(uint32_t connections, uint32_t depth) {
  Many many({.connections = connections, .wr = depth});
  many.settle();
  malloc_trim(0);
  const double before = resident_mib();
  many.create();
  many.connect();
  many.settle();
  const double idle_mib = resident_mib() - before;
  // One message per connection, so that work queues and sessions are allocated.
  for (uint32_t ended = 0; ended < connections + 256;) ended += many.round();
  many.settle();
  const double used_mib = resident_mib() - before;
  if (idle_mib <= 0) throw std::runtime_error("memory of queue pairs not measurable; use more queue pairs");
  const double each = (1 << 20) / (2.0 * connections);
  std::printf("idle_qp_bytes %.1f\nused_qp_bytes %.1f\n", idle_mib * each, used_mib * each);
}

uint32_t number(const char* text, uint32_t least, uint32_t most) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text == 0 || *end != 0 || value < least || value > most)
    throw std::runtime_error(std::string(text) + " is not a number from " + std::to_string(least) + " to " +
                             std::to_string(most));
  return static_cast<uint32_t>(value);
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "start" && argc == 4 && std::strcmp(argv[2], kSince) == 0) {
    started(std::strtoll(argv[3], nullptr, 10));
  } else if (what == "start" && argc == 2) {
    return start_again(argv[0]);
  } else if (what == "idle" && argc <= 3) {
    const double seconds = argc == 3 ? std::strtod(argv[2], nullptr) : kDefaultIdle;
    if (!(seconds > 0 && seconds <= 3600)) {
      std::fprintf(stderr, "roci-footprint: idle: SECONDS must be above 0 and at most 3600\n");
      return 2;
    }
    idle(seconds);
  } else if (what == "memory" && argc == 2) {
    memory();
  } else if (what == "queue-pairs" && argc <= 4) {
    queue_pairs(argc > 2 ? number(argv[2], 100, 1'000'000) : 10'000,
                argc > 3 ? number(argv[3], 1, 32768) : 16);
  } else {
    std::fprintf(
        stderr,
        "usage: roci-footprint start | idle [SECONDS] | memory | queue-pairs [CONNECTIONS [DEPTH]]\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace roci::bench

int main(int argc, char** argv) {
  try {
    return roci::bench::run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "roci-footprint: %s\n", failure.what());
    return 1;
  }
}
