// Reading a received frame in place: where each header lies, and why a frame is not RoCEv2. Nothing is copied.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/headers.hpp"

namespace roci {

// What parse_frame() made of a frame. Everything but kRoce leaves the BTH fields of the view unset.
enum class FrameKind : uint8_t {
  kRoce,
  kArp,
  kIpv4,        // IPv4 that is not UDP to port 4791: ICMP and others
  kIpv6,        // the same for IPv6
  kOther,       // another EtherType
  kTruncated,   // shorter than its own headers say
  kBadIp,       // version, header length or checksum wrong, or a length below its headers
  kFragment,    // an IP fragment: RoCEv2 forbids them (annex A17.4.2)
  kBadUdp,      // length disagrees with IP
  kBadVersion,  // BTH transport header version is not 0
  kUnknownOpcode,
  kBadLength,  // too short for the opcode's headers and the ICRC, or pad count beyond the payload
};
inline constexpr unsigned kFrameKindCount = 12;
std::string_view frame_kind_name(FrameKind kind);

struct FrameView {
  const uint8_t* frame = nullptr;      // first byte of the Ethernet header
  const OpcodeInfo* opcode = nullptr;  // the BTH opcode's table row
  uint32_t frame_length = 0;           // as given to parse_frame()
  uint32_t payload_length = 0;         // without pad
  uint16_t l3_offset = 0;              // of the IP header
  uint16_t l4_offset = 0;              // of the UDP header
  uint16_t bth_offset = 0;
  uint16_t payload_offset = 0;
  uint32_t icrc_offset = 0;
  FrameKind kind = FrameKind::kOther;
  uint8_t vlan_tags = 0;  // 0 to 2
  bool cn_tag = false;    // behind them stands a CN-TAG
  bool ipv6 = false;
  uint8_t pad = 0;
  bool placed = false;  // set by who has copied the payload already to where its message goes
  // Set by who has taken telemetry out of the packet: one more than its place in TransportContext::telemetry, 0 for none.
  uint8_t telemetry = 0;

  template <class T>
  [[nodiscard]] const T& at(uint32_t offset) const {
    return *reinterpret_cast<const T*>(frame + offset);
  }
  [[nodiscard]] const EthernetHeader& ethernet() const { return at<EthernetHeader>(0); }
  // The tag closest to the payload (the C-TAG when there are two).
  [[nodiscard]] const VlanHeader& vlan() const {
    return at<VlanHeader>(static_cast<uint32_t>(l3_offset) - (cn_tag ? 8 : 4));
  }
  // Of the CN-TAG, when there is one: which of its sender's flows the packet is of.
  [[nodiscard]] uint16_t cn_flow() const { return at<Be16>(static_cast<uint32_t>(l3_offset) - 4).get(); }
  [[nodiscard]] const Ipv4Header& ipv4() const { return at<Ipv4Header>(l3_offset); }
  [[nodiscard]] const Ipv6Header& ip6() const { return at<Ipv6Header>(l3_offset); }
  [[nodiscard]] const UdpHeader& udp() const { return at<UdpHeader>(l4_offset); }
  [[nodiscard]] const Bth& bth() const { return at<Bth>(bth_offset); }
  // An extended header; the opcode must have it.
  template <class T>
  [[nodiscard]] const T& extended(Header h) const {
    return at<T>(static_cast<uint32_t>(bth_offset) + opcode->offset[static_cast<unsigned>(h)]);
  }
  [[nodiscard]] const Reth& reth() const { return extended<Reth>(Header::kReth); }
  [[nodiscard]] const Aeth& aeth() const { return extended<Aeth>(Header::kAeth); }
  [[nodiscard]] const AtomicEth& atomic_eth() const { return extended<AtomicEth>(Header::kAtomicEth); }
  [[nodiscard]] const AtomicAckEth& atomic_ack() const {
    return extended<AtomicAckEth>(Header::kAtomicAckEth);
  }
  [[nodiscard]] const ImmDt& imm() const { return extended<ImmDt>(Header::kImmDt); }
  [[nodiscard]] const Ieth& ieth() const { return extended<Ieth>(Header::kIeth); }
  [[nodiscard]] const Deth& deth() const { return extended<Deth>(Header::kDeth); }
  [[nodiscard]] Srqn xrc_srq() const { return Srqn{extended<XrcEth>(Header::kXrcEth).srq.get()}; }

  [[nodiscard]] const Probe& probe() const { return extended<Probe>(Header::kProbe); }
  [[nodiscard]] const ProbeTimes& probe_times() const { return extended<ProbeTimes>(Header::kProbeTimes); }
  [[nodiscard]] const IntReport& int_report() const { return extended<IntReport>(Header::kIntReport); }

  [[nodiscard]] IpAddress source_ip() const;
  [[nodiscard]] IpAddress destination_ip() const;
  // Whether these are source_ip() and destination_ip(), found without building them.
  [[nodiscard]] bool is_between(const IpAddress& source, const IpAddress& destination) const;
  [[nodiscard]] uint8_t traffic_class() const;  // DSCP and ECN
  [[nodiscard]] Ecn ecn() const { return static_cast<Ecn>(traffic_class() & 3); }
  [[nodiscard]] Qpn destination_qp() const { return Qpn{bth().destination_qp.get()}; }
  [[nodiscard]] Psn psn() const { return Psn{bth().psn.get()}; }
  // 12-bit VLAN id, 0 when untagged or priority-tagged.
  [[nodiscard]] uint16_t vlan_id() const {
    return vlan_tags == 0 ? uint16_t{0} : uint16_t(vlan().tci.get() & 0xfff);
  }
};

// Which opcodes there are, for a receiver. Private ones exist for one that has agreed on them with some peer, and for
// tools; to all others they are as unknown as any that the table does not have.
enum class OpcodeRange : uint8_t { kStandard, kWithPrivate };

// `head` holds the first `head_length` bytes contiguously (the first segment of an mbuf chain), `frame_length` is the
// whole frame. Trailing bytes behind the IP packet are allowed and ignored. When the headers do not fit into
// head_length but would into the frame, the kind is kTruncated: linearise such a frame first.
FrameView parse_frame(const uint8_t* head, uint32_t head_length, uint32_t frame_length,
                      OpcodeRange opcodes = OpcodeRange::kStandard);
// The same into a view that is as new.
void parse_frame(FrameView& view, const uint8_t* head, uint32_t head_length, uint32_t frame_length,
                 OpcodeRange opcodes = OpcodeRange::kStandard);

}  // namespace roci
