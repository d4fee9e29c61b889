// Hears congestion notification messages and believes them or not. One that came in layer 2 and one that came through routers
// differ in how they are read and in how their flow is found; from there on they are the same (L3QCN 6).
//
//   a frame -> is it whole, signed? -> whose flow? -> (to that worker) -> is the sampled packet one of it? -> not too often?
//
// Anybody on the way can make such a message. So it must give back the beginning of a packet that its queue pair has sent
// lately: with the right addresses and ports, to the right queue pair, with a PSN that has been used.
#pragma once

#include <rte_mbuf.h>

#include <optional>

#include "base/rate_limit.hpp"
#include "engine/congestion_flows.hpp"
#include "roci/congestion_config.hpp"
#include "telemetry/counters.hpp"
#include "transport/queue_pair_core.hpp"
#include "wire/frame.hpp"
#include "wire/l3_cnm_guard.hpp"
#include "wire/sampled_packet.hpp"

namespace roci {

// A message that is whole. Lies in its frame.
struct HeardCnm {
  Cnm cnm;
  L3CnmTlvs more;
  std::optional<uint16_t> tag;    // of its CN-TAG
  std::optional<FiveTuple> flow;  // of one through routers
  std::optional<SampledPacket> sampled;
};

// Of one worker, and owned by it.
class CnmListener {
 public:
  // `int_port`: of packets with in-band telemetry, 0 without; `workers`: that share the limits; `salt`: unknown to others.
  CnmListener(const CongestionConfig& config, CongestionFlows& flows, uint16_t int_port, uint32_t workers,
              uint64_t salt);

  // Whether this is a message for read(): parse_frame() has found no RoCEv2 in it. Never without a configuration.
  [[nodiscard]] bool is_cnm(const FrameView& view, const rte_mbuf& frame) const {
    return listens_ && has_its_form(view, frame);
  }
  // The frame in one piece. Null when it is to be dropped, which is counted.
  [[nodiscard]] std::optional<HeardCnm> read(const FrameView& view, const rte_mbuf& frame,
                                             Counters& counters) const;
  // The queue pair that is meant, if it exists; null when none can be.
  [[nodiscard]] std::optional<Qpn> find(const HeardCnm& heard) const;
  // Records what it says about this queue pair, which has the number `flow`; counted, whatever comes of it.
  void take(const HeardCnm& heard, const QueuePairCore& qp, uint16_t flow, Nanos now, Counters& counters);

 private:
  static constexpr uint32_t kSigningPoints = 1024;
  // So many PSNs back a packet may have been sent that is sampled now.
  static constexpr int32_t kRecent = 1 << 16;
  enum class Proof : uint8_t { kRight, kShort, kWrong };

  [[nodiscard]] bool has_its_form(const FrameView& view, const rte_mbuf& frame) const;
  [[nodiscard]] Proof prove(const HeardCnm& heard, const QueuePairCore& qp) const;
  [[nodiscard]] bool is_addressed_as(const SampledPacket& sampled, const QueuePairCore& qp) const;

  CongestionFlows& flows_;
  const bool listens_;
  const bool tags_;
  const bool short_samples_;
  const uint16_t port_;
  const uint16_t int_port_;
  const std::optional<SipKey> key_;
  const Nanos time_of_day_;  // to be added to the worker's clock
  RateLimit limit_;
  L3CnmGuard guard_;
};

}  // namespace roci
