// Classification stage: selects the traffic class of a frame by DSCP or PCP, and reads its ECN bits.
#pragma once

#include "switch/pipeline/packet.hpp"
#include "switch/qos/class_config.hpp"
#include "wire/headers/headers.hpp"
#include "wire/net/link_tags.hpp"

namespace roci {

// Sets traffic_class and ecn of a parsed packet, from the headers as received.
inline void classify(SwitchPacket& packet, const ClassifierConfig& config) {
  const rte_mbuf* frame = packet.frame;
  const auto* bytes = rte_pktmbuf_mtod(frame, const uint8_t*);
  const uint32_t behind = frame->data_len - packet.l3_offset;  // parse() has checked that it is not negative
  int traffic_class = -1;
  packet.ecn = Ecn::kNotEct;
  if (packet.ether_type == kEtherTypeIpv4 && behind >= sizeof(Ipv4Header)) {
    const uint8_t tos = bytes[packet.l3_offset + 1U];
    packet.ecn = static_cast<Ecn>(tos & 3U);
    traffic_class = config.by_dscp[tos >> 2];
  } else if (packet.ether_type == kEtherTypeIpv6 && behind >= sizeof(Ipv6Header)) {
    const uint32_t word =
        reinterpret_cast<const Ipv6Header*>(bytes + packet.l3_offset)->version_class_flow.get();
    packet.ecn = static_cast<Ecn>(word >> 20 & 3U);
    traffic_class = config.by_dscp[word >> 22 & 0x3fU];
  }
  if (traffic_class < 0 || config.trust == ClassifierConfig::Trust::kPcp) {
    const size_t bare = sizeof(EthernetHeader) + (packet.has_cn_tag ? sizeof(CnTag) : 0);
    const bool tagged = packet.l3_offset > bare;
    // The PCP is in the top bits of the TCI.
    traffic_class = tagged ? config.by_pcp[bytes[sizeof(EthernetHeader)] >> 5] : config.untagged;
  }
  packet.traffic_class = static_cast<uint8_t>(traffic_class);
}

}  // namespace roci
