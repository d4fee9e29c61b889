#include "wire/net/steering_key.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "wire/headers/headers.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {
namespace {

// Two VLAN tags, an IPv4 header with options, and the ports.
constexpr uint32_t kLongestHead = 14 + 2 * 4 + 60 + 4;

template <size_t N>
void take(std::array<uint8_t, N>& field, const uint8_t* from) {
  std::memcpy(field.data(), from, N);
}

void read_ports(SteeringKey& key, std::span<const uint8_t> l4) {
  if ((key.protocol != kProtocolTcp && key.protocol != kProtocolUdp) || l4.size() < 4) return;
  key.ports_of = key.protocol;
  take(key.source_port, l4.data());
  take(key.destination_port, l4.data() + 2);
}

void read_ipv4(SteeringKey& key, std::span<const uint8_t> l3) {
  const size_t header = l3.empty() ? 0 : size_t{l3[0] & 0xfU} * 4;
  if (l3.size() < 20 || l3[0] >> 4 != 4 || header < 20) return;
  key.ip_version = 4;
  key.traffic_class = l3[1];
  key.hop_limit = l3[8];
  key.protocol = l3[9];
  key.ip_flags = l3[6] >> 5;
  std::memcpy(key.source_ip.data(), &l3[12], 4);
  std::memcpy(key.destination_ip.data(), &l3[16], 4);
  const bool first = ((l3[6] & 0x1f) | l3[7]) == 0;
  if (first && l3.size() > header) read_ports(key, l3.subspan(header));
}

void read_ipv6(SteeringKey& key, std::span<const uint8_t> l3) {
  if (l3.size() < 40 || l3[0] >> 4 != 6) return;
  key.ip_version = 6;
  key.traffic_class = static_cast<uint8_t>(l3[0] << 4 | l3[1] >> 4);
  key.flow_label = {0, static_cast<uint8_t>(l3[1] & 0xf), l3[2], l3[3]};
  key.protocol = l3[6];
  key.hop_limit = l3[7];
  take(key.source_ip, &l3[8]);
  take(key.destination_ip, &l3[24]);
  read_ports(key, l3.subspan(40));
}

}  // namespace

SteeringKey read_steering_key(const rte_mbuf& frame) {
  std::array<uint8_t, kLongestHead> bytes;
  const uint32_t length = std::min(rte_pktmbuf_pkt_len(&frame), kLongestHead);
  SteeringKey key;
  const void* head = rte_pktmbuf_read(&frame, 0, length, bytes.data());
  if (head == nullptr || length < sizeof(EthernetHeader)) return key;
  // The sender may still write to memory that it shares with this host.
  if (head != bytes.data()) std::memcpy(bytes.data(), head, length);
  take(key.destination_mac, bytes.data());
  take(key.source_mac, bytes.data() + 6);
  const auto tagged = parse_link_tags({bytes.data(), length});
  if (!tagged) return key;
  if (tagged->tags.vlan_count > 0) {
    const uint16_t tci = tagged->tags.vlan[0].tci;
    key.vlan_tag = {static_cast<uint8_t>(tci >> 8), static_cast<uint8_t>(tci)};
  }
  key.ether_type = {static_cast<uint8_t>(tagged->ether_type >> 8), static_cast<uint8_t>(tagged->ether_type)};
  if (tagged->l3_offset() > length) return key;
  const std::span<const uint8_t> l3(bytes.data() + tagged->l3_offset(), length - tagged->l3_offset());
  if (tagged->ether_type == kEtherTypeIpv4) read_ipv4(key, l3);
  if (tagged->ether_type == kEtherTypeIpv6) read_ipv6(key, l3);
  return key;
}

bool matches(const SteeringKey& key, const SteeringKey& value, const SteeringKey& mask) {
  const auto* const k = reinterpret_cast<const uint8_t*>(&key);
  const auto* const v = reinterpret_cast<const uint8_t*>(&value);
  const auto* const m = reinterpret_cast<const uint8_t*>(&mask);
  uint8_t differs = 0;
  for (size_t i = 0; i < sizeof(SteeringKey); ++i) differs |= static_cast<uint8_t>((k[i] & m[i]) ^ v[i]);
  return differs == 0;
}

}  // namespace roci
