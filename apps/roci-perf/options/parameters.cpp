#include "roci-perf/options/parameters.hpp"

#include <algorithm>
#include <cmath>

namespace roci::perf {
namespace {

// Memory for the slots of one queue pair in one direction. Without --verify, slots may be overwritten while their
// messages are in flight, and a small number of slots stays in the cache.
constexpr uint64_t kVerifiedBytes = uint64_t{32} << 20;
constexpr uint64_t kCachedBytes = uint64_t{64} << 10;
constexpr uint64_t kBytesOfARound = uint64_t{1} << 30;
constexpr uint64_t kFewestIterations = 16;
// A ping-pong reuses a slot only after the message in it has completed. With this number of slots it does not wait for
// that.
constexpr uint32_t kLatencySlots = 8;

Status in_range(const char* option, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return {};
  return fail(std::string(option) + " is " + std::to_string(value) + "; allowed are " + std::to_string(low) +
              " to " + std::to_string(high));
}

std::string sizes_text(const std::vector<uint64_t>& sizes) {
  if (sizes.size() == 1) return std::to_string(sizes.front());
  return std::to_string(sizes.front()) + " to " + std::to_string(sizes.back());
}

Status contradiction(const std::string& option, const std::string& mine, const std::string& other) {
  return fail("client and server have different parameters: " + option + " is " + mine +
              " on the server and " + other + " on the client; use the same value, or omit it on the server");
}

}  // namespace

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::kWrite:
      return "write";
    case Operation::kRead:
      return "read";
    case Operation::kSend:
      return "send";
  }
  return "unknown";
}

const char* to_string(Mode mode) { return mode == Mode::kBandwidth ? "bw" : "lat"; }

uint64_t Parameters::iterations_for(uint64_t size) const {
  if (iterations_given || mode == Mode::kLatency) return iterations;
  const uint64_t enough = kBytesOfARound / (std::max<uint64_t>(size, 1) * queue_pairs);
  return std::min(iterations, std::max(enough, kFewestIterations));
}

Layout layout_for(const Parameters& p, uint64_t size) {
  Layout layout;
  layout.size = size;
  layout.stride = (size + 63) / 64 * 64;  // each message starts at a cache line
  const uint64_t budget = p.verify ? std::max(kVerifiedBytes / p.queue_pairs, kCachedBytes) : kCachedBytes;
  const auto fitting = [&](uint32_t wanted) {
    return static_cast<uint32_t>(std::clamp<uint64_t>(budget / layout.stride, 1, wanted));
  };
  if (p.mode == Mode::kLatency) {
    layout.out_slots = fitting(kLatencySlots);
    layout.in_slots = p.operation == Operation::kSend ? fitting(kLatencySlots) : 1;
  } else {
    layout.out_slots = fitting(p.tx_depth);
    layout.in_slots = p.operation == Operation::kSend ? fitting(p.rx_depth) : layout.out_slots;
  }
  return layout;
}

