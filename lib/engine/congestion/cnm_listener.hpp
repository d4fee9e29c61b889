// Reception and validation of congestion notification messages. Layer 2 and layer 3 messages differ in parsing and in
// how their flow is found; the remaining steps are the same (L3QCN 6).
//
//   frame -> well-formed, signed? -> flow? -> (handover to its worker) -> packet sampled from it? -> rate limit
//
// Any device on the path can forge such a message. Therefore it must contain the start of a packet that its queue pair
// has recently sent: with the correct addresses and ports, to the correct queue pair, and with a PSN that was used.
#pragma once

#include <rte_mbuf.h>

#include <optional>

#include "base/time/rate_limit.hpp"
#include "engine/congestion/congestion_flows.hpp"
#include "roci/congestion_config.hpp"
#include "telemetry/counters.hpp"
#include "transport/queue_pair/queue_pair_core.hpp"
#include "wire/cnm/l3_cnm_guard.hpp"
#include "wire/cnm/sampled_packet.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

// A well-formed message. Refers to memory of its frame.
struct ReceivedCnm {
  Cnm cnm;
  L3CnmTlvs more;
  std::optional<uint16_t> tag;    // of its CN-TAG
  std::optional<FiveTuple> flow;  // of a layer 3 message
  std::optional<SampledPacket> sampled;
};

// CNM receiver of one worker, which owns it.
class CnmListener {
 public:
  // `int_port`: UDP port of packets with in-band telemetry, 0:
  // none; `workers`: that share the rate limits; `salt`: secret.
  CnmListener(const CongestionConfig& config, CongestionFlows& flows, uint16_t int_port, uint32_t workers,
              uint64_t salt);

  // Whether the frame is for read(): parse_frame() has found
  // that it is not RoCEv2. Always false without a configuration.
  [[nodiscard]] bool is_cnm(const FrameView& view, const rte_mbuf& frame) const {
    return listens_ && is_well_formed(view, frame);
  }
  // The frame must be contiguous. No value if the message must be dropped, which is counted.
  [[nodiscard]] std::optional<ReceivedCnm> read(const FrameView& view, const rte_mbuf& frame,
                                                Counters& counters) const;
  // The queue pair to which the message refers, which may not exist; no value if none matches.
  [[nodiscard]] std::optional<Qpn> find(const ReceivedCnm& received_cnm) const;
  // Validates the message and records it for this queue pair, which has the number `flow`. Counts every outcome. True
  // if it was recorded.
  bool take(const ReceivedCnm& received_cnm, const QueuePairCore& qp, uint16_t flow, Nanos now,
            Counters& counters);

 private:
  static constexpr uint32_t kSigningPoints = 1024;
  // Maximum age of a sampled packet in PSNs.
  static constexpr int32_t kRecent = 1 << 16;
  enum class Validity : uint8_t { kValid, kShort, kInvalid };

  [[nodiscard]] bool is_well_formed(const FrameView& view, const rte_mbuf& frame) const;
  [[nodiscard]] Validity validate(const ReceivedCnm& received_cnm, const QueuePairCore& qp) const;
  [[nodiscard]] bool is_addressed_as(const SampledPacket& sampled, const QueuePairCore& qp) const;

  CongestionFlows& flows_;
  const bool listens_;
  const bool tags_;
  const bool short_samples_;
  const uint16_t port_;
  const uint16_t int_port_;
  const std::optional<SipKey> key_;
  const Nanos time_of_day_;  // offset from the worker's clock
  RateLimit limit_;
  L3CnmGuard guard_;
};

}  // namespace roci
