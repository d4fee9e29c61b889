#include "wire/net/arp.hpp"

#include <cassert>

namespace roci {
namespace {

constexpr uint16_t kEthernetHardware = 1;

}  // namespace

std::optional<ArpMessage> parse_arp(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof(ArpHeader)) return std::nullopt;
  const auto& arp = *reinterpret_cast<const ArpHeader*>(bytes.data());
  const uint16_t operation = arp.operation.get();
  if (arp.hardware_type.get() != kEthernetHardware || arp.protocol_type.get() != kEtherTypeIpv4 ||
      arp.hardware_length != 6 || arp.protocol_length != 4 || operation < 1 || operation > 2) {
    return std::nullopt;
  }
  return ArpMessage{static_cast<ArpOperation>(operation), arp.sender_mac,
                    IpAddress::from_v4(arp.sender_ip.get()), arp.target_mac,
                    IpAddress::from_v4(arp.target_ip.get())};
}

uint32_t build_arp(const LinkHeader& link, const ArpMessage& message, std::span<uint8_t> out) {
  const uint32_t length = link.size() + static_cast<uint32_t>(sizeof(ArpHeader));
  assert(out.size() >= length);
  link.write(out.data(), kEtherTypeArp);
  auto& arp = *reinterpret_cast<ArpHeader*>(out.data() + link.size());
  arp = ArpHeader{};
  arp.hardware_type.set(kEthernetHardware);
  arp.protocol_type.set(kEtherTypeIpv4);
  arp.operation.set(static_cast<uint16_t>(message.operation));
  arp.sender_mac = message.sender_mac;
  arp.sender_ip.set(message.sender_ip.v4());
  arp.target_mac = message.target_mac;
  arp.target_ip.set(message.target_ip.v4());
  return length;
}

}  // namespace roci
