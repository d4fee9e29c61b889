#include "switch/forwarding/path_hash.hpp"

#include "wire/headers/flow_hasher.hpp"
#include "wire/headers/headers.hpp"

namespace roci {
namespace {

// Hashed fields in addition to the addresses: protocol and ports. `l4` starts after the IP header.
uint64_t ports_of(uint8_t protocol, std::span<const uint8_t> l4) {
  struct Ports {
    Be16 source, destination;
  };
  const uint64_t word = uint64_t{protocol} << 32;
  if (l4.size() < sizeof(Ports)) return word;
  const auto& ports = *reinterpret_cast<const Ports*>(l4.data());
  if (protocol == kProtocolUdp) return word | ports.source.get();
  if (protocol == kProtocolTcp) return word | ports.source.get() | uint64_t{ports.destination.get()} << 16;
  return word;
}

}  // namespace

uint64_t path_hash(std::span<const uint8_t> packet, uint64_t salt) {
  FlowHasher hash{salt};
  if (packet[0] >> 4 == 4) {
    const auto& ip = *reinterpret_cast<const Ipv4Header*>(packet.data());
    hash.add(uint64_t{ip.source.get()} << 32 | ip.destination.get());
    const size_t header = (ip.version_ihl & 0xfU) * 4;
    const bool fragment = (ip.flags_fragment.get() & 0x3fff) != 0;  // MF flag, or not the first fragment
    hash.add(ports_of(ip.protocol, fragment || header > packet.size() ? std::span<const uint8_t>{}
                                                                      : packet.subspan(header)));
  } else {
    const auto& ip = *reinterpret_cast<const Ipv6Header*>(packet.data());
    hash.add(ip.source);
    hash.add(ip.destination);
    const uint64_t label = ip.version_class_flow.get() & 0xfffff;
    hash.add(ports_of(ip.next_header, packet.subspan(sizeof(Ipv6Header))) | label << 40);
  }
  return rehash(hash.value());
}

uint64_t path_salt(const MacAddress& mac) {
  uint64_t bits = 0;
  for (const uint8_t byte : mac.bytes) bits = bits << 8 | byte;
  return rehash(bits);
}

}  // namespace roci
