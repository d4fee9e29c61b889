// The congestion notification message of QCN (CNM, 802.1Q 33.3 and 33.4, once 802.1Qau), with which a congested queue
// answers the sender of a frame that it sampled: its PDU, and the frame that carries it to a sender in the same layer 2
// network. l3_congestion_notification.hpp carries the same PDU through routers.
//
//   DA = SA of the sampled frame | SA = the switch | VLAN tags and CN-TAG of the sampled frame | 22e7 | PDU
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "wire/link_tags.hpp"

namespace roci {

inline constexpr uint16_t kEtherTypeCnm = 0x22e7;
inline constexpr uint8_t kMaxCnmFeedback = 63;
inline constexpr uint32_t kMaxCnmMsdu = 64;
// In which CNMs say queue lengths (802.1Q 33.4).
inline constexpr int64_t kCnmQueueUnit = 64;
inline constexpr uint8_t kCnmTransmitPriority = 6;  // 802.1Q's default for the CNMs themselves

// Names the queue that is congested. 802.1Q wants 64 bits that are unique in the network; MAC and number make them so.
struct CongestionPointId {
  MacAddress bridge;
  Be16 queue;  // tells ports and priorities of one bridge apart
  friend bool operator==(const CongestionPointId& a, const CongestionPointId& b) {
    return a.bridge == b.bridge && a.queue.get() == b.queue.get();
  }
};

struct CnmPdu {
  Be16 version_feedback;  // version 4 (= 0) | reserved 6 (= 0) | quantised feedback 6
  CongestionPointId point;
  Be16 queue_offset;  // two's complement
  Be16 queue_delta;   // two's complement
  Be16 priority;      // 3 | 0
  MacAddress destination;
  Be16 msdu_length;  // what follows
};
static_assert(sizeof(CnmPdu) == 24);
inline constexpr uint32_t kMaxCnmPdu = sizeof(CnmPdu) + kMaxCnmMsdu;

struct Cnm {
  // How congested, 0 to 63: |Fb| in 1/63 of its largest. 802.1Q sends no CNM of 0; to the L3 form it means that something
  // else is to be said.
  uint8_t feedback = 0;
  CongestionPointId point;
  // Q - Qeq, the queue beyond where it should be, and Q - Qold, how it grew since the sample before; in kCnmQueueUnit.
  // The draft of L3QCN calls them "available bytes"; a sender reads them as 802.1Q says.
  int16_t queue_offset = 0;
  int16_t queue_delta = 0;
  uint8_t priority = 0;    // 3 bits, of the sampled frame
  MacAddress destination;  // of the sampled frame
  // The first bytes of the sampled frame's MSDU, at most kMaxCnmMsdu, from the EtherType behind its tags on: so the
  // reader knows what they are. Lies in the sampled or the parsed frame.
  std::span<const uint8_t> msdu;

  [[nodiscard]] uint32_t pdu_bytes() const {
    return static_cast<uint32_t>(sizeof(CnmPdu)) + static_cast<uint32_t>(msdu.size());
  }
};

// Bytes as CNMs say them, rounded towards 0 and kept within 16 bits.
constexpr int16_t cnm_queue_units(int64_t bytes) {
  const int64_t units = bytes / kCnmQueueUnit;
  if (units > INT16_MAX) return INT16_MAX;
  if (units < INT16_MIN) return INT16_MIN;
  return static_cast<int16_t>(units);
}

// What parse_cnm() and parse_cnm_frame() made of some bytes.
enum class CnmOutcome : uint8_t {
  kAccepted,
  kNotCnm,         // a frame with another EtherType
  kTruncated,      // shorter than a PDU without MSDU, or than the front of a frame
  kBadVersion,     // not 0
  kReservedBits,   // those between version and feedback
  kMsduTooLong,    // says more than kMaxCnmMsdu
  kMsduBeyondEnd,  // says more than there is
};
inline constexpr unsigned kCnmOutcomeCount = 7;
std::string_view cnm_outcome_name(CnmOutcome outcome);

struct ParsedCnm {
  CnmOutcome outcome = CnmOutcome::kNotCnm;
  Cnm cnm;
};

// The PDU at the start of `bytes`. Bytes behind it are allowed, such as Ethernet padding. The bits below the priority
// are not looked at.
ParsedCnm parse_cnm(std::span<const uint8_t> bytes);
// Writes cnm.pdu_bytes(). A feedback beyond the largest is the largest; the MSDU must not be too long.
void write_cnm(const Cnm& cnm, uint8_t* out);

// What a sampled frame says about itself in a CNM: its destination, its first bytes, and its priority, or
// `default_priority` if it has no VLAN tag. Null when it is cut before its MSDU begins.
std::optional<Cnm> sample_frame(std::span<const uint8_t> head, uint8_t default_priority = 0);

// The link header of a CNM.
struct CnmLink {
  MacAddress destination;
  MacAddress source;
  LinkTags tags;

  // To the sender of a sampled frame, in its VLANs and with its CN-TAG, if it has one; with a priority of its own,
  // not to be dropped early. Null as with sample_frame().
  static std::optional<CnmLink> answering(std::span<const uint8_t> sampled, const MacAddress& own,
                                          uint8_t priority = kCnmTransmitPriority);

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(sizeof(EthernetHeader)) + tags.size(); }
  // Writes size() bytes. The PDU stands directly behind them: whoever has one prepends this.
  void write(uint8_t* out) const;
};
inline constexpr uint32_t kMaxCnmFrame =
    sizeof(EthernetHeader) + kMaxVlanTags * sizeof(VlanHeader) + sizeof(CnTag) + kMaxCnmPdu;

// Writes a whole frame, not padded, and returns its length. `out` has room for it.
uint32_t build_cnm_frame(const CnmLink& link, const Cnm& cnm, std::span<uint8_t> out);

struct ParsedCnmFrame {
  CnmOutcome outcome = CnmOutcome::kNotCnm;
  CnmLink link;  // whose flow tells the sender which of its flows is meant
  Cnm cnm;
};
ParsedCnmFrame parse_cnm_frame(std::span<const uint8_t> frame);

}  // namespace roci
