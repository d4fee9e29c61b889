// Congestion notification message (CNM) of QCN (802.1Q 33.3 and 33.4, formerly 802.1Qau). A congested queue sends it to
// the sender of a frame that it sampled. This file has the PDU and the frame that carries it within a layer 2 network.
// l3_congestion_notification.hpp sends the same PDU through routers.
//
//   DA = SA of the sampled frame | SA = the switch | VLAN tags and CN-TAG of the sampled frame | 22e7 | PDU
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "wire/net/link_tags.hpp"

namespace roci {

inline constexpr uint16_t kEtherTypeCnm = 0x22e7;
inline constexpr uint8_t kMaxCnmFeedback = 63;
inline constexpr uint32_t kMaxCnmMsdu = 64;
// Unit of queue lengths in CNMs, in bytes (802.1Q 33.4).
inline constexpr int64_t kCnmQueueUnit = 64;
inline constexpr uint8_t kCnmTransmitPriority = 6;  // default priority of CNMs in 802.1Q

// Identifies the congested queue. 802.1Q requires 64 bits that are unique in the network: a MAC address and a number.
struct CongestionPointId {
  MacAddress bridge;
  Be16 queue;  // distinguishes ports and priorities of a bridge
  friend bool operator==(const CongestionPointId& a, const CongestionPointId& b) {
    return a.bridge == b.bridge && a.queue.get() == b.queue.get();
  }
};

struct CnmPdu {
  Be16 version_feedback;  // version 4 (= 0) | reserved 6 (= 0) | quantized feedback 6
  CongestionPointId point;
  Be16 queue_offset;  // two's complement
  Be16 queue_delta;   // two's complement
  Be16 priority;      // priority 3 | 0
  MacAddress destination;
  Be16 msdu_length;  // number of MSDU bytes, which follow
};
static_assert(sizeof(CnmPdu) == 24);
inline constexpr uint32_t kMaxCnmPdu = sizeof(CnmPdu) + kMaxCnmMsdu;

struct Cnm {
  // Congestion from 0 to 63: |Fb| in 1/63 of its maximum. 802.1Q does not send a CNM with 0. In the L3 form 0 means
  // that the message is sent for its TLVs.
  uint8_t feedback = 0;
  CongestionPointId point;
  // In kCnmQueueUnit. Q - Qeq is the deviation from the target queue length, Q - Qold the growth since the previous
  // sample. The L3QCN draft calls them "available bytes"; senders interpret them as in 802.1Q.
  int16_t queue_offset = 0;
  int16_t queue_delta = 0;
  uint8_t priority = 0;    // 3 bits, of the sampled frame
  MacAddress destination;  // of the sampled frame
  // First bytes of the sampled frame's MSDU, at most kMaxCnmMsdu, starting with the EtherType after its tags, so that
  // the receiver can parse them. Points into the sampled or the parsed frame.
  std::span<const uint8_t> msdu;

  [[nodiscard]] uint32_t pdu_bytes() const {
    return static_cast<uint32_t>(sizeof(CnmPdu)) + static_cast<uint32_t>(msdu.size());
  }
};

// Converts bytes to kCnmQueueUnit, rounded towards 0 and limited to 16 bits.
constexpr int16_t cnm_queue_units(int64_t bytes) {
  const int64_t units = bytes / kCnmQueueUnit;
  if (units > INT16_MAX) return INT16_MAX;
  if (units < INT16_MIN) return INT16_MIN;
  return static_cast<int16_t>(units);
}

// Result of parse_cnm() and parse_cnm_frame().
enum class CnmOutcome : uint8_t {
  kAccepted,
  kNotCnm,         // another EtherType
  kTruncated,      // shorter than a PDU without MSDU, or than the link header
  kBadVersion,     // not 0
  kReservedBits,   // bits between version and feedback that are not 0
  kMsduTooLong,    // length above kMaxCnmMsdu
  kMsduBeyondEnd,  // length beyond the end
};
inline constexpr unsigned kCnmOutcomeCount = 7;
std::string_view cnm_outcome_name(CnmOutcome outcome);

struct ParsedCnm {
  CnmOutcome outcome = CnmOutcome::kNotCnm;
  Cnm cnm;
};

// Parses the PDU at the start of `bytes`. Bytes after it are allowed, such as Ethernet padding. The bits below the
// priority are ignored.
ParsedCnm parse_cnm(std::span<const uint8_t> bytes);
// Writes cnm.pdu_bytes() bytes. A larger feedback is limited to the maximum. The MSDU must not exceed kMaxCnmMsdu.
void write_cnm(const Cnm& cnm, uint8_t* out);

// Returns the fields of a CNM that describe a sampled frame: its destination, its first bytes, and its priority. A
// frame without VLAN tag has `default_priority`. Null if `head` ends before the MSDU.
std::optional<Cnm> sample_frame(std::span<const uint8_t> head, uint8_t default_priority = 0);

// The link header of a CNM.
struct CnmLink {
  MacAddress destination;
  MacAddress source;
  LinkTags tags;

  // Returns the header of a CNM to the sender of a sampled frame, with its VLANs and its CN-TAG, if any. `priority`
  // replaces that of the frame, so that the CNM is not dropped early. Null as in sample_frame().
  static std::optional<CnmLink> answering(std::span<const uint8_t> sampled, const MacAddress& own,
                                          uint8_t priority = kCnmTransmitPriority);

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(sizeof(EthernetHeader)) + tags.size(); }
  // Writes size() bytes. The PDU must follow directly, so the header can be prepended to an existing PDU.
  void write(uint8_t* out) const;
};
inline constexpr uint32_t kMaxCnmFrame =
    sizeof(EthernetHeader) + kMaxVlanTags * sizeof(VlanHeader) + sizeof(CnTag) + kMaxCnmPdu;

// Writes a complete frame without padding and returns its length. `out` must be large enough.
uint32_t build_cnm_frame(const CnmLink& link, const Cnm& cnm, std::span<uint8_t> out);

struct ParsedCnmFrame {
  CnmOutcome outcome = CnmOutcome::kNotCnm;
  CnmLink link;  // its CN-TAG identifies the flow to the sender
  Cnm cnm;
};
ParsedCnmFrame parse_cnm_frame(std::span<const uint8_t> frame);

}  // namespace roci
