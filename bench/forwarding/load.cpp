// roci-forwarding-load: sends frames into one memif port of a switch and counts those that leave by another. Memory is
// prepared in advance (memif_client.hpp), so that the switch determines the rate; `waiting` shows whether it did.
//
//   roci-forwarding-load IN OUT [--size BYTES…] [--seconds S] [--longer BYTES] [--marked] [--switch-queues N]
//   roci-forwarding-load --device-core N [--size BYTES…] [--seconds S]
//
// Frames are RoCEv2, ECN-capable, of 64 flows between eight hosts at each port. The second form measures the limit: a
// thread on another core receives and sends frames without accessing them. Prints lines of a name and a number.
#include <pthread.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "forwarding/memif_client.hpp"
#include "support/ports/frames.hpp"
#include "wire/headers/checksum.hpp"

namespace roci::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr uint16_t kOffered = 256;  // frames per burst
constexpr uint16_t kReturned = 64;  // buffers per burst
// for the switch to start, and then for the first frame
constexpr auto kPatience = std::chrono::seconds{20};
constexpr auto kAgain = std::chrono::milliseconds{50};  // between two announcements of hosts
constexpr auto kWarm = std::chrono::milliseconds{300};
constexpr uint64_t kLooked = 20'000;  // frames examined
// The rate is the median of the undisturbed slices. A slice is disturbed if the system ran another program on a core.
// It does so for milliseconds, while a running switch is never silent for kSilence.
constexpr auto kSlice = std::chrono::milliseconds{1};
constexpr auto kSilence = std::chrono::microseconds{250};
constexpr size_t kFewest = 20;                      // slices required for a rate
constexpr uint8_t kHosts = 8;                       // at each port
constexpr uint32_t kAround = 14 + 20 + 8 + 12 + 4;  // overhead: Ethernet, IPv4, UDP, BTH, ICRC
constexpr uint8_t kEct0 = 2;

struct Options {
  std::string in, out;
  // without the FCS; the payload is a multiple of 4 bytes, so frames may be 2 bytes shorter
  std::vector<uint32_t> sizes{64, 1024};
  double seconds = 2;
  unsigned switch_queues = 1;
  std::optional<unsigned> device_core;
  uint32_t longer = 0;  // minimum number of bytes added to each frame
  bool marked = false;  // some frames must be marked with CE
};

MacAddress mac_of(uint8_t side, uint8_t host) { return {{2, 0, 0, 0, side, host}}; }
IpAddress address_of(uint8_t side, uint8_t host) {
  return IpAddress::from_v4(0x0a000000U | static_cast<uint32_t>(side) << 8 | (host + 1U));
}

// A frame from a host at one port to a host at the other; `number` selects one of 64 flows.
std::vector<uint8_t> frame(uint8_t from, uint8_t to, uint16_t number, uint32_t size) {
  const auto source = static_cast<uint8_t>(number % kHosts);
  const auto destination = static_cast<uint8_t>(number / kHosts % kHosts);
  return test::roce_bytes({.destination = mac_of(to, destination),
                           .source = mac_of(from, source),
                           .from = address_of(from, source),
                           .to = address_of(to, destination),
                           .traffic_class = kEct0,
                           .payload = (std::max(size, kAround) - kAround) / 4 * 4,
                           .number = number});
}

void fill(MemifClient& port, uint8_t from, uint8_t to, uint32_t size) {
  for (uint16_t i = 0; i < MemifClient::kSize; ++i) port.prepare(i, frame(from, to, i, size));
}

// Properties of received frames.
struct Looked {
  uint64_t frames = 0, marked = 0, wrong = 0;
  size_t shortest = SIZE_MAX, longest = 0;

  void at(std::span<const uint8_t> bytes) {
    constexpr size_t kHeaders = sizeof(EthernetHeader) + sizeof(Ipv4Header);
    ++frames;
    shortest = std::min(shortest, bytes.size());
    longest = std::max(longest, bytes.size());
    if (bytes.size() < kHeaders ||
        inet_checksum(bytes.data() + sizeof(EthernetHeader), sizeof(Ipv4Header)) != 0) {
      ++wrong;
    } else if ((bytes[sizeof(EthernetHeader) + 1] & 3U) == 3) {
      ++marked;
    }
  }
};

struct Measured {
  double rate = 0;         // frames/s received
  double waiting = 0;      // fraction of the attempts to send that found the ring full
  double undisturbed = 0;  // fraction of the slices
  Looked looked;
};

