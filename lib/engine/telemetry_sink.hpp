// Takes in-band telemetry out of packets that come in, so that everything behind it sees the packet that its sender made:
// the ICRC is that one's (wire/telemetry_header.hpp).
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
#include "wire/telemetry_header.hpp"

namespace roci {

// Of one worker, and owned by it.
class TelemetrySink {
 public:
  // `packets`: that may be in the worker's hands at a time. `pool` gives copies of packets that are not this host's alone.
  TelemetrySink(const HostTelemetryConfig& config, uint32_t packets, rte_mempool* pool)
      : port_(config.udp_port), domain_(config.domain), pool_(pool), hops_(config.enabled() ? packets : 0) {}

  // Whether this is a packet for strip(): parse_frame() has found IP in it, and no RoCEv2. Never without a configuration.
  [[nodiscard]] bool is_telemetry(const FrameView& view, const rte_mbuf& frame) const {
    return port_ != 0 && is_for_port(view, frame);
  }
  // The queue pair that the packet inside goes to, for who is to hand it over as it is; null when it is malformed.
  [[nodiscard]] std::optional<Qpn> destination_of(rte_mbuf& frame) const;
  // The packet without telemetry: itself, or a copy of which this host may change the front, and then `frame` is freed. Its
  // hops are at hops()[slot] until the slot is used again. Null, with `frame` as it was, when it is to be dropped, which is
  // counted.
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
