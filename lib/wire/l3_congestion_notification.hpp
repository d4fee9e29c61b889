// The "self-defined CNM" of L3QCN (draft-yu-tsvwg-l3qcn-00 5.2.2): a congestion notification message in UDP, by which a
// switch beyond routers reaches the switch at which the sender of a flow is attached. The draft leaves the bytes open;
// these are ours:
//
//   IP, to the sender of the flow | UDP, to a port that the network agrees on | the flow | CNM PDU | TLVs
//
//   the flow: version 4 (= 1), type 4 (= 1) | flags 8 | protocol 8 | 0 | source | destination | source port | destination
//   port, where the addresses take 4 bytes or, with the flag kIpv6, 16: 16 bytes in all, or 40.
//
// The PDU is that of layer 2, byte for byte. So the switch at the sender finds the flow in its table, which gives it the
// MAC, VLAN and CN-TAG that the sender used, and turns the message into a CNM for it by writing a link header directly in
// front of the PDU (to_l2_cnm()). TLVs say what the PDU has no room for; layer 2 does not get them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "wire/congestion_notification.hpp"
#include "wire/int_hop.hpp"
#include "wire/roce_writer.hpp"
#include "wire/siphash.hpp"
#include "wire/udp_location.hpp"

namespace roci {

struct L3CnmHeader {
  static constexpr uint8_t kVersionType = 0x11;
  static constexpr uint8_t kIpv6 = 0x80;
  static constexpr uint8_t kTlvs = 0x40;  // there are TLVs behind the PDU

  uint8_t version_type = kVersionType;
  uint8_t flags = 0;
  uint8_t protocol = 0;
  uint8_t reserved = 0;
};
static_assert(sizeof(L3CnmHeader) == 4);
constexpr uint32_t l3_cnm_flow_bytes(bool ipv6) {
  return static_cast<uint32_t>(sizeof(L3CnmHeader)) + (ipv6 ? 32 : 8) + 4;
}

// Type 8 | length 8, of the value in bytes | value. Each at most once, in any order but for AUTH, which is last. One with
// an unknown type is passed over, so that there can be more of them later.
enum class L3CnmTlv : uint8_t {
  kAvailableBandwidth = 1,  // rate (32): what the flow may take (L3QCN 6)
  kRateChange = 2,          // signed rate (32): by which the sender shall go up, or down, at once (L3QCN 6)
  kPort = 3,                // an IntHop: the congested port as telemetry sees it
  kEcn = 4,   // packets (32), of them marked (32): of the queue since the switch runs, modulo 2^32
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
  std::optional<uint32_t> auth_sequence;  // never the same twice with one key

  [[nodiscard]] uint32_t bytes() const;
  friend bool operator==(const L3CnmTlvs&, const L3CnmTlvs&) = default;
};

// What parse_l3_cnm() made of a frame.
enum class L3CnmOutcome : uint8_t {
  kAccepted,
  kNotL3Cnm,         // no UDP packet to the port of L3QCN
  kTruncated,        // a front that is cut, or a frame shorter than IP says
  kBadIp,            // lengths of IP or UDP wrong, or a fragment
  kBadChecksum,      // of UDP: wrong, or absent over IPv6, where nothing else protects the addresses
  kTooShort,         // fewer bytes than the flow
  kBadVersion,       // version or type
  kReservedBits,     // flags that are none, or the byte behind the protocol
  kBadFlow,          // IPv4-mapped addresses as IPv6 ones
  kNotToSender,      // the flow's source is not whom the packet goes to
  kBadPdu,           // `pdu` says why
  kTrailingBytes,    // behind the PDU, without the flag that there are TLVs
  kNoTlvs,           // the flag, and none
  kTlvBeyondPacket,  // a TLV that says more than there is
  kBadTlvLength,     // of a known type
  kRepeatedTlv,      // of a known type
  kAuthNotLast,      // something behind it, which it does not cover
};
inline constexpr unsigned kL3CnmOutcomeCount = 17;
std::string_view l3_cnm_outcome_name(L3CnmOutcome outcome);

struct L3CnmView {
  L3CnmOutcome outcome = L3CnmOutcome::kNotL3Cnm;
  CnmOutcome pdu = CnmOutcome::kNotCnm;
  FiveTuple flow;  // from the sender that is to slow down
  Cnm cnm;
  L3CnmTlvs tlvs;
  UdpLocation udp;
  uint32_t pdu_offset = 0;  // in the frame

  [[nodiscard]] bool accepted() const { return outcome == L3CnmOutcome::kAccepted; }
};

// The frame must lie in one piece. Whoever acts on a message should know the flow, and where networks are not trusted ask
// for the MAC: addresses are easily forged.
L3CnmView parse_l3_cnm(std::span<const uint8_t> frame, uint16_t port);

inline constexpr uint32_t kMaxL3CnmTlvs = (2 + 4) + (2 + 4) + (2 + 16) + (2 + 8) + (2 + 12);
inline constexpr uint32_t kMaxL3CnmFrame =
    14 + 4 + 40 + 8 + l3_cnm_flow_bytes(true) + kMaxCnmPdu + kMaxL3CnmTlvs;

// Writes a whole frame and returns its length, at most kMaxL3CnmFrame. `path` leads to the sender: its destination is the
// flow's source, its own source the flow's destination or the switch; its UDP source port spreads messages over paths,
// its traffic class is that of feedback (CNPs of NICs have DSCP 48). A MAC, if the TLVs have one, is 0 until sign_l3_cnm().
uint32_t build_l3_cnm(const RocePath& path, uint16_t port, const FiveTuple& flow, const Cnm& cnm,
                      const L3CnmTlvs& tlvs, std::span<uint8_t> out);

// The MAC covers both IP addresses and the UDP payload in front of it, and with it the sequence. What has no AUTH is
// neither signed nor verified; whether a sequence is new is for the reader to know.
bool sign_l3_cnm(std::span<uint8_t> frame, uint16_t port, const SipKey& key);
bool verify_l3_cnm(std::span<const uint8_t> frame, const L3CnmView& view, const SipKey& key);

// Turns an accepted message in place into the CNM for its sender: the frame begins `link` before the PDU and ends with it.
// What the sender cannot know, such as the MAC to which the last router sent the flow, can be put into the PDU before.
// False, and nothing changed, when the frame is not in one piece or there is no room in front.
bool to_l2_cnm(FrameFront& frame, const L3CnmView& view, const CnmLink& link);

}  // namespace roci
