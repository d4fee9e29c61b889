// Writer of RoCEv2 frames. The headers that are constant for a path are prepared once; each packet copies them and
// fills in the variable fields.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/vector16.hpp"
#include "wire/headers/headers.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

// Traffic class of CNPs, CNMs through routers and INT responses: DSCP 48, as ConnectX NICs send CNPs. ECN-capable
// (ECT(0)), so that a shared queue marks them instead of dropping them early.
inline constexpr uint8_t kFeedbackTrafficClass = 48 << 2 | static_cast<uint8_t>(Ecn::kEct0);
inline constexpr uint8_t kFeedbackPriority = 6;  // PCP

// Addresses and header fields of the packets of a queue pair.
struct RocePath {
  MacAddress source_mac, destination_mac;
  IpAddress source_ip, destination_ip;  // both IPv4 or both IPv6
  uint16_t vlan_id = 0;                 // 0: untagged
  uint16_t udp_source_port = 0xc000;
  uint32_t flow_label = 0;    // IPv6, 20 bits
  uint8_t priority = 0;       // PCP, used with a VLAN id
  uint8_t traffic_class = 0;  // IPv4 TOS or IPv6 traffic class, DSCP and ECN
  uint8_t hop_limit = 64;
};

// Returns the UDP source port of a connected queue pair, computed as in the Linux kernel. It is derived from the 20-bit
// flow label or, if that is 0, from the two queue pair numbers. The result is the same for both directions.
uint16_t flow_udp_source_port(uint32_t flow_label, Qpn local, Qpn remote);

// Variable fields of the BTH.
struct BthFields {
  Opcode opcode;
  Qpn destination_qp;
  Psn psn;
  PKey pkey = kDefaultPKey;
  bool solicited = false;
  bool ack_request = false;
  bool becn = false;
  bool extensions = false;  // the payload starts with an extension block
  bool ect = false;         // ECT(0) if the path has Not-ECT, so that switches mark instead of dropping early
};

// Writes frames of one path in three steps. begin() writes the headers. The caller fills in extended headers and
// payload through the returned pointers. finish() writes the ICRC.
class RoceWriter {
 public:
  enum class Contents : uint8_t {
    kWhole,
    kWithoutIcrc,  // the ICRC is 0
    kHeaders,      // lengths are correct; the bytes of payload and ICRC are undefined
  };

  RoceWriter() = default;
  explicit RoceWriter(const RocePath& path, Contents contents = Contents::kWhole);

  struct Open {
    uint8_t* extended = nullptr;  // first byte after the BTH
    uint8_t* payload = nullptr;
    FrameView view;  // of the frame being written; payload and ICRC offsets are set
    // Partial ICRC, which finish() completes. `sum` covers the bytes up to `summed` of a sum that ends at `sum_end`; a
    // null `summed` means no sum. For a long payload copied by copy_payload(), icrc_state has the CRC register instead.
    const uint8_t* summed = nullptr;
    const uint8_t* sum_end = nullptr;
    Vector16 sum{};
    std::optional<uint32_t> icrc_state{};
    Contents contents = Contents::kWhole;
    // Invalidates the partial ICRC after a change of bytes that it covers.
    void discard_sum() {
      summed = nullptr;
      icrc_state.reset();
    }
    template <class T>
    T& header(Header h) const {
      return *reinterpret_cast<T*>(const_cast<uint8_t*>(view.frame) + view.bth_offset +
                                   view.opcode->offset[static_cast<unsigned>(h)]);
    }
  };

  // Length of a frame with this opcode and payload.
  [[nodiscard]] uint32_t frame_bytes(const OpcodeInfo& info, uint32_t payload_length) const {
    return bth_offset() + info.header_bytes + ((payload_length + 3) & ~3U) + kIcrcBytes;
  }
  [[nodiscard]] uint32_t l3_offset() const { return l3_offset_; }  // offset of the IP header
  // `frame` must have frame_bytes() bytes. Pad bytes are set to zero; the caller fills in extended headers and payload.
  // A UDP source port of 0 selects the port of the path.
  Open begin(uint8_t* frame, const BthFields& bth, uint32_t payload_length, uint16_t udp_source_port = 0);
  static void finish(Open& open);
  // Write an extended header at its offset for the opcode. The ICRC is computed from registers and does not wait for
  // the stores.
  static void put_reth(Open& open, uint64_t va, MemoryKey rkey, uint32_t length);
  static void put_aeth(Open& open, uint8_t syndrome, Msn msn);
  // Copies the next `length` bytes of the payload to `to`, which points into the payload. The ICRC does not read these
  // bytes again if the caller copies the complete payload with this function, in order, after it has written the
  // extended headers. `from` may be unmapped memory. The frame is then invalid, which take_memory_fault() reports.
  static void copy_payload(Open& open, uint8_t* to, const uint8_t* from, uint32_t length);

 private:
  [[nodiscard]] uint32_t bth_offset() const { return static_cast<uint32_t>(l4_offset_) + 8U; }

  std::array<uint8_t, 14 + 4 + 40 + 8 + 12> bytes_{};  // up to the end of the BTH
  uint16_t next_ip_id_ = 0;
  uint16_t fixed_sum_ = 0;  // IPv4: sum of the constant 16-bit words of the header (RFC 1071)
  uint8_t l3_offset_ = 0;
  uint8_t l4_offset_ = 0;
  bool ipv6_ = false;
  bool not_ect_ = true;
  Contents contents_ = Contents::kWhole;
};

}  // namespace roci
