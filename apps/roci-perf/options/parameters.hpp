// Test parameters that both sides must agree on. The client's values apply; the server rejects values that contradict
// its own command line.
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
inline constexpr uint32_t kMaxQueuePairs = 100'000;
inline constexpr uint32_t kDeepestQueue = 16384;

struct Parameters {
  Operation operation = Operation::kWrite;
  Mode mode = Mode::kBandwidth;
  std::vector<uint64_t> sizes{65536};  // message sizes in bytes, one round per size
  uint64_t iterations = 5000;          // messages per queue pair; unused with a duration
  bool iterations_given = false;       // false: large sizes use fewer, see iterations_for()
  double duration = 0;                 // seconds per round; 0: count messages
  uint32_t queue_pairs = 1;
  uint32_t mtu = 0;         // path MTU in bytes; 0: the largest that both ports support
  uint32_t tx_depth = 128;  // outstanding messages per queue pair
  uint32_t rx_depth = 512;  // posted receives per queue pair
  uint32_t warm_up = 0;     // messages before the measurement
  bool verify = false;
  uint64_t seed = 1;  // of the pattern for --verify

  // Receive queue size of a queue pair; only SEND consumes receives.
  [[nodiscard]] uint32_t receives() const { return operation == Operation::kSend ? rx_depth : 1; }

  // Messages per queue pair in a round. Without -n limited to 1 GiB per round (at least 16 messages), to keep the run
  // time of -a short.
  [[nodiscard]] uint64_t iterations_for(uint64_t size) const;
};

// Memory layout of the messages of one size. Per queue pair, each side has `out_slots` for data that it sends or the
// peer reads, and `in_slots` for received data. Both sides compute the same layout.
struct Layout {
  uint64_t size = 0;    // bytes of a message
  uint64_t stride = 0;  // bytes from slot to slot
  uint32_t out_slots = 1;
  uint32_t in_slots = 1;
  [[nodiscard]] uint64_t queue_pair_bytes() const { return stride * (uint64_t{out_slots} + in_slots); }
};
Layout layout_for(const Parameters& parameters, uint64_t size);

// The slot of message `number`. The division is avoided because it takes half as long as posting the message.
constexpr uint64_t slot_of(uint64_t number, uint64_t slots) {
  return (slots & (slots - 1)) == 0 ? number & (slots - 1) : number % slots;
}

// Validates the range of every value. The error names the option.
Status validate(const Parameters& parameters);

Json to_json(const Parameters& parameters);
Result<Parameters> parameters_from_json(const Json& json);

// Returns the parameters of the server: those of the client, unless they contradict an option in `given` (long names
// without dashes, for example "tx-depth") of the server's command line.
Result<Parameters> agree(const Parameters& mine, const std::set<std::string>& given,
                         const Parameters& of_client);

}  // namespace roci::perf
