// Messages end to end with both hosts (and the switch) on one core. Rates are per second of CPU time. The peer is the
// cost of the same bytes in the same packets without a protocol: rings, copies and CRCs.
#include "loopback/loopback.hpp"

#include <exception>
#include <string>

#include "support/against.hpp"

namespace roci::bench {
namespace {

void run(benchmark::State& state, const LoopbackConfig& config, const std::string& peer) {
  try {
    Loopback loopback(config);
    const uint64_t frames_before = loopback.frames_sent();
    uint64_t messages = 0;
    for (auto _ : state) messages += loopback.round();
    const auto packets = static_cast<double>(messages * loopback.packets_per_message());
    const auto bytes = static_cast<double>(messages) * config.bytes;
    state.counters["messages_per_second"] = rate(static_cast<double>(messages));
    state.counters["packets_per_second"] = rate(packets);
    state.counters["frames_per_second"] = rate(static_cast<double>(loopback.frames_sent() - frames_before));
    state.counters["Gb_per_second"] = rate(bytes * 8e-9);
    state.SetBytesProcessed(static_cast<int64_t>(bytes));
    if (config.one_lost_in == 0 && loopback.retransmissions() != 0)
      state.SkipWithError("packets were retransmitted without loss");
  } catch (const std::exception& failure) {
    state.SkipWithError(failure.what());
    return;
  }
  if (!peer.empty()) {
    against(state, {peer});
    return;
  }
  const uint32_t mtu = 128U << config.path_mtu;
  const std::string payload = "/" + std::to_string(std::min(config.bytes, mtu));
  against(state, {"limit_ring_copy_crc" + payload, "limit_copy_crc" + payload, "limit_ring" + payload});
}

struct Case {
  const char* name;
  LoopbackConfig config;
};
// 16 messages of 64 KiB are 1 MiB in flight, twice the window.
constexpr Case kCases[] = {
    {"write/64", {.opcode = IBV_WR_RDMA_WRITE, .bytes = 64}},
    {"send/64", {.opcode = IBV_WR_SEND, .bytes = 64}},
    {"write/64KiB/mtu1024", {.opcode = IBV_WR_RDMA_WRITE, .bytes = 65536, .depth = 16}},
    {"write/64KiB/mtu4096",
     {.opcode = IBV_WR_RDMA_WRITE, .bytes = 65536, .path_mtu = IBV_MTU_4096, .depth = 16}},
    {"read/64KiB/mtu1024", {.opcode = IBV_WR_RDMA_READ, .bytes = 65536, .depth = 16}},
    {"read/64KiB/mtu4096",
     {.opcode = IBV_WR_RDMA_READ, .bytes = 65536, .path_mtu = IBV_MTU_4096, .depth = 16}},
};

// Cost of extensions and additional acknowledgments, compared with the same messages without them; cost of a loss rate
// of 1/1000.
constexpr LoopbackConfig kSmall{.opcode = IBV_WR_RDMA_WRITE, .bytes = 64};
constexpr LoopbackConfig kLarge{.opcode = IBV_WR_RDMA_WRITE, .bytes = 65536, .depth = 16};
constexpr LoopbackConfig kLargeRead{.opcode = IBV_WR_RDMA_READ, .bytes = 65536, .depth = 16};

constexpr LoopbackConfig with(LoopbackConfig config, ExtensionConfig extensions,
                              uint32_t packets_per_ack = 64, uint32_t one_lost_in = 0) {
  config.extensions = extensions;
  config.packets_per_ack = packets_per_ack;
  config.one_lost_in = one_lost_in;
  return config;
}
constexpr ExtensionConfig kOff{.mode = ExtensionMode::kOff};
constexpr ExtensionConfig kAuto{.mode = ExtensionMode::kAuto};
constexpr ExtensionConfig kSigned{.mode = ExtensionMode::kAuto, .authenticate = true};
constexpr ExtensionConfig kTimed{.mode = ExtensionMode::kAuto, .timestamps = true};
constexpr ExtensionConfig kSelective{.mode = ExtensionMode::kAuto, .selective_repeat = true};

struct Variant {
  const char* name;
  const char* peer;
  LoopbackConfig config;
};
constexpr Variant kVariants[] = {
    {"write/64/ack_each", "write/64/direct", with(kSmall, kOff, 1)},
    {"write/64/extended", "write/64/direct", with(kSmall, kAuto)},
    {"write/64/extended_ack_each", "write/64/ack_each", with(kSmall, kAuto, 1)},
    {"write/64/signed_ack_each", "write/64/ack_each", with(kSmall, kSigned, 1)},
    {"write/64/timed", "write/64/direct", with(kSmall, kTimed)},
    {"write/64/selective", "write/64/direct", with(kSmall, kSelective)},
    {"write/64KiB/mtu1024/ack_each", "write/64KiB/mtu1024/direct", with(kLarge, kOff, 1)},
    {"write/64KiB/mtu1024/extended", "write/64KiB/mtu1024/direct", with(kLarge, kAuto)},
    {"write/64KiB/mtu1024/timed", "write/64KiB/mtu1024/direct", with(kLarge, kTimed)},
    {"write/64KiB/mtu1024/selective", "write/64KiB/mtu1024/direct", with(kLarge, kSelective)},
    {"read/64KiB/mtu1024/extended", "read/64KiB/mtu1024/direct", with(kLargeRead, kAuto)},
    {"write/64KiB/mtu1024/lossy", "write/64KiB/mtu1024/direct", with(kLarge, kOff, 64, 1000)},
    {"write/64KiB/mtu1024/lossy_selective", "write/64KiB/mtu1024/lossy", with(kLarge, kSelective, 64, 1000)},
};

const bool registered = [] {
  for (const Case& one : kCases) {
    for (const bool through_switch : {false, true}) {
      LoopbackConfig config = one.config;
      config.through_switch = through_switch;
      const std::string name = std::string(one.name) + (through_switch ? "/switch" : "/direct");
      benchmark::RegisterBenchmark(name.c_str(), run, config, "");
    }
  }
  for (const Variant& one : kVariants) benchmark::RegisterBenchmark(one.name, run, one.config, one.peer);
  return true;
}();

}  // namespace
}  // namespace roci::bench
