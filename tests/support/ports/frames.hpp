// Frames for tests of ports and switches, built from the header structs without the library's encoder, so that a
// defect of the encoder cannot hide another one.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "port/dpdk/mbuf_pool.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/roce/frame.hpp"

namespace roci::test {

struct FrameSpec {
  MacAddress destination = MacAddress::local(2);
  MacAddress source = MacAddress::local(1);
  std::optional<uint16_t> vlan{};  // TCI
  IpAddress from = IpAddress::from_v4(0x0a000001);
  IpAddress to = IpAddress::from_v4(0x0a000002);  // both IPv4 or both IPv6
  uint8_t traffic_class = 0;                      // DSCP and ECN
  uint8_t ttl = 64;
  uint32_t payload = 64;  // a multiple of 4
  uint32_t number = 0;    // PSN, and seed of the payload pattern
  uint16_t source_port = 49152;
  uint32_t flow_label = 0;  // IPv6 only
};

// The bytes of an RC SEND ONLY with correct checksums and ICRC.
inline std::vector<uint8_t> roce_bytes(const FrameSpec& spec) {
  std::vector<uint8_t> out;
  const auto put = [&out](const auto& header) {
    const auto* p = reinterpret_cast<const uint8_t*>(&header);
    out.insert(out.end(), p, p + sizeof header);
  };
  const uint32_t udp_length = 8 + 12 + spec.payload + kIcrcBytes;
  const bool v4 = spec.to.is_v4();
  const uint16_t type = v4 ? kEtherTypeIpv4 : kEtherTypeIpv6;
  put(EthernetHeader{spec.destination, spec.source, Be16{spec.vlan ? kEtherTypeVlan : type}});
  if (spec.vlan) put(VlanHeader{Be16{*spec.vlan}, Be16{type}});
  if (v4) {
    Ipv4Header ip;
    ip.tos = spec.traffic_class;
    ip.total_length.set(static_cast<uint16_t>(20 + udp_length));
    ip.flags_fragment.set(0x4000);
    ip.ttl = spec.ttl;
    ip.source.set(spec.from.v4());
    ip.destination.set(spec.to.v4());
    const uint16_t sum = inet_checksum(&ip, sizeof ip);
    std::memcpy(static_cast<void*>(&ip.checksum), &sum, sizeof sum);
    put(ip);
  } else {
    Ipv6Header ip;
    ip.version_class_flow.set(6U << 28 | static_cast<uint32_t>(spec.traffic_class) << 20 | spec.flow_label);
    ip.payload_length.set(static_cast<uint16_t>(udp_length));
    ip.hop_limit = spec.ttl;
    ip.source = spec.from.bytes;
    ip.destination = spec.to.bytes;
    put(ip);
  }
  put(UdpHeader{Be16{spec.source_port}, Be16{kRoceUdpPort}, Be16{static_cast<uint16_t>(udp_length)},
                Be16{0}});
  Bth bth;
  bth.opcode = static_cast<uint8_t>(Opcode::kRcSendOnly);
  bth.pkey.set(0xffff);
  bth.destination_qp.set(0x11);
  bth.psn.set(spec.number & Psn::kMask);
  put(bth);
  for (uint32_t i = 0; i < spec.payload; ++i) out.push_back(static_cast<uint8_t>(spec.number * 7 + i));
  out.resize(out.size() + kIcrcBytes);
  const auto length = static_cast<uint32_t>(out.size());
  store_icrc(out.data() + length - kIcrcBytes, compute_icrc(parse_frame(out.data(), length, length)));
  return out;
}

// Copies bytes into an mbuf. Returns null if the pool is empty.
inline rte_mbuf* to_mbuf(const MbufPool& pool, const std::vector<uint8_t>& bytes) {
  rte_mbuf* m = rte_pktmbuf_alloc(pool.get());
  if (m == nullptr) return nullptr;
  if (!bytes.empty())
    std::memcpy(rte_pktmbuf_append(m, static_cast<uint16_t>(bytes.size())), bytes.data(), bytes.size());
  return m;
}
inline rte_mbuf* roce_mbuf(const MbufPool& pool, const FrameSpec& spec = {}) {
  return to_mbuf(pool, roce_bytes(spec));
}

// Copies all segments of a frame.
inline std::vector<uint8_t> bytes_of(const rte_mbuf* m) {
  std::vector<uint8_t> out;
  for (; m != nullptr; m = m->next) {
    const auto* p = rte_pktmbuf_mtod(m, const uint8_t*);
    out.insert(out.end(), p, p + m->data_len);
  }
  return out;
}
inline FrameView view_of(const rte_mbuf* m) {
  return parse_frame(rte_pktmbuf_mtod(m, const uint8_t*), m->data_len, m->pkt_len);
}
inline bool icrc_is_right(const rte_mbuf* m) {
  const FrameView view = view_of(m);
  return view.kind == FrameKind::kRoce && stored_icrc(view) == compute_icrc(view);
}
// The FrameSpec::number of a frame from roce_bytes().
inline uint32_t number_of(const rte_mbuf* m) { return view_of(m).psn().value(); }

}  // namespace roci::test