Status validate(const Parameters& p) {
  if (p.sizes.empty()) return fail("a message size is required");
  for (const uint64_t size : p.sizes) ROCI_TRY(in_range("--size", size, 1, kLargestMessage));
  ROCI_TRY(in_range("--iters", p.iterations, 1, 1'000'000'000));
  ROCI_TRY(in_range("--qp", p.queue_pairs, 1, kMaxQueuePairs));
  ROCI_TRY(in_range("--tx-depth", p.tx_depth, 1, kDeepestQueue));
  ROCI_TRY(in_range("--rx-depth", p.rx_depth, 1, kDeepestQueue));
  ROCI_TRY(in_range("--warm-up", p.warm_up, 0, 1'000'000));
  if (p.mtu != 0 && p.mtu != 256 && p.mtu != 512 && p.mtu != 1024 && p.mtu != 2048 && p.mtu != 4096) {
    return fail("--mtu is " + std::to_string(p.mtu) + "; allowed are 256, 512, 1024, 2048 and 4096");
  }
  if (!std::isfinite(p.duration) || p.duration < 0 || p.duration > 86400) {
    return fail("--duration is " + std::to_string(p.duration) + " seconds; allowed are 0 to 86400");
  }
  if (p.mode == Mode::kLatency && p.queue_pairs != 1)
    return fail("latency is measured with one queue pair; --qp is " + std::to_string(p.queue_pairs));
  return {};
}

Json to_json(const Parameters& p) {
  return {{"operation", to_string(p.operation)},
          {"mode", to_string(p.mode)},
          {"sizes", p.sizes},
          {"iterations", p.iterations},
          {"iterations_given", p.iterations_given},
          {"duration", p.duration},
          {"queue_pairs", p.queue_pairs},
          {"mtu", p.mtu},
          {"tx_depth", p.tx_depth},
          {"rx_depth", p.rx_depth},
          {"warm_up", p.warm_up},
          {"verify", p.verify},
          {"seed", p.seed}};
}

Result<Parameters> parameters_from_json(const Json& json) {
  Parameters p;
  try {
    const auto operation = json.at("operation").get<std::string>();
    const auto mode = json.at("mode").get<std::string>();
    if (operation == "write") {
      p.operation = Operation::kWrite;
    } else if (operation == "read") {
      p.operation = Operation::kRead;
    } else if (operation == "send") {
      p.operation = Operation::kSend;
    } else {
      return fail("the peer requests the unknown operation \"" + operation + "\"");
    }
    if (mode != "bw" && mode != "lat") return fail("the peer requests the unknown mode \"" + mode + "\"");
    p.mode = mode == "bw" ? Mode::kBandwidth : Mode::kLatency;
    json.at("sizes").get_to(p.sizes);
    json.at("iterations").get_to(p.iterations);
    json.at("iterations_given").get_to(p.iterations_given);
    json.at("duration").get_to(p.duration);
    json.at("queue_pairs").get_to(p.queue_pairs);
    json.at("mtu").get_to(p.mtu);
    json.at("tx_depth").get_to(p.tx_depth);
    json.at("rx_depth").get_to(p.rx_depth);
    json.at("warm_up").get_to(p.warm_up);
    json.at("verify").get_to(p.verify);
    json.at("seed").get_to(p.seed);
  } catch (const Json::exception& e) {
    return fail(std::string("invalid parameters of the peer: ") + e.what());
  }
  if (p.sizes.size() > 64)
    return fail("the peer requests " + std::to_string(p.sizes.size()) + " sizes; at most 64 are allowed");
  if (auto valid = validate(p); !valid) return fail(valid.error().within("the peer's parameters"));
  return p;
}

Result<Parameters> agree(const Parameters& mine, const std::set<std::string>& given,
                         const Parameters& of_client) {
  const std::string my_test = std::string(to_string(mine.operation)) + " " + to_string(mine.mode);
  const std::string their_test =
      std::string(to_string(of_client.operation)) + " " + to_string(of_client.mode);
  if (my_test != their_test) {
    return fail("client and server run different tests: the server runs \"" + my_test +
                "\" and the client \"" + their_test + "\"");
  }
  const auto compare = [&](const char* option, const auto& my_value, const auto& their_value) -> Status {
    if (!given.contains(option) || my_value == their_value) return {};
    return contradiction(std::string("--") + option, std::to_string(my_value), std::to_string(their_value));
  };
  if ((given.contains("size") || given.contains("all")) && mine.sizes != of_client.sizes) {
    ROCI_TRY(contradiction(given.contains("all") ? "--all" : "--size", sizes_text(mine.sizes),
                           sizes_text(of_client.sizes)));
  }
  ROCI_TRY(compare("iters", mine.iterations, of_client.iterations));
  ROCI_TRY(compare("duration", mine.duration, of_client.duration));
  ROCI_TRY(compare("qp", mine.queue_pairs, of_client.queue_pairs));
  ROCI_TRY(compare("tx-depth", mine.tx_depth, of_client.tx_depth));
  ROCI_TRY(compare("rx-depth", mine.rx_depth, of_client.rx_depth));
  ROCI_TRY(compare("seed", mine.seed, of_client.seed));
  if (given.contains("verify") && !of_client.verify) ROCI_TRY(contradiction("--verify", "on", "off"));
  if (of_client.mtu != 0) ROCI_TRY(compare("mtu", mine.mtu, of_client.mtu));
  Parameters agreed = of_client;
  if (agreed.mtu == 0 && given.contains("mtu")) agreed.mtu = mine.mtu;
  return agreed;
}

}  // namespace roci::perf
