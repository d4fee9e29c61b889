// Table of BTH opcodes, used for parsing, building, length checks, the responder's sequence check, printing and tests.
// Opcodes are not listed anywhere else.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace roci {

// BTH opcode (IBTA table 35; XRC: annex A14; flush and atomic write: annex A19; CNP: RoCEv2 annex A17.9.3). Opcodes from 0xe0 on are manufacturer-defined.
// Those below are private opcodes of this project, used only between hosts that negotiated them
// (docs/wire-extensions.md).
enum class Opcode : uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendLastImm = 0x03,
  kRcSendOnly = 0x04,
  kRcSendOnlyImm = 0x05,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteLastImm = 0x09,
  kRcWriteOnly = 0x0a,
  kRcWriteOnlyImm = 0x0b,
  kRcReadRequest = 0x0c,
  kRcReadResponseFirst = 0x0d,
  kRcReadResponseMiddle = 0x0e,
  kRcReadResponseLast = 0x0f,
  kRcReadResponseOnly = 0x10,
  kRcAcknowledge = 0x11,
  kRcAtomicAcknowledge = 0x12,
  kRcCompareSwap = 0x13,
  kRcFetchAdd = 0x14,
  kRcSendLastInv = 0x16,
  kRcSendOnlyInv = 0x17,
  kRcFlush = 0x1c,
  kRcAtomicWrite = 0x1d,
  kUcSendFirst = 0x20,
  kUcSendMiddle = 0x21,
  kUcSendLast = 0x22,
  kUcSendLastImm = 0x23,
  kUcSendOnly = 0x24,
  kUcSendOnlyImm = 0x25,
  kUcWriteFirst = 0x26,
  kUcWriteMiddle = 0x27,
  kUcWriteLast = 0x28,
  kUcWriteLastImm = 0x29,
  kUcWriteOnly = 0x2a,
  kUcWriteOnlyImm = 0x2b,
  kUdSendOnly = 0x64,
  kUdSendOnlyImm = 0x65,
  kCnp = 0x81,
  kXrcSendFirst = 0xa0,
  kXrcSendMiddle = 0xa1,
  kXrcSendLast = 0xa2,
  kXrcSendLastImm = 0xa3,
  kXrcSendOnly = 0xa4,
  kXrcSendOnlyImm = 0xa5,
  kXrcWriteFirst = 0xa6,
  kXrcWriteMiddle = 0xa7,
  kXrcWriteLast = 0xa8,
  kXrcWriteLastImm = 0xa9,
  kXrcWriteOnly = 0xaa,
  kXrcWriteOnlyImm = 0xab,
  kXrcReadRequest = 0xac,
  kXrcReadResponseFirst = 0xad,
  kXrcReadResponseMiddle = 0xae,
  kXrcReadResponseLast = 0xaf,
  kXrcReadResponseOnly = 0xb0,
  kXrcAcknowledge = 0xb1,
  kXrcAtomicAcknowledge = 0xb2,
  kXrcCompareSwap = 0xb3,
  kXrcFetchAdd = 0xb4,
  kXrcSendLastInv = 0xb6,
  kXrcSendOnlyInv = 0xb7,
  kCcProbe = 0xe0,
  kCcProbeResponse = 0xe1,
  kCcReadAcknowledge = 0xe2,
  kCcIntResponse = 0xe3,
  kCcRxWindow = 0xe4,
};

// Transport service of an opcode: its top three bits.
enum class TransportClass : uint8_t { kRc = 0, kUc = 1, kUd = 3, kCnp = 4, kXrc = 5, kPrivate = 7 };

enum class Operation : uint8_t {
  kSend,
  kWrite,
  kReadRequest,
  kReadResponse,
  kAcknowledge,
  kAtomicAcknowledge,
  kCompareSwap,
  kFetchAdd,
  kFlush,
  kAtomicWrite,
  kCongestionNotification,
  kProbeRequest,     // requests the time of arrival and the telemetry of the probe
  kProbeResponse,    // response to a probe
  kReadAcknowledge,  // acknowledges READ responses
  kIntResponse,      // report of a congested port by a switch
  kReceiverWindow,   // window of the receiver, sent if no other packet is due
};

// Returns the opcode of another connected service for an RC operation. The lower five bits are the same in all
// services.
constexpr Opcode opcode_of(TransportClass service, Opcode reliable) {
  return static_cast<Opcode>(static_cast<unsigned>(service) << 5 | static_cast<unsigned>(reliable));
}
static_assert(opcode_of(TransportClass::kUc, Opcode::kRcWriteOnlyImm) == Opcode::kUcWriteOnlyImm);
static_assert(opcode_of(TransportClass::kXrc, Opcode::kRcSendOnlyInv) == Opcode::kXrcSendOnlyInv);

// Position of a packet in its message.
enum class Position : uint8_t { kFirst, kMiddle, kLast, kOnly };

// Extended headers after the BTH, in wire order.
enum class Header : uint8_t {
  kDeth,
  kXrcEth,
  kFeth,
  kReth,
  kAtomicEth,
  kAeth,
  kAtomicAckEth,
  kImmDt,
  kIeth,
  kCnpReserved,
  kProbe,
  kProbeTimes,
  kIntReport,
};
inline constexpr unsigned kHeaderCount = 13;

