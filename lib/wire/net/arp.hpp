// ARP for IPv4 over Ethernet (RFC 826).
#pragma once

#include <optional>
#include <span>

#include "wire/net/link_header.hpp"

namespace roci {

enum class ArpOperation : uint16_t { kRequest = 1, kReply = 2 };

// Wire format.
struct ArpHeader {
  Be16 hardware_type;
  Be16 protocol_type;
  uint8_t hardware_length = 6;
  uint8_t protocol_length = 4;
  Be16 operation;
  MacAddress sender_mac;
  Be32 sender_ip;
  MacAddress target_mac;
  Be32 target_ip;
};
static_assert(sizeof(ArpHeader) == 28);

struct ArpMessage {
  ArpOperation operation = ArpOperation::kRequest;
  MacAddress sender_mac;
  IpAddress sender_ip;
  MacAddress target_mac;
  IpAddress target_ip;

  // An announcement of the sender's own address to all hosts (RFC 5227 §3).
  [[nodiscard]] bool is_gratuitous() const { return sender_ip == target_ip; }
};

// Returns null if the bytes are too short or are not an ARP request or reply for IPv4 over Ethernet.
std::optional<ArpMessage> parse_arp(std::span<const uint8_t> bytes);

inline constexpr uint32_t kMaxArpFrame = sizeof(EthernetHeader) + sizeof(VlanHeader) + sizeof(ArpHeader);
// Writes a complete frame and returns its length, at most kMaxArpFrame.
uint32_t build_arp(const LinkHeader& link, const ArpMessage& message, std::span<uint8_t> out);

}  // namespace roci
