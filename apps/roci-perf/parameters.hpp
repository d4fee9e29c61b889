// What both sides of a test must agree on. The client's word counts; the server refuses what contradicts an
// option that it was given itself.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace roci::perf {

using Json = nlohmann::json;

enum class Operation : uint8_t { kWrite, kRead, kSend };
enum class Mode : uint8_t { kBandwidth, kLatency };
const char* to_string(Operation operation);  // "write"
const char* to_string(Mode mode);            // "bw"

inline constexpr uint64_t kLargestMessage = uint64_t{1} << 30;
inline constexpr uint32_t kMostQueuePairs = 100'000;
inline constexpr uint32_t kDeepestQueue = 16384;

struct Parameters {
  Operation operation = Operation::kWrite;
  Mode mode = Mode::kBandwidth;
  std::vector<uint64_t> sizes{65536};  // message sizes in bytes, one round each
  uint64_t iterations = 5000;          // messages of each queue pair; unused when duration is set
  bool iterations_given = false;       // else large sizes take fewer, see iterations_for()
  double duration = 0;                 // seconds of a round; 0 counts messages
  uint32_t queue_pairs = 1;
  uint32_t mtu = 0;         // path MTU in bytes; 0 is the largest that both ports carry
  uint32_t tx_depth = 128;  // messages a queue pair has outstanding
  uint32_t rx_depth = 512;  // receives a queue pair has posted
  uint32_t warm_up = 0;     // messages before the measurement
  bool verify = false;
  uint64_t seed = 1;  // of the bytes that --verify sends

  // Receives that a queue pair needs room for: only SEND takes any.
  [[nodiscard]] uint32_t receives() const { return operation == Operation::kSend ? rx_depth : 1; }

  // Messages of each queue pair in a round. Unless -n was given, no more than makes 1 GiB, so that the large
  // sizes of -a do not take minutes.
  [[nodiscard]] uint64_t iterations_for(uint64_t size) const;
};

// How the messages of one size lie in memory: each side has `out_slots` for what it sends or offers and
// `in_slots` for what arrives, per queue pair. Both sides compute the same.
struct Layout {
  uint64_t size = 0;    // of a message
  uint64_t stride = 0;  // from slot to slot
  uint32_t out_slots = 1;
  uint32_t in_slots = 1;
  [[nodiscard]] uint64_t queue_pair_bytes() const { return stride * (uint64_t{out_slots} + in_slots); }
};
Layout layout_for(const Parameters& parameters, uint64_t size);

// The slot of message `number`. A division takes as long as half of posting the message.
constexpr uint64_t slot_of(uint64_t number, uint64_t slots) {
  return (slots & (slots - 1)) == 0 ? number & (slots - 1) : number % slots;
}

// Whether every value is within its limits; the sentence names the option.
Status validate(const Parameters& parameters);

Json to_json(const Parameters& parameters);
Result<Parameters> parameters_from_json(const Json& json);

// What the server runs with: the client's parameters, unless they contradict an option in `given` (long names
// without dashes, as "tx-depth") that this side was started with.
Result<Parameters> agree(const Parameters& mine, const std::set<std::string>& given,
                         const Parameters& theirs);

}  // namespace roci::perf