class Load {
 public:
  Load(MemifClient& in, MemifClient& out) : in_(in), out_(out) {}

  // Announces the hosts at the output port, so that the switch learns their addresses. Waits for the first frames.
  Status begin() {
    fill(out_, 1, 0, 64);
    const auto deadline = Clock::now() + kPatience;
    for (auto next = Clock::now(); in_.receive(1) == 0;) {
      if (Clock::now() > deadline) return fail("no frame from the second port to the first was received");
      if (Clock::now() < next) continue;
      out_.send(kHosts);
      next += kAgain;
    }
    return {};
  }

  // Waits for frames in flight. A memif server may access unmapped memory if its client exits during a burst.
  void settle() {
    constexpr auto kQuiet = std::chrono::milliseconds{10};
    const auto patience = Clock::now() + kPatience;
    for (auto last = Clock::now(); Clock::now() < std::min(last + kQuiet, patience);) {
      if (in_.receive(1) + out_.receive(1) > 0 || in_.waiting() + out_.waiting() > 0) last = Clock::now();
    }
  }

  Result<Measured> measure(uint32_t size, double seconds, bool look) {
    settle();
    if (in_.waiting() > 0) return fail("the switch no longer accepts frames");
    fill(in_, 0, 1, size);
    Measured out;
    const auto patience = Clock::now() + kPatience;
    while (look && out.looked.frames < kLooked) {
      if (Clock::now() > patience) return fail("no frame from the first port to the second was received");
      look_at(out.looked);
    }
    if (seconds <= 0) return out;
    run_for(kWarm);
    std::vector<double> rates;
    uint64_t slices = 0, looks = 0, full = 0;
    for (const auto end = Clock::now() + Seconds{seconds}; Clock::now() < end; ++slices) {
      const Slice slice = run_for(kSlice);
      if (slice.silence > kSilence) continue;
      rates.push_back(static_cast<double>(slice.received) / Seconds{slice.span}.count());
      looks += slice.looks;
      full += slice.full;
    }
    if (!in_.connected() || !out_.connected()) return fail("the switch has exited");
    if (rates.size() < kFewest) {
      return fail("in " + std::to_string(slices - rates.size()) + " of " + std::to_string(slices) +
                  " ms the switch sent nothing for " + std::to_string(kSilence.count()) +
                  " us: it drops all frames, or other programs use its core");
    }
    const auto middle = rates.begin() + static_cast<ptrdiff_t>(rates.size() / 2);
    std::nth_element(rates.begin(), middle, rates.end());
    out.rate = *middle;
    out.waiting = static_cast<double>(full) / static_cast<double>(looks);
    out.undisturbed = static_cast<double>(rates.size()) / static_cast<double>(slices);
    return out;
  }

 private:
  struct Slice {
    uint64_t received = 0, looks = 0, full = 0;
    Clock::duration span{0};
    Clock::duration silence{0};  // longest interval without a frame
  };

  Slice run_for(Clock::duration span) {
    constexpr unsigned kRounds = 16;  // between two reads of the clock
    Slice slice;
    const auto begin = Clock::now();
    for (auto last_received = begin; slice.span < span;) {
      const uint64_t before = slice.received;
      for (unsigned i = 0; i < kRounds; ++i) {
        slice.received += out_.receive(kReturned);
        send(slice);
      }
      const auto now = Clock::now();
      slice.span = now - begin;
      slice.silence = std::max(slice.silence, now - last_received);
      if (slice.received > before) last_received = now;
    }
    return slice;
  }

  void look_at(Looked& looked) {
    out_.receive([&](std::span<const uint8_t> bytes) { looked.at(bytes); });
    Slice unused;
    send(unused);
  }

  void send(Slice& slice) {
    const bool full = in_.send(kOffered) == 0;
    ++slice.looks;
    slice.full += full;
    in_.receive(1);  // frames sent by the switch itself, if any
    // Each check moves a cache line away from the switch's core.
    if (full) {
      for (unsigned i = 0; i < 8; ++i) __builtin_ia32_pause();
    }
  }

  MemifClient& in_;
  MemifClient& out_;
};