class HeaderSet {
 public:
  constexpr HeaderSet() = default;
  template <class... H>
  constexpr explicit HeaderSet(H... headers)
      : bits_(static_cast<uint16_t>((0U | ... | (1U << static_cast<unsigned>(headers))))) {}
  [[nodiscard]] constexpr bool has_any_of(HeaderSet others) const { return (bits_ & others.bits_) != 0; }
  [[nodiscard]] constexpr bool has(Header h) const { return (bits_ >> static_cast<unsigned>(h) & 1U) != 0; }
  friend constexpr bool operator==(HeaderSet, HeaderSet) = default;

 private:
  uint16_t bits_ = 0;
};

// Number of payload bytes in a packet of an opcode (IBTA 9.4.3.1, 9.4.4, 9.7.4.1.6).
enum class PayloadRule : uint8_t {
  kNone,      // 0
  kFullMtu,   // exactly the path MTU, pad count 0
  kOneToMtu,  // 1 to path MTU
  kUpToMtu,   // 0 to path MTU
};

// Result of check_payload().
enum class PayloadCheck : uint8_t {
  kRight,
  kNotEmpty,    // payload with an opcode that allows none
  kEmpty,       // a last packet without payload
  kNotFullMtu,  // a first or middle packet whose payload is not the path MTU
  kTooLong,     // payload exceeds the path MTU
  kBadPad,      // pad count does not bring the payload to a multiple of 4
};
inline constexpr unsigned kPayloadCheckCount = 6;
std::string_view payload_check_name(PayloadCheck check);

// Number of pad bytes after a payload of this length, to a multiple of 4 (IBTA 9.2.4).
constexpr uint8_t pad_for(uint32_t payload_length) { return static_cast<uint8_t>((0 - payload_length) & 3U); }

constexpr unsigned bit_of(Operation operation) { return 1U << static_cast<unsigned>(operation); }

struct OpcodeInfo {
  Opcode opcode;
  std::string_view name;  // name in captures and documents: "RC_SEND_FIRST"
  TransportClass transport;
  Operation operation;
  Position position;
  HeaderSet headers;
  PayloadRule payload;
  uint8_t header_bytes;          // BTH and extended headers
  uint8_t offset[kHeaderCount];  // of each present header, from the start of the BTH

  [[nodiscard]] constexpr bool has(Header h) const { return headers.has(h); }
  [[nodiscard]] constexpr bool starts_message() const {
    return position == Position::kFirst || position == Position::kOnly;
  }
  [[nodiscard]] constexpr bool ends_message() const {
    return position == Position::kLast || position == Position::kOnly;
  }
  // Sent to and accepted from peers that negotiated it only.
  [[nodiscard]] constexpr bool is_private() const { return transport == TransportClass::kPrivate; }
  // Sent by a requester to a responder.
  [[nodiscard]] constexpr bool is_request() const {
    constexpr unsigned kRequests = bit_of(Operation::kSend) | bit_of(Operation::kWrite) |
                                   bit_of(Operation::kReadRequest) | bit_of(Operation::kCompareSwap) |
                                   bit_of(Operation::kFetchAdd) | bit_of(Operation::kFlush) |
                                   bit_of(Operation::kAtomicWrite);
    return (kRequests & bit_of(operation)) != 0;
  }
  // Sent by a responder to a requester.
  [[nodiscard]] constexpr bool is_response() const {
    return operation == Operation::kReadResponse || operation == Operation::kAcknowledge ||
           operation == Operation::kAtomicAcknowledge;
  }
  // Contains or requests application data, and therefore can congest links.
  [[nodiscard]] constexpr bool is_data() const {
    return is_request() || operation == Operation::kReadResponse;
  }
  // The end of the message consumes a receive work request.
  [[nodiscard]] constexpr bool consumes_receive() const {
    return operation == Operation::kSend || (operation == Operation::kWrite && has(Header::kImmDt));
  }
};

// Length of an extended header in bytes.
constexpr uint8_t header_size(Header h) {
  constexpr uint8_t kSizes[kHeaderCount] = {8, 4, 4, 16, 28, 4, 8, 4, 4, 16, 24, 28, 40};
  return kSizes[static_cast<unsigned>(h)];
}
std::string_view header_name(Header h);

// Checks whether a packet of this opcode may carry `payload_length` bytes and `pad` pad bytes on a path with this MTU.
constexpr PayloadCheck check_payload(const OpcodeInfo& info, uint32_t payload_length, uint8_t pad,
                                     uint32_t path_mtu) {
  if (info.payload == PayloadRule::kNone) {
    if (payload_length != 0) return PayloadCheck::kNotEmpty;
  } else if (info.payload == PayloadRule::kFullMtu) {
    if (payload_length != path_mtu) return PayloadCheck::kNotFullMtu;
  } else {
    if (payload_length > path_mtu) return PayloadCheck::kTooLong;
    if (payload_length == 0 && info.payload == PayloadRule::kOneToMtu) return PayloadCheck::kEmpty;
  }
  return pad == pad_for(payload_length) ? PayloadCheck::kRight : PayloadCheck::kBadPad;
}

// Returns null if the opcode is not in the table.
const OpcodeInfo* find_opcode(uint8_t raw);
// For opcodes that the caller takes from Opcode, which are all in the table.
const OpcodeInfo& opcode_info(Opcode opcode);
// The table in ascending order of opcodes.
std::span<const OpcodeInfo> opcode_table();

}  // namespace roci
