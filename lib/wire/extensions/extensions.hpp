// Extension block of the wire extensions (CCX): values that two hosts exchange in addition to the standard, after they
// have negotiated it (capability_mad.hpp). docs/wire-extensions.md specifies the format and gives the reasons.
//
//   word 0     version 4 (= 1) | flags 4 (= 0) | words 8, this one included | types 16
//   word 1…    the values whose bits are set in `types`, lowest bit first
//
// The block follows the headers of the packet and precedes the payload; Bth::kExtensions indicates it. One table has
// the name, length and fields of each type. Parsing, building, printing and tests iterate over it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/sequence.hpp"
#include "base/types.hpp"
#include "wire/headers/endian.hpp"
#include "wire/int/int_hop.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

// Types of values. The number is the bit in `types` and defines the order in the block.
enum class ExtensionType : uint8_t {
  kSourceQp = 0,  // first, so that a switch finds it at a fixed offset
  kCeEcho = 1,
  kLsn = 2,
  kTimestamp = 3,
  kTimestampEcho = 4,
  kRxWindow = 5,
  kFlows = 6,
  kRate = 7,
  kIntEcho = 8,  // the only type of variable length
  kSack = 9,
  kAuth = 15,  // last, so that the MAC covers all other values
};
constexpr uint16_t bit_of(ExtensionType type) {
  return static_cast<uint16_t>(1U << static_cast<unsigned>(type));
}

// A field of a type, for printers and tests.
struct ExtensionField {
  std::string_view name;
  uint8_t offset;  // of the big-endian word that contains the field, from the start of the value
  uint8_t length;  // of that word in bytes
  uint8_t shift;   // of the field's lowest bit in the word
  uint8_t bits;
  bool hex;  // printed in hexadecimal
};

struct ExtensionInfo {
  ExtensionType type;
  std::string_view name;   // name in documents: "CE-ECHO"
  std::string_view field;  // name in packet fields: "ce_echo"
  uint8_t words;           // of the fixed part
  uint8_t words_per_hop;   // multiplied by the number in the first byte; 0 for all but INT-ECHO
  std::span<const ExtensionField> fields;
  std::span<const ExtensionField> hop_fields;
  std::array<uint8_t, 16> reserved;  // bits of the fixed part that belong to no field; must be 0
};

inline constexpr uint8_t kExtensionVersion = 1;
inline constexpr uint8_t kMaxIntHops = 16;
inline constexpr uint32_t kExtensionHeaderBytes = 4;

std::span<const ExtensionInfo> extension_table();  // in ascending order of bits
const ExtensionInfo* find_extension(unsigned bit);
uint16_t known_extensions();     // all bits in the table
uint32_t max_extension_bytes();  // of a block with all types
std::span<const ExtensionField> extension_header_fields();

