// In-place parser of received frames: locates the headers, or reports why a frame is not RoCEv2. Nothing is copied.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/headers/headers.hpp"

namespace roci {

// Result of parse_frame(). The BTH fields of the view are valid only with kRoce.
enum class FrameKind : uint8_t {
  kRoce,
  kArp,
  kIpv4,        // IPv4 other than UDP to port 4791, such as ICMP
  kIpv6,        // the same for IPv6
  kOther,       // another EtherType
  kTruncated,   // shorter than its headers specify
  kBadIp,       // invalid version, header length or checksum, or a length below its headers
  kFragment,    // an IP fragment, which RoCEv2 forbids (annex A17.4.2)
  kBadUdp,      // length differs from that of IP
  kBadVersion,  // transport header version of the BTH is not 0
  kUnknownOpcode,
  kBadLength,  // too short for the opcode's headers and the ICRC, or a pad count that exceeds the payload
};
inline constexpr unsigned kFrameKindCount = 12;
std::string_view frame_kind_name(FrameKind kind);

struct FrameView {
  const uint8_t* frame = nullptr;      // first byte of the Ethernet header
  const OpcodeInfo* opcode = nullptr;  // table row of the BTH opcode
  uint32_t frame_length = 0;           // argument of parse_frame()
  uint32_t payload_length = 0;         // without pad
  uint16_t l3_offset = 0;              // of the IP header
  uint16_t l4_offset = 0;              // of the UDP header
  uint16_t bth_offset = 0;
  uint16_t payload_offset = 0;
  uint32_t icrc_offset = 0;
  FrameKind kind = FrameKind::kOther;
  uint8_t vlan_tags = 0;  // 0 to 2
  bool cn_tag = false;    // a CN-TAG follows the VLAN tags
  bool ipv6 = false;
  uint8_t pad = 0;
  bool placed = false;  // set by the worker if it has already copied the payload to its destination
  // Set by the worker if it has removed INT headers: index in TransportContext::telemetry plus one; 0: none.
  uint8_t telemetry = 0;

  template <class T>
  [[nodiscard]] const T& at(uint32_t offset) const {
    return *reinterpret_cast<const T*>(frame + offset);
  }
  [[nodiscard]] const EthernetHeader& ethernet() const { return at<EthernetHeader>(0); }
  // The innermost VLAN tag (the C-TAG if there are two).
  [[nodiscard]] const VlanHeader& vlan() const {
    return at<VlanHeader>(static_cast<uint32_t>(l3_offset) - (cn_tag ? 8 : 4));
  }
  // Flow of the CN-TAG, if present: identifies the flow at the sender.
  [[nodiscard]] uint16_t cn_flow() const { return at<Be16>(static_cast<uint32_t>(l3_offset) - 4).get(); }
  [[nodiscard]] const Ipv4Header& ipv4() const { return at<Ipv4Header>(l3_offset); }
  [[nodiscard]] const Ipv6Header& ip6() const { return at<Ipv6Header>(l3_offset); }
  [[nodiscard]] const UdpHeader& udp() const { return at<UdpHeader>(l4_offset); }
  [[nodiscard]] const Bth& bth() const { return at<Bth>(bth_offset); }
  // An extended header, which the opcode must have.
  template <class T>
  [[nodiscard]] const T& extended(Header h) const {
    return at<T>(static_cast<uint32_t>(bth_offset) + opcode->offset[static_cast<unsigned>(h)]);
  }
  [[nodiscard]] const Feth& feth() const { return extended<Feth>(Header::kFeth); }
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
  // Compares with source_ip() and destination_ip() without building them.
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

// Opcodes that a receiver accepts. Hosts that negotiated private opcodes with a peer accept them, and tools do. For
// other receivers they are unknown opcodes.
enum class OpcodeRange : uint8_t { kStandard, kWithPrivate };

// `head` has the first `head_length` bytes contiguously (the first segment of an mbuf chain). `frame_length` is the
// length of the complete frame. Bytes after the IP packet are ignored. If the frame is long enough but the headers
// exceed head_length, the kind is kTruncated; linearize such a frame first.
FrameView parse_frame(const uint8_t* head, uint32_t head_length, uint32_t frame_length,
                      OpcodeRange opcodes = OpcodeRange::kStandard);
// As above. `view` must be default-initialized.
void parse_frame(FrameView& view, const uint8_t* head, uint32_t head_length, uint32_t frame_length,
                 OpcodeRange opcodes = OpcodeRange::kStandard);

}  // namespace roci
