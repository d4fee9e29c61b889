// MAC control frames that stop a sender: PAUSE (802.3 annex 31B) stops the whole link, priority-based flow control
// (802.3 annex 31D, 802.1Q clause 36, once 802.1Qbb) single priorities. Both name a time in quanta; 0 lets the sender
// go on at once. Neither is tagged or forwarded.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "wire/headers.hpp"

namespace roci {

inline constexpr uint16_t kEtherTypeMacControl = 0x8808;
// The only destination of PFC, and the usual one of PAUSE. Bridges do not forward it (802.1Q 8.6.3).
inline constexpr MacAddress kMacControlGroup{{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}};
inline constexpr unsigned kPriorities = 8;
inline constexpr uint32_t kPauseFrameBytes = 60;  // the shortest Ethernet frame, without its FCS
inline constexpr uint16_t kMaxPauseQuanta = 0xffff;

struct PauseHeader {  // behind the Ethernet header
  Be16 opcode;
  Be16 value;  // PAUSE: the quanta; PFC: the class enable vector, priority n in bit n of the low byte
};
static_assert(sizeof(PauseHeader) == 4);
using PauseQuanta = std::array<Be16, kPriorities>;  // of PFC, behind PauseHeader
static_assert(sizeof(PauseQuanta) == 16);

enum class PauseKind : uint8_t { kLink, kPriority };

struct PauseMessage {
  MacAddress source;
  PauseKind kind = PauseKind::kPriority;
  // The priorities that are told something, priority n in bit n. All of them in a PAUSE.
  uint8_t classes = 0;
  // How long each of them stops. 0 for the others; in a PAUSE all the same.
  std::array<uint16_t, kPriorities> quanta{};

  [[nodiscard]] bool tells(unsigned priority) const { return (classes >> priority & 1) != 0; }
  friend bool operator==(const PauseMessage&, const PauseMessage&) = default;
};

// What parse_pause() made of a frame.
enum class PauseOutcome : uint8_t {
  kAccepted,
  kNotMacControl,     // another EtherType, a tag among them
  kTruncated,         // shorter than the fields of its opcode
  kUnknownOpcode,     // neither PAUSE nor PFC
  kOtherDestination,  // not for who reads it: MAC control is for the other end of the link alone
};
inline constexpr unsigned kPauseOutcomeCount = 5;
std::string_view pause_outcome_name(PauseOutcome outcome);

struct ParsedPause {
  PauseOutcome outcome = PauseOutcome::kNotMacControl;
  PauseMessage message;
};

// `own` is the receiving station's address, to which a PAUSE (but no PFC) may be sent as well. The pad is not looked at
// and may be missing, as on ports in memory; nor is the high byte of the class enable vector, which is reserved.
ParsedPause parse_pause(std::span<const uint8_t> frame, const MacAddress& own);

// Writes a whole frame, padded, to the group address.
void build_pause(const PauseMessage& message, std::span<uint8_t, kPauseFrameBytes> out);

// A quantum is the time of 512 bits (802.3 31B.2). Both directions round up: who is paused stays still for at least as
// long as was said, and who asks for a time gets at least that. There and back again a count grows by at most
// rate / 512 Gb/s, rounded up. A rate of 0, which means no limit, makes a quantum take no time.
constexpr Nanos pause_time(uint16_t quanta, BitsPerSec rate) {
  if (rate.value() == 0) return Nanos{0};
  const uint64_t bit_nanos = quanta * 512ULL * 1'000'000'000;  // below 2^55
  const uint64_t whole = bit_nanos / rate.value();
  return Nanos{static_cast<int64_t>(bit_nanos % rate.value() == 0 ? whole : whole + 1)};
}
// At most kMaxPauseQuanta, for times that are longer and when there is no limit; 0 for none or a negative one.
constexpr uint16_t pause_quanta(Nanos time, BitsPerSec rate) {
  if (time.count() <= 0) return 0;
  if (rate.value() == 0) return kMaxPauseQuanta;
  __extension__ using Wide = unsigned __int128;  // 2^63 ns at 2^64 b/s
  constexpr Wide kBitNanos = Wide{512} * 1'000'000'000;
  const Wide quanta = (static_cast<Wide>(time.count()) * rate.value() + kBitNanos - 1) / kBitNanos;
  return quanta > kMaxPauseQuanta ? kMaxPauseQuanta : static_cast<uint16_t>(quanta);
}

}  // namespace roci
