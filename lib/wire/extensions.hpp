// The CCX extension block: what two hosts that agreed on it (capability_mad.hpp) tell each other beyond the standard,
// as a row of type-length-values. docs/wire-extensions.md draws it and gives the reasons.
//
//   word 0     version 4 (= 1) | flags 4 (= 0) | words 8, this one included | types 16
//   word 1…    the values whose bits are set in `types`, lowest bit first
//
// The block stands directly behind the headers of the packet, before the payload, and BTH bit kExtension says that
// it is there. One table has the name, length and fields of every type; parsing, building, lengths, printing and
// the tests walk it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "wire/endian.hpp"
#include "wire/frame.hpp"
#include "wire/int_hop.hpp"

namespace roci {

// The number is the bit in `types` and thereby the place in the block.
enum class ExtensionType : uint8_t {
  kSourceQp = 0,  // first, so that a switch finds it at a fixed place
  kCeEcho = 1,
  kLsn = 2,
  kTimestamp = 3,
  kTimestampEcho = 4,
  kRxWindow = 5,
  kFlows = 6,
  kRate = 7,
  kIntEcho = 8,  // the only one of variable length
  kSack = 9,
  kAuth = 15,  // last, so that it covers all the others
};
constexpr uint16_t bit_of(ExtensionType type) {
  return static_cast<uint16_t>(1U << static_cast<unsigned>(type));
}

// One field of a type, for printers and tests.
struct ExtensionField {
  std::string_view name;
  uint8_t offset;  // of the big-endian word that holds it, from the start of the value
  uint8_t length;  // of that word in bytes
  uint8_t shift;   // of the field's lowest bit in the word
  uint8_t bits;
  bool hex;  // how people read it
};

struct ExtensionInfo {
  ExtensionType type;
  std::string_view name;   // as documents name it: "CE-ECHO"
  std::string_view field;  // as packet fields name it: "ce_echo"
  uint8_t words;           // of the fixed part
  uint8_t words_per_hop;   // times the number in the first byte; 0 for all but INT-ECHO
  std::span<const ExtensionField> fields;
  std::span<const ExtensionField> hop_fields;
  std::array<uint8_t, 16> reserved;  // bits of the fixed part that belong to no field and must be 0
};

inline constexpr uint8_t kExtensionVersion = 1;
inline constexpr uint8_t kMaxIntHops = 16;
inline constexpr uint32_t kExtensionHeaderBytes = 4;

std::span<const ExtensionInfo> extension_table();  // in ascending order of the bits
const ExtensionInfo* find_extension(unsigned bit);
uint16_t known_extensions();     // all bits of the table
uint32_t max_extension_bytes();  // of a block with everything in it
std::span<const ExtensionField> extension_header_fields();

// The block and its values as they lie in a packet.
struct ExtensionHeader {
  uint8_t version_flags = kExtensionVersion << 4;
  uint8_t words = 0;
  Be16 types;
};
struct SourceQp {
  uint8_t reserved = 0;
  Be24 qp;
};
struct CeEcho {
  Be32 packets;  // received on this queue pair since it was connected, modulo 2^32
  Be32 marked;   // of those, the ones with ECN = CE
};
struct LsnValue {
  Be64 lsn;  // data: of the first payload byte; ACK: all bytes below have arrived
};
struct Timestamp {
  Be64 time;  // of the sender's clock when the packet was handed to the port; the receiver only echoes it
};
struct TimestampEcho {
  Be64 time;        // of the packet that caused this one
  Be32 hold;        // between that packet's arrival and this one's departure, in the receiver's time unit
  Be32 host_delay;  // of that, waiting in the receiver's queues (Swift's end-host delay)
};
struct RxWindow {
  Be32 bytes;
  uint8_t reserved = 0;
  Be24 psn;  // of the packet from which the window counts
};
struct Flows {
  static constexpr uint8_t kLastHop = 1;  // the receiver's own link is the bottleneck
  uint8_t flags = 0;
  Be24 count;  // of queue pairs that have sent to the receiver of late
};
struct Rate {
  static constexpr uint32_t kDelta = 0x8000'0000;
  Be32 flags_rate;  // delta 1 | reserved 3 | rate 28 in units of 100 kb/s, two's complement in a delta
};
struct IntEchoHeader {
  static constexpr uint8_t kDelayed = 1;     // stands for several packets; of the latest of them
  static constexpr uint8_t kProbe = 2;       // from a probe, not from data
  static constexpr uint8_t kFromSwitch = 4;  // a switch sent it, the packet may not have arrived
  static constexpr uint8_t kIncomplete = 8;  // there were hops beyond those that are here
  uint8_t hops = 0;
  uint8_t flags = 0;
  Be16 age;  // µs since the packet with these hops arrived; 65535 for longer
};
struct Sack {
  static constexpr uint32_t kBits = 64;
  uint8_t reserved = 0;
  Be24 psn;  // of the lowest bit
  Be64
      kept;  // which of the packets from there on the receiver has, and keeps until the gap before them is filled
};
struct Auth {
  Be32 sequence;  // low half of the number of packets authenticated in this direction
  Be64 mac;
};
static_assert(sizeof(ExtensionHeader) == kExtensionHeaderBytes);
static_assert(sizeof(SourceQp) == 4 && sizeof(CeEcho) == 8 && sizeof(LsnValue) == 8 &&
              sizeof(Timestamp) == 8 && sizeof(TimestampEcho) == 16 && sizeof(RxWindow) == 8 &&
              sizeof(Flows) == 4 && sizeof(Rate) == 4 && sizeof(IntEchoHeader) == 4 && sizeof(Sack) == 12 &&
              sizeof(Auth) == 12);

// What parse_extensions() made of some bytes.
enum class ExtensionOutcome : uint8_t {
  kAccepted,
  kAbsent,         // the BTH says that there is no block
  kTooShort,       // fewer bytes than a block header
  kBadVersion,     // not 1
  kReservedFlags,  // a block flag is set
  kUnknownType,    // a bit in `types` that is not known or was not negotiated
  kEmpty,          // no type at all: such a block is not sent
  kTooManyHops,    // an INT-ECHO of more than kMaxIntHops
  kBadLength,      // `words` is not the sum of the values
  kBeyondPacket,   // the block says that it is longer than the packet
  kReservedBits,   // bits that must be 0 are not
  kTrailingBytes,  // something behind the block of a packet that has no payload
  kOutOfReach,     // the first segment ends within the block: linearise the frame and parse again
};
inline constexpr unsigned kExtensionOutcomeCount = 13;
std::string_view extension_outcome_name(ExtensionOutcome outcome);

// A block in place. Nothing is copied; valid as long as the bytes are.
struct ExtensionView {
  const uint8_t* block = nullptr;
  std::array<uint8_t, 16> word{};  // where each present type begins, in words from the block
  uint16_t types = 0;
  uint16_t bytes = 0;  // of the whole block; 0 unless accepted
  ExtensionOutcome outcome = ExtensionOutcome::kAbsent;

