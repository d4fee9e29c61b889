// Syndrome of an AETH (IBTA 9.7.5.2), and the time codes of RNR NAKs and ACK timeouts.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.hpp"

namespace roci {

enum class AethKind : uint8_t { kAck = 0, kRnrNak = 1, kReserved = 2, kNak = 3 };  // bits 6:5

enum class NakCode : uint8_t {
  kPsnSequenceError = 0,
  kInvalidRequest = 1,
  kRemoteAccessError = 2,
  kRemoteOperationalError = 3,
  kInvalidRdRequest = 4,
};

// Syndrome of an ACK without end-to-end credits, as RoCE devices send it.
inline constexpr uint8_t kSyndromeAck = 0x1f;

constexpr AethKind aeth_kind(uint8_t syndrome) { return static_cast<AethKind>(syndrome >> 5 & 3); }
constexpr uint8_t aeth_value(uint8_t syndrome) { return syndrome & 0x1f; }
constexpr uint8_t nak_syndrome(NakCode code) {
  return static_cast<uint8_t>(0x60 | static_cast<uint8_t>(code));
}
constexpr uint8_t rnr_syndrome(uint8_t timer) { return static_cast<uint8_t>(0x20 | (timer & 0x1f)); }

// Time for which a requester waits after an RNR NAK with this 5-bit timer code (IBTA table 45). Code 0 is the longest
// time.
constexpr Nanos rnr_delay(uint8_t code) {
  constexpr std::array<int64_t, 32> kMicros = {655360, 10,    20,    30,     40,     60,     80,     120,
                                               160,    240,   320,   480,    640,    960,    1280,   1920,
                                               2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                               40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return Nanos{kMicros[code & 0x1f] * 1000};
}

// Local ACK timeout: 4.096 us * 2^code; code 0 disables it (IBTA 9.7.6.1.3).
constexpr Nanos ack_timeout(uint8_t code) {
  return (code & 0x1f) == 0 ? kNever : Nanos{4096LL << (code & 0x1f)};
}

}  // namespace roci
