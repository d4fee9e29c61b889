// Writing RoCEv2 frames: the headers that stay the same for a path are laid out once, and each packet copies them and
// fills in what changes.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <optional>
#include <span>

#include "wire/frame.hpp"
#include "wire/headers.hpp"

namespace roci {

// Of CNPs, CNMs through routers and INT responses: DSCP 48, as ConnectX NICs send CNPs, and ECN-capable (ECT(0)), so that they
// are marked and not dropped early where they share a queue.
inline constexpr uint8_t kFeedbackTrafficClass = 48 << 2 | static_cast<uint8_t>(Ecn::kEct0);
inline constexpr uint8_t kFeedbackPriority = 6;  // PCP

// Where packets of a queue pair come from and go to, above the port.
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

// The UDP source port of a connected queue pair as the Linux kernel computes it, the same in both directions: from
// the 20-bit flow label, or from the two queue pair numbers when that is 0.
uint16_t flow_udp_source_port(uint32_t flow_label, Qpn local, Qpn remote);

// What a packet says in its BTH.
struct BthFields {
  Opcode opcode;
  Qpn destination_qp;
  Psn psn;
  PKey pkey = kDefaultPKey;
  bool solicited = false;
  bool ack_request = false;
  bool becn = false;
  bool extensions = false;  // an extension block stands at the start of what is here called the payload
  bool ect = false;         // ECT(0) where the path says Not-ECT: switches mark it and do not drop it early
};

// Lays frames out for one path. A frame is written in three steps: begin() puts the headers, the caller fills the
// extended headers and the payload through the pointers it gets, finish() puts the ICRC.
class RoceWriter {
 public:
  enum class Contents : uint8_t {
    kWhole,
    kWithoutIcrc,  // the ICRC is 0
    kHeaders,      // frames are as long as they should be; the bytes of payload and ICRC are undefined
  };

  RoceWriter() = default;
  explicit RoceWriter(const RocePath& path, Contents contents = Contents::kWhole);

  struct Open {
    uint8_t* extended = nullptr;  // behind the BTH
    uint8_t* payload = nullptr;
    FrameView view;  // of the frame being written; its payload and ICRC offsets are set
    // What is known of the ICRC so far; finish() adds the rest. Up to `summed` the bytes that it covers are in `sum`,
    // which runs to `sum_end`; null: nothing is. Of a long payload that copy_payload() has copied there is a register.
    const uint8_t* summed = nullptr;
    const uint8_t* sum_end = nullptr;
    __m128i sum{};
    std::optional<uint32_t> icrc_state{};
    Contents contents = Contents::kWhole;
    // Somebody has changed bytes that were known.
    void forget_sum() {
      summed = nullptr;
      icrc_state.reset();
    }
    template <class T>
    T& header(Header h) const {
      return *reinterpret_cast<T*>(const_cast<uint8_t*>(view.frame) + view.bth_offset +
                                   view.opcode->offset[static_cast<unsigned>(h)]);
    }
  };

  // Bytes of a frame with this opcode and payload.
  [[nodiscard]] uint32_t frame_bytes(const OpcodeInfo& info, uint32_t payload_length) const {
    return bth_offset() + info.header_bytes + ((payload_length + 3) & ~3U) + kIcrcBytes;
  }
  [[nodiscard]] uint32_t l3_offset() const { return l3_offset_; }  // where the network header stands
  // `frame` has room for frame_bytes(). Pad bytes are zeroed, extended headers and payload are left to the caller.
  // A UDP source port of 0 is the path's.
  Open begin(uint8_t* frame, const BthFields& bth, uint32_t payload_length, uint16_t udp_source_port = 0);
  static void finish(Open& open);
  // These put an extended header where the opcode has it, out of registers: the ICRC need not wait for the frame.
  static void put_reth(Open& open, uint64_t va, MemoryKey rkey, uint32_t length);
  static void put_aeth(Open& open, uint8_t syndrome, Msn msn);
  // Copies the next `length` bytes of the payload to `to`, which lies in it. When the payload is copied with nothing but
  // this, in order and whole, and everything before it has been written, its bytes are not read again for the ICRC.
  // `from` may be memory that is not there any more: then the frame is worth nothing (take_memory_fault()).
  static void copy_payload(Open& open, uint8_t* to, const uint8_t* from, uint32_t length);

 private:
  [[nodiscard]] uint32_t bth_offset() const { return static_cast<uint32_t>(l4_offset_) + 8U; }

  std::array<uint8_t, 14 + 4 + 40 + 8 + 12> bytes_{};  // up to where the BTH ends
  uint16_t next_ip_id_ = 0;
  uint16_t fixed_sum_ = 0;  // IPv4: of the header's 16-bit words that stay the same (RFC 1071)
  uint8_t l3_offset_ = 0;
  uint8_t l4_offset_ = 0;
  bool ipv6_ = false;
  bool not_ect_ = true;
  Contents contents_ = Contents::kWhole;
};

}  // namespace roci
