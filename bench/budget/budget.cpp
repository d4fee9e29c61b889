// Instructions per message, counted by callgrind and therefore independent of the machine's load. Each workload runs
// two hosts in one thread in virtual time: a warm-up, then a fixed number of messages with counting enabled. Its counts
// are dumped under its name. `bench/budget.py` runs this program under valgrind and compares the counts with
// budget.yaml.
#include <valgrind/callgrind.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "loopback/loopback.hpp"

namespace roci::bench {
namespace {

struct Workload {
  const char* name;
  uint64_t messages;
  LoopbackConfig config;
};

constexpr uint32_t kLargeBytes = 65536;
constexpr ExtensionConfig kAuto{.mode = ExtensionMode::kAuto};
constexpr ExtensionConfig kSelective{.mode = ExtensionMode::kAuto, .selective_repeat = true};

constexpr LoopbackConfig large_write(const char* algorithm) {
  return {.opcode = IBV_WR_RDMA_WRITE,
          .bytes = kLargeBytes,
          .path_mtu = IBV_MTU_4096,
          .depth = 16,
          .extensions = kAuto,
          .algorithm = algorithm};
}

constexpr Workload kWorkloads[] = {
    {"write_64", 4096, {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64}},
    {"send_64", 4096, {.opcode = IBV_WR_SEND, .bytes = 64}},
    {"read_64", 4096, {.opcode = IBV_WR_RDMA_READ, .bytes = 64}},
    {"fetch_add", 4096, {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .bytes = 8}},
    {"write_64_one_at_a_time", 1024, {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .depth = 1}},
    {"write_64_ack_each", 4096, {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .packets_per_ack = 1}},
    {"write_64_extended", 4096, {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .extensions = kAuto}},
    {"write_64_selective", 4096, {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .extensions = kSelective}},
    {"write_64KiB_mtu4096",
     128,
     {.opcode = IBV_WR_RDMA_WRITE, .bytes = kLargeBytes, .path_mtu = IBV_MTU_4096, .depth = 16}},
    {"read_64KiB_mtu4096",
     128,
     {.opcode = IBV_WR_RDMA_READ, .bytes = kLargeBytes, .path_mtu = IBV_MTU_4096, .depth = 16}},
    {"write_64KiB_extended", 128, large_write("none")},
    {"write_64KiB_static_rate", 128, large_write("static_rate")},
    {"write_64KiB_dcqcn", 128, large_write("dcqcn")},
    {"write_64KiB_dctcp", 128, large_write("dctcp")},
    {"write_64KiB_ldcp", 128, large_write("ldcp")},
    {"write_64_through_switch", 4096, {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .through_switch = true}},
    {"write_64_through_switch_one_at_a_time",
     1024,
     {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .through_switch = true, .depth = 1}},
    {"write_64_shm", 4096, {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .shared_memory = true}},
    {"send_64_shm", 4096, {.opcode = IBV_WR_SEND, .bytes = 64, .shared_memory = true}},
    {"write_64_shm_one_at_a_time",
     1024,
     {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .shared_memory = true, .depth = 1}},
    {"write_64KiB_shm",
     128,
     {.opcode = IBV_WR_RDMA_WRITE,
      .bytes = kLargeBytes,
      .path_mtu = IBV_MTU_4096,
      .shared_memory = true,
      .depth = 16}},
    {"write_64_shm_through_switch",
     4096,
     {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64, .through_switch = true, .shared_memory = true}},
};

void count(const Workload& workload) {
  LoopbackConfig config = workload.config;
  config.virtual_time = true;
  Loopback loopback(config);
  loopback.move(workload.messages / 4);
  const uint64_t packets = workload.messages * loopback.packets_per_message();
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  loopback.move(workload.messages);
  CALLGRIND_DUMP_STATS_AT(workload.name);
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("%s %lu %lu\n", workload.name, workload.messages, packets);
}

int run(int argc, char** argv) {
  bool found = argc < 2;
  for (const Workload& workload : kWorkloads) {
    if (argc > 1 && std::string_view(argv[1]) != workload.name) continue;
    found = true;
    try {
      count(workload);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "budget: %s: %s\n", workload.name, failure.what());
      return 1;
    }
  }
  if (!found) std::fprintf(stderr, "budget: unknown workload %s\n", argv[1]);
  return found ? 0 : 1;
}

}  // namespace
}  // namespace roci::bench

int main(int argc, char** argv) { return roci::bench::run(argc, argv); }
