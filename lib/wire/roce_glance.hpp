// What a switch reads of a RoCEv2 packet in passing, without its ICRC and without knowing what the two hosts have agreed
// on: whose flow it is, where in it, and the sender's queue pair if the packet says so itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/sequence.hpp"
#include "wire/headers.hpp"

namespace roci {

// All packets of one direction between two queue pairs. A packet names the queue pair it goes to, and not the one it comes
// from; the addresses and that number are what a switch tells such flows apart by.
struct RoceFlow {
  IpAddress source, destination;
  Qpn queue_pair;  // of the destination
  friend bool operator==(const RoceFlow&, const RoceFlow&) = default;
};

// Spreads flows into the top bits; the salt is unknown to who would choose flows that collide.
struct RoceFlowHash {
  uint64_t operator()(const RoceFlow& flow, uint64_t salt) const;
};

struct RoceGlance {
  RoceFlow flow;
  const OpcodeInfo* info = nullptr;
  Psn psn;
  PKey pkey;
  uint16_t udp_source_port = 0;
  // From the DETH, or from SOURCE-QPN in an extension block.
  std::optional<Qpn> source_qp;
  // Behind the headers of the opcode, as far as it lies in the head; block, pad and ICRC are part of it.
  std::span<const uint8_t> rest;

  [[nodiscard]] bool is_data() const { return info->is_data(); }
};

// Null when the frame is no whole IP packet in UDP with a BTH of a known opcode (private ones are known). `int_port`: the
// UDP port of in-band telemetry, behind which the packet is found too; 0: there is none. `head` is the first segment of
// a frame of `frame_length` bytes.
std::optional<RoceGlance> glance_roce(std::span<const uint8_t> head, uint32_t frame_length,
                                      uint16_t int_port = 0);

// Whether the frame is a positive acknowledgment of an RC queue pair. `head` as above, with all headers in it.
bool is_rc_acknowledgment(std::span<const uint8_t> head, uint32_t frame_length);

// Whether the frame is a RoCEv2 packet of which `head` has all headers, an extension block included.
bool has_roce_headers(std::span<const uint8_t> head, uint32_t frame_length);

}  // namespace roci