  [[nodiscard]] bool accepted() const { return outcome == ExtensionOutcome::kAccepted; }
  [[nodiscard]] bool has(ExtensionType type) const { return (types & bit_of(type)) != 0; }
  [[nodiscard]] uint32_t offset(ExtensionType type) const { return 4U * word[static_cast<unsigned>(type)]; }
  // The value of a type that is there; each type has the struct of its name.
  template <class T>
  [[nodiscard]] const T& value(ExtensionType type) const {
    return *reinterpret_cast<const T*>(block + offset(type));
  }
  [[nodiscard]] const SourceQp& source_qp() const { return value<SourceQp>(ExtensionType::kSourceQp); }
  [[nodiscard]] const CeEcho& ce_echo() const { return value<CeEcho>(ExtensionType::kCeEcho); }
  [[nodiscard]] Lsn lsn() const { return Lsn{value<LsnValue>(ExtensionType::kLsn).lsn.get()}; }
  [[nodiscard]] const Timestamp& timestamp() const { return value<Timestamp>(ExtensionType::kTimestamp); }
  [[nodiscard]] const TimestampEcho& timestamp_echo() const {
    return value<TimestampEcho>(ExtensionType::kTimestampEcho);
  }
  [[nodiscard]] const RxWindow& rx_window() const { return value<RxWindow>(ExtensionType::kRxWindow); }
  [[nodiscard]] const Flows& flows() const { return value<Flows>(ExtensionType::kFlows); }
  [[nodiscard]] const Rate& rate() const { return value<Rate>(ExtensionType::kRate); }
  [[nodiscard]] const IntEchoHeader& int_echo() const {
    return value<IntEchoHeader>(ExtensionType::kIntEcho);
  }
  // Newest first: the hop nearest to the receiver of the data.
  [[nodiscard]] std::span<const IntHop> hops() const {
    return {reinterpret_cast<const IntHop*>(&int_echo() + 1), int_echo().hops};
  }
  [[nodiscard]] const Sack& sack() const { return value<Sack>(ExtensionType::kSack); }
  [[nodiscard]] const Auth& auth() const { return value<Auth>(ExtensionType::kAuth); }
};

// What may stand behind a block.
enum class Behind : uint8_t { kNothing, kPayload };

inline constexpr ExtensionView kNoExtensions{};

// Bytes of a block of these types, an INT-ECHO among them without hops; 0 for no types.
uint32_t fixed_block_bytes(uint16_t types);
// Lays such a block out at `at`, which has room for it, with all values 0, and says where they lie. An INT-ECHO gets room
// for `hops`, at most kMaxIntHops, and says so.
ExtensionView lay_out_block(uint8_t* at, uint16_t types, uint8_t hops = 0);
// The place of a value in a block that is being written.
template <class T>
T& value_to_write(const ExtensionView& block, ExtensionType type) {
  return const_cast<T&>(block.value<T>(type));
}

// Reads the block at the start of `bytes` and nothing outside them. `allowed` has the bits of the types that were
// negotiated with this peer.
ExtensionView parse_extensions(std::span<const uint8_t> bytes, Behind behind, uint16_t allowed);

// The block of a packet that parse_frame() accepted, of which the first `head_length` bytes lie in one piece, and
// where its payload lies: behind the block, or where the view says when there is none. With any other outcome than
// kAccepted and kAbsent the packet is to be dropped.
struct ExtendedPayload {
  ExtensionView block;
  uint32_t payload_offset = 0;
  uint32_t payload_length = 0;
};
ExtendedPayload split_payload(const FrameView& view, uint32_t head_length, uint16_t allowed);

}  // namespace roci
