// Sink of in-band telemetry: removes it from received packets, so that later stages process the packet as its sender
// created it. The ICRC covers that packet (wire/int/telemetry_header.hpp).
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.hpp"
#include "roci/telemetry_config.hpp"
#include "telemetry/counters.hpp"
#include "transport/packet_hops.hpp"
#include "wire/int/telemetry_header.hpp"

namespace roci {

// Telemetry sink of one worker, which owns it.
class TelemetrySink {
 public:
  // `packets`: maximum number of packets in processing at a time.
  // `pool` provides copies of packets whose memory is shared.
  TelemetrySink(const HostTelemetryConfig& config, uint32_t packets, rte_mempool* pool)
      : port_(config.udp_port), domain_(config.domain), pool_(pool), hops_(config.enabled() ? packets : 0) {}

  // Whether the packet is for strip(): parse_frame() has found an IP packet
  // that is not RoCEv2. Always false without a configuration.
  [[nodiscard]] bool is_telemetry(const FrameView& view, const rte_mbuf& frame) const {
    return port_ != 0 && is_for_port(view, frame);
  }
  // Destination queue pair of the inner packet, for handing over
  // the unmodified frame; no value if the packet is malformed.
  [[nodiscard]] std::optional<Qpn> destination_of(rte_mbuf& frame) const;
  // Returns the packet without telemetry: the frame itself, or a private copy, in which case `frame` is freed. The
  // packet's hops are at hops()[slot] until the slot is used again. Returns null if the packet must be dropped, which
  // is counted; `frame` is then unchanged.
  rte_mbuf* strip(rte_mbuf* frame, uint32_t slot, Counters& counters);

  [[nodiscard]] const PacketHops* hops() const { return hops_.data(); }

 private:
  [[nodiscard]] bool is_for_port(const FrameView& view, const rte_mbuf& frame) const;
  [[nodiscard]] IntView parse(rte_mbuf& frame) const;
  void read(const IntView& view, PacketHops& out) const;

  uint16_t port_;
  uint16_t domain_;
  rte_mempool* pool_;
  std::vector<PacketHops> hops_;
};

}  // namespace roci
