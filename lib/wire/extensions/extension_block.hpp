// Extension block as values in host byte order, to build blocks, and for tests and tools. The data path reads blocks in
// place (extensions.hpp).
#pragma once

#include "wire/extensions/extensions.hpp"

namespace roci {

struct CeEchoValues {
  uint32_t packets = 0;
  uint32_t marked = 0;
  friend bool operator==(const CeEchoValues&, const CeEchoValues&) = default;
};
struct TimestampEchoValues {
  uint64_t time = 0;
  uint32_t hold = 0;
  uint32_t host_delay = 0;
  friend bool operator==(const TimestampEchoValues&, const TimestampEchoValues&) = default;
};
struct RxWindowValues {
  uint32_t bytes = 0;
  Psn psn;
  friend bool operator==(const RxWindowValues&, const RxWindowValues&) = default;
};
struct FlowsValues {
  bool last_hop = false;
  uint32_t count = 0;  // 24 bits; larger values are written as the maximum
  friend bool operator==(const FlowsValues&, const FlowsValues&) = default;
};
struct RateValues {
  static constexpr uint64_t kUnit = 100'000;  // b/s

  bool delta = false;
  // In kUnit. Range: 0 to 2^28 - 1, for a delta -2^27 to 2^27 - 1; other values are written as the nearest one in
  // range.
  int32_t rate = 0;
  friend bool operator==(const RateValues&, const RateValues&) = default;
};
struct IntEchoValues {
  uint8_t flags = 0;  // IntEchoHeader::kDelayed and so on; 4 bits
  uint16_t age = 0;   // µs
  uint8_t hop_count = 0;
  std::array<IntHopValues, kMaxIntHops> hops{};  // newest first; those from hop_count on are ignored
  friend bool operator==(const IntEchoValues& a, const IntEchoValues& b);
};
struct SackValues {
  Psn psn;
  uint64_t kept = 0;
  friend bool operator==(const SackValues&, const SackValues&) = default;
};
struct AuthValues {
  uint32_t sequence = 0;
  uint64_t mac = 0;
  friend bool operator==(const AuthValues&, const AuthValues&) = default;
};

struct ExtensionBlock {
  std::optional<Qpn> source_qp;
  std::optional<CeEchoValues> ce_echo;
  std::optional<Lsn> lsn;
  std::optional<uint64_t> timestamp;
  std::optional<TimestampEchoValues> timestamp_echo;
  std::optional<RxWindowValues> rx_window;
  std::optional<FlowsValues> flows;
  std::optional<RateValues> rate;
  std::optional<IntEchoValues> int_echo;
  std::optional<SackValues> sack;
  std::optional<AuthValues> auth;

  [[nodiscard]] uint16_t types() const;
  [[nodiscard]] uint32_t bytes() const;  // of the block; 0 without values
  friend bool operator==(const ExtensionBlock&, const ExtensionBlock&) = default;
};

// Writes the block to the start of `out` and returns its length. Returns 0, without writing, if `out` is too small or
// the block has no values.
uint32_t write_extensions(const ExtensionBlock& block, std::span<uint8_t> out);

// `view` must be accepted.
ExtensionBlock read_extensions(const ExtensionView& view);

}  // namespace roci