// Wire formats of the block header and its values.
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
  Be32 marked;   // packets among them with ECN = CE
};
struct LsnValue {
  Be64 lsn;  // data: of the first payload byte; ACK: all bytes below have arrived
};
struct Timestamp {
  Be64 time;  // sender's clock when the packet was handed to the port; opaque to the receiver
};
struct TimestampEcho {
  Be64 time;        // the Timestamp of the packet that caused this one
  Be32 hold;        // from the arrival of that packet to this departure, in the receiver's time unit
  Be32 host_delay;  // part of `hold` spent in the receiver's queues (end-host delay of Swift)
};
struct RxWindow {
  Be32 bytes;
  uint8_t reserved = 0;
  Be24 psn;  // of the packet from which the window counts
};
struct Flows {
  static constexpr uint8_t kLastHop = 1;  // the receiver's own link is the bottleneck
  uint8_t flags = 0;
  Be24 count;  // queue pairs that sent to the receiver recently
};
struct Rate {
  static constexpr uint32_t kDelta = 0x8000'0000;
  Be32 flags_rate;  // delta 1 | reserved 3 | rate 28 in units of 100 kb/s, two's complement in a delta
};
struct IntEchoHeader {
  static constexpr uint8_t kDelayed = 1;     // stands for several packets and describes the latest
  static constexpr uint8_t kProbe = 2;       // from a probe, not from data
  static constexpr uint8_t kFromSwitch = 4;  // sent by a switch; the packet may not have arrived
  static constexpr uint8_t kIncomplete = 8;  // the path had more hops than listed
  uint8_t hops = 0;
  uint8_t flags = 0;
  Be16 age;  // µs since the packet with these hops arrived, at most 65535
};
struct Sack {
  static constexpr uint32_t kBits = 64;
  uint8_t reserved = 0;
  Be24 psn;  // of the lowest bit
  // Bitmap of packets from `psn` on that the receiver has, and keeps until the gap before them is closed.
  Be64 kept;
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

// Result of parse_extensions().
enum class ExtensionOutcome : uint8_t {
  kAccepted,
  kAbsent,         // the BTH indicates no block
  kTooShort,       // fewer bytes than a block header
  kBadVersion,     // not 1
  kReservedFlags,  // a block flag is set
  kUnknownType,    // a bit in `types` that is unknown or was not negotiated
  kEmpty,          // no type
  kTooManyHops,    // an INT-ECHO of more than kMaxIntHops
  kBadLength,      // `words` is not the sum of the lengths of the values
  kBeyondPacket,   // `words` exceeds the packet
  kReservedBits,   // reserved bits that are not 0
  kTrailingBytes,  // bytes after the block of a packet without payload
  kOutOfReach,     // the first segment ends within the block: linearize the frame and parse it again
};
inline constexpr unsigned kExtensionOutcomeCount = 13;
std::string_view extension_outcome_name(ExtensionOutcome outcome);

// View of a block in a packet. Valid as long as the packet's bytes.
struct ExtensionView {
  const uint8_t* block = nullptr;
  std::array<uint8_t, 16> word{};  // offset of each present type in the block, in words
  uint16_t types = 0;
  uint16_t bytes = 0;  // length of the block; 0 unless accepted
  ExtensionOutcome outcome = ExtensionOutcome::kAbsent;

  [[nodiscard]] bool accepted() const { return outcome == ExtensionOutcome::kAccepted; }
  [[nodiscard]] bool has(ExtensionType type) const { return (types & bit_of(type)) != 0; }
  [[nodiscard]] uint32_t offset(ExtensionType type) const { return 4U * word[static_cast<unsigned>(type)]; }
  // Value of a type, which must be present. T is the struct of the type.
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
  // Newest first: starts with the hop nearest to the receiver of the data.
  [[nodiscard]] std::span<const IntHop> hops() const {
    return {reinterpret_cast<const IntHop*>(&int_echo() + 1), int_echo().hops};
  }
  [[nodiscard]] const Sack& sack() const { return value<Sack>(ExtensionType::kSack); }
  [[nodiscard]] const Auth& auth() const { return value<Auth>(ExtensionType::kAuth); }
};

// Bytes that may follow a block.
enum class AfterBlock : uint8_t { kNothing, kPayload };

inline constexpr ExtensionView kNoExtensions{};

// Length of a block with these types, with an INT-ECHO without hops; 0 for no types.
uint32_t fixed_block_bytes(uint16_t types);
// Writes a block of these types at `at` with all values 0, and returns its view. `at` must have
// fixed_block_bytes(types) bytes plus those of the hops. An INT-ECHO has `hops` hops, at most kMaxIntHops.
ExtensionView lay_out_block(uint8_t* at, uint16_t types, uint8_t hops = 0);
// Returns a value of a block that is being written.
template <class T>
T& value_to_write(const ExtensionView& block, ExtensionType type) {
  return const_cast<T&>(block.value<T>(type));
}

// Parses the block at the start of `bytes`, without access outside `bytes`. `allowed` has the bits of the types that
// were negotiated with the peer.
ExtensionView parse_extensions(std::span<const uint8_t> bytes, AfterBlock behind, uint16_t allowed);

// Extension block and payload of a packet that parse_frame() accepted. The payload starts after the block; without a
// block, at FrameView::payload_offset. The caller drops the packet unless the outcome is kAccepted or kAbsent.
struct ExtendedPayload {
  ExtensionView block;
  uint32_t payload_offset = 0;
  uint32_t payload_length = 0;
};
// The first `head_length` bytes of the frame must be contiguous.
ExtendedPayload split_payload(const FrameView& view, uint32_t head_length, uint16_t allowed);

}  // namespace roci