Status check(const Looked& looked, uint32_t size, const Options& options) {
  const size_t sent = frame(0, 1, 0, size).size();
  if (looked.wrong > 0) {
    return fail(std::to_string(looked.wrong) + " of " + std::to_string(looked.frames) +
                " frames were received with an invalid IPv4 header");
  }
  if (looked.shortest < sent + options.longer) {
    return fail("a frame of " + std::to_string(sent) + " bytes was received with " +
                std::to_string(looked.shortest) + ", but " + std::to_string(options.longer) +
                " additional bytes are required");
  }
  if (options.marked && looked.marked == 0) return fail("no received frame was marked");
  return {};
}

void report(const Measured& measured, uint32_t size, const Options& options) {
  if (options.seconds > 0) {
    std::printf("%u_frames_per_second %.0f\n", size, measured.rate);
    std::printf("%u_waiting_percent %.1f\n", size, measured.waiting * 100);
    std::printf("%u_undisturbed_percent %.1f\n", size, measured.undisturbed * 100);
  }
  if (!options.device_core) {
    const Looked& looked = measured.looked;
    std::printf("%u_bytes_in %zu\n", size, frame(0, 1, 0, size).size());
    std::printf("%u_bytes_out %zu\n", size, looked.longest);
    std::printf("%u_marked_percent %.2f\n", size,
                static_cast<double>(looked.marked) / static_cast<double>(looked.frames) * 100);
  }
  std::fflush(stdout);
}

Status measure_all(const Options& options, Load& load) {
  for (const uint32_t size : options.sizes) {
    const auto result = load.measure(size, options.seconds, !options.device_core);
    if (!result) return fail(result.error());
    if (!options.device_core) ROCI_TRY(check(result->looked, size, options));
    report(*result, size, options);
  }
  return {};
}

// A device that processes no frames.
class Nothing {
 public:
  Nothing(MemifClient& in, MemifClient& out, unsigned core)
      : thread_{[&in, &out, core, this] { serve(in, out, core); }} {}
  Nothing(const Nothing&) = delete;
  Nothing& operator=(const Nothing&) = delete;
  ~Nothing() {
    stop_ = true;
    thread_.join();
  }

 private:
  void serve(MemifClient& in, MemifClient& out, unsigned core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    while (!stop_) {
      if (const uint16_t frames = in.take_all(); frames > 0) out.answer(frames, 64);
      if (const uint16_t frames = out.take_all(); frames > 0) in.answer(frames, 64);
      __builtin_ia32_pause();
    }
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

Status run(const Options& options) {
  auto in = MemifClient::create(options.switch_queues);
  if (!in) return fail(in.error());
  auto out = MemifClient::create(options.switch_queues);
  if (!out) return fail(out.error());
  std::optional<Nothing> nothing;
  if (options.device_core) {
    nothing.emplace(**in, **out, *options.device_core);
  } else {
    const auto deadline = Clock::now() + kPatience;
    ROCI_TRY((*in)->connect(options.in, deadline));
    ROCI_TRY((*out)->connect(options.out, deadline));
  }
  Load load{**in, **out};
  ROCI_TRY(load.begin());
  Status measured = measure_all(options, load);
  load.settle();
  return measured;
}

int main_(int argc, char** argv) {
  CLI::App app{"Sends frames to one memif port of a switch and counts the frames from another port."};
  Options options;
  app.add_option("in", options.in, "socket of the port to which frames are sent")->type_name("PATH");
  app.add_option("out", options.out, "socket of the port from which frames are received")->type_name("PATH");
  app.add_option("--size", options.sizes, "frame sizes in bytes")->check(CLI::Range(64, 1500));
  app.add_option("--seconds", options.seconds, "seconds per frame size; 0: only verify the received frames")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--longer", options.longer, "fail unless this number of bytes is added to each frame");
  app.add_flag("--marked", options.marked, "fail unless some frames are received with CE");
  app.add_option("--switch-queues", options.switch_queues, "transmit queues of the switch per port")
      ->check(CLI::Range(1, 16));
  app.add_option("--device-core", options.device_core, "no switch: an idle device on this CPU");
  CLI11_PARSE(app, argc, argv);
  if (options.device_core.has_value() == !options.out.empty()) {
    std::fprintf(stderr, "roci-forwarding-load: two sockets or --device-core are required\n");
    return 1;
  }
  if (const Status status = run(options); !status) {
    std::fprintf(stderr, "roci-forwarding-load: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace roci::bench

int main(int argc, char** argv) { return roci::bench::main_(argc, argv); }
