// MAC control frames of flow control: PAUSE (802.3 annex 31B) stops a whole link, priority-based flow control (PFC;
// 802.3 annex 31D, 802.1Q clause 36, formerly 802.1Qbb) stops single priorities. Both specify the duration in quanta; 0
// resumes transmission. The frames are neither tagged nor forwarded.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "wire/headers/headers.hpp"

namespace roci {

inline constexpr uint16_t kEtherTypeMacControl = 0x8808;
// The only destination of PFC and the usual one of PAUSE. Bridges do not forward it (802.1Q 8.6.3).
inline constexpr MacAddress kMacControlGroup{{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}};
inline constexpr unsigned kPriorities = 8;
inline constexpr uint32_t kPauseFrameBytes = 60;  // minimum Ethernet frame without FCS
inline constexpr uint16_t kMaxPauseQuanta = 0xffff;

struct PauseHeader {  // follows the Ethernet header
  Be16 opcode;
  Be16 value;  // PAUSE: quanta; PFC: class enable vector, priority n in bit n of the low byte
};
static_assert(sizeof(PauseHeader) == 4);
using PauseQuanta = std::array<Be16, kPriorities>;  // of PFC, follows PauseHeader
static_assert(sizeof(PauseQuanta) == 16);

enum class PauseKind : uint8_t { kLink, kPriority };

struct PauseMessage {
  MacAddress source;
  PauseKind kind = PauseKind::kPriority;
  // Bitmap of the priorities that the frame pauses or resumes, priority n in bit n. All priorities for PAUSE.
  uint8_t classes = 0;
  // Pause time of each priority, 0 for priorities not in `classes`. All equal for PAUSE.
  std::array<uint16_t, kPriorities> quanta{};

  [[nodiscard]] bool includes(unsigned priority) const { return (classes >> priority & 1) != 0; }
  friend bool operator==(const PauseMessage&, const PauseMessage&) = default;
};

// Result of parse_pause().
enum class PauseOutcome : uint8_t {
  kAccepted,
  kNotMacControl,     // another EtherType; also any tagged frame
  kTruncated,         // shorter than the fields of its opcode
  kUnknownOpcode,     // neither PAUSE nor PFC
  kOtherDestination,  // neither the group address nor, for PAUSE, the address of this station
};
inline constexpr unsigned kPauseOutcomeCount = 5;
std::string_view pause_outcome_name(PauseOutcome outcome);

struct ParsedPause {
  PauseOutcome outcome = PauseOutcome::kNotMacControl;
  PauseMessage message;
};

// `own` is the address of the receiving station, to which a PAUSE (but not PFC) may be addressed. The pad is ignored
// and may be missing, as on shared-memory ports. The reserved high byte of the class enable vector is ignored.
ParsedPause parse_pause(std::span<const uint8_t> frame, const MacAddress& own);

// Writes a complete padded frame to the group address.
void build_pause(const PauseMessage& message, std::span<uint8_t, kPauseFrameBytes> out);

// Conversions between time and quanta. A quantum is the time of 512 bits (802.3 31B.2). Both directions round up, so a
// sender never pauses shorter than requested. Conversion of quanta to time and back adds at most rate / 512 Gb/s
// quanta, rounded up. For a rate of 0 (no limit) a quantum has no duration.
constexpr Nanos pause_time(uint16_t quanta, BitsPerSec rate) {
  if (rate.value() == 0) return Nanos{0};
  const uint64_t bit_nanos = quanta * 512ULL * 1'000'000'000;  // below 2^55
  const uint64_t whole = bit_nanos / rate.value();
  return Nanos{static_cast<int64_t>(bit_nanos % rate.value() == 0 ? whole : whole + 1)};
}
// Returns kMaxPauseQuanta for longer times and for a rate of 0. Returns 0 for a time that is 0 or negative.
constexpr uint16_t pause_quanta(Nanos time, BitsPerSec rate) {
  if (time.count() <= 0) return 0;
  if (rate.value() == 0) return kMaxPauseQuanta;
  __extension__ using Wide = unsigned __int128;  // 2^63 ns at 2^64 b/s
  constexpr Wide kBitNanos = Wide{512} * 1'000'000'000;
  const Wide quanta = (static_cast<Wide>(time.count()) * rate.value() + kBitNanos - 1) / kBitNanos;
  return quanta > kMaxPauseQuanta ? kMaxPauseQuanta : static_cast<uint16_t>(quanta);
}

}  // namespace roci
