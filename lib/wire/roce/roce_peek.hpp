// Fields of a RoCEv2 packet that a switch reads: the flow, the PSN and, if the packet has it, the queue pair of the
// sender. The ICRC is not checked, and the extensions negotiated by the two hosts are unknown to the switch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/sequence.hpp"
#include "wire/headers/headers.hpp"

namespace roci {

// All packets of one direction between two queue pairs. A packet contains its destination queue pair but not its source
// queue pair, so a switch identifies flows by addresses and destination queue pair.
struct RoceFlow {
  IpAddress source, destination;
  Qpn queue_pair;  // of the destination
  friend bool operator==(const RoceFlow&, const RoceFlow&) = default;
};

// Distributes flows by the top bits. The salt must be unknown to senders, which could otherwise construct collisions.
struct RoceFlowHash {
  uint64_t operator()(const RoceFlow& flow, uint64_t salt) const;
};

struct RocePeek {
  RoceFlow flow;
  const OpcodeInfo* info = nullptr;
  Psn psn;
  PKey pkey;
  uint16_t udp_source_port = 0;
  // Queue pair of the sender, from the DETH or from SOURCE-QPN in an extension block.
  std::optional<Qpn> source_qp;
  // Bytes after the headers of the opcode that are in `head`, including extension block, pad and ICRC.
  std::span<const uint8_t> rest;

  [[nodiscard]] bool is_data() const { return info->is_data(); }
};

// Returns null if the frame is not a complete IP packet with UDP and a BTH of a known opcode. Private opcodes are
// known. `head` is the first segment of a frame of `frame_length` bytes. `int_port` is the UDP port of in-band
// telemetry, after which the packet is located too; 0: no telemetry.
std::optional<RocePeek> peek_roce(std::span<const uint8_t> head, uint32_t frame_length,
                                  uint16_t int_port = 0);

// Returns true for an ACK of an RC queue pair; false for NAKs. `head` as above; it must contain all headers.
bool is_rc_acknowledgment(std::span<const uint8_t> head, uint32_t frame_length);

// Returns true for a RoCEv2 packet with all headers in `head`, including an extension block.
bool has_roce_headers(std::span<const uint8_t> head, uint32_t frame_length);

}  // namespace roci
