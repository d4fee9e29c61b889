// The "self-defined CNM" of L3QCN (draft-yu-tsvwg-l3qcn-00 5.2.2): a congestion notification message in UDP. A switch
// sends it through routers to the switch to which the sender of a flow is attached. The draft does not specify the
// format; this project uses:
//
//   IP, to the sender of the flow | UDP, to a port configured in the network | flow | CNM PDU | TLVs
//
//   flow: version 4 (= 1), type 4 (= 1) | flags 8 | protocol 8 | 0 | source | destination | two ports
//
// The addresses have 4 bytes or, with flag kIpv6, 16 bytes. The flow has 16 or 40 bytes.
//
// The PDU is identical to that of layer 2. The switch of the sender looks up the flow in its table for the sender's
// MAC, VLAN and CN-TAG. It then writes a link header directly before the PDU, which converts the message to a CNM
// (to_l2_cnm()). TLVs contain additional values, which are not forwarded to layer 2.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "wire/cnm/congestion_notification.hpp"
#include "wire/extensions/siphash.hpp"
#include "wire/int/int_hop.hpp"
#include "wire/net/udp_location.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

struct L3CnmHeader {
  static constexpr uint8_t kVersionType = 0x11;
  static constexpr uint8_t kIpv6 = 0x80;
  static constexpr uint8_t kTlvs = 0x40;  // TLVs follow the PDU

  uint8_t version_type = kVersionType;
  uint8_t flags = 0;
  uint8_t protocol = 0;
  uint8_t reserved = 0;
};
static_assert(sizeof(L3CnmHeader) == 4);
constexpr uint32_t l3_cnm_flow_bytes(bool ipv6) {
  return static_cast<uint32_t>(sizeof(L3CnmHeader)) + (ipv6 ? 32 : 8) + 4;
}

// TLV format: type 8 | length 8, of the value in bytes | value. Each type may occur once, in any order except that AUTH
// is last. A TLV of unknown type is skipped, for compatibility with future versions.
enum class L3CnmTlv : uint8_t {
  kAvailableBandwidth = 1,  // rate (32) that the flow may use (L3QCN 6)
  kRateChange = 2,          // signed rate (32) by which the sender changes its rate at once (L3QCN 6)
  kPort = 3,                // IntHop of the congested port
  kEcn = 4,   // packets (32) and marked packets (32) of the queue since the start of the switch, modulo 2^32
  kAuth = 5,  // sequence (32), SipHash-2-4 (64)
};
inline constexpr uint64_t kL3CnmRateUnit = 100'000;  // b/s, as in the RATE extension

struct EcnCounts {
  uint32_t packets = 0;
  uint32_t marked = 0;
  friend bool operator==(const EcnCounts&, const EcnCounts&) = default;
};

struct L3CnmTlvs {
  std::optional<uint32_t> available_bandwidth;  // in kL3CnmRateUnit
  std::optional<int32_t> rate_change;           // in kL3CnmRateUnit
  std::optional<IntHopValues> port;
  std::optional<EcnCounts> ecn;
  std::optional<uint32_t> auth_sequence;  // not repeated with the same key

  [[nodiscard]] uint32_t bytes() const;
  friend bool operator==(const L3CnmTlvs&, const L3CnmTlvs&) = default;
};

// Result of parse_l3_cnm().
enum class L3CnmOutcome : uint8_t {
  kAccepted,
  kNotL3Cnm,         // not a UDP packet to the port of L3QCN
  kTruncated,        // headers not in the frame, or a frame shorter than its IP length
  kBadIp,            // invalid IP or UDP lengths, or a fragment
  kBadChecksum,      // UDP checksum wrong, or missing with IPv6, where nothing else protects the addresses
  kTooShort,         // fewer bytes than the flow
  kBadVersion,       // unknown version or type
  kReservedBits,     // unknown flags, or the byte after the protocol is not 0
  kBadFlow,          // IPv6 addresses that are IPv4-mapped
  kNotToSender,      // the source of the flow is not the destination of the packet
  kBadPdu,           // see L3CnmView::pdu
  kTrailingBytes,    // bytes after the PDU, without the flag kTlvs
  kNoTlvs,           // the flag kTlvs, without TLVs
  kTlvBeyondPacket,  // length of a TLV exceeds the packet
  kBadTlvLength,     // wrong length of a known type
  kRepeatedTlv,      // a known type occurs twice
  kAuthNotLast,      // bytes after AUTH, which it does not cover
};
inline constexpr unsigned kL3CnmOutcomeCount = 17;
std::string_view l3_cnm_outcome_name(L3CnmOutcome outcome);

struct L3CnmView {
  L3CnmOutcome outcome = L3CnmOutcome::kNotL3Cnm;
  CnmOutcome pdu = CnmOutcome::kNotCnm;
  FiveTuple flow;  // the flow whose sender is to reduce its rate
  Cnm cnm;
  L3CnmTlvs tlvs;
  UdpLocation udp;
  uint32_t pdu_offset = 0;  // in the frame

  [[nodiscard]] bool accepted() const { return outcome == L3CnmOutcome::kAccepted; }
};

// The frame must be contiguous. Before acting on a message, the caller should check that the flow is known. In
// untrusted networks it should also require a MAC, since addresses are easily forged.
L3CnmView parse_l3_cnm(std::span<const uint8_t> frame, uint16_t port);

inline constexpr uint32_t kMaxL3CnmTlvs = (2 + 4) + (2 + 4) + (2 + 16) + (2 + 8) + (2 + 12);
inline constexpr uint32_t kMaxL3CnmFrame =
    14 + 4 + 40 + 8 + l3_cnm_flow_bytes(true) + kMaxCnmPdu + kMaxL3CnmTlvs;

// Writes a complete frame and returns its length, at most kMaxL3CnmFrame. `path` leads to the sender of the flow:
//
// - destination: the source of the flow
// - source: the destination of the flow, or the switch
// - UDP source port: distributes messages over paths
// - traffic class: kFeedbackTrafficClass, DSCP 48 like CNPs of NICs
//
// The MAC of an AUTH TLV is 0 until sign_l3_cnm().
uint32_t build_l3_cnm(const RocePath& path, uint16_t port, const FiveTuple& flow, const Cnm& cnm,
                      const L3CnmTlvs& tlvs, std::span<uint8_t> out);

// Sign and verify a message. The MAC covers both IP addresses and the UDP payload before the MAC, including the
// sequence. Both functions return false for a message without AUTH. The caller checks that the sequence is new
// (L3CnmGuard).
bool sign_l3_cnm(std::span<uint8_t> frame, uint16_t port, const SipKey& key);
bool verify_l3_cnm(std::span<const uint8_t> frame, const L3CnmView& view, const SipKey& key);

// Converts an accepted message in place to the CNM for the sender. The frame then starts with `link` and ends with the
// PDU. The caller may first change PDU fields. An example is the MAC address to which the last router sent the flow,
// which the congested switch does not have. Returns false, without a change, if the frame is not contiguous or the
// bytes before the PDU are too few.
bool to_l2_cnm(FrameFront& frame, const L3CnmView& view, const CnmLink& link);

}  // namespace roci
