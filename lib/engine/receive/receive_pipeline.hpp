// Reception of a worker, in passes over a burst: prefetch, parse, validate the ICRC, look up the queue pair, execute.
//
//   port queues, inboxes, loopback --> classify --> look-up --> execute --> on_packet()
//                                       |  |  |
//                                       |  |  +--> ARP, ND, pauses, CNMs: processed at once
//                                       |  +--> other frames: flow rules --> on_frame()
//                                       +--> packets of other workers' queue pairs: outboxes
//
// Responses are recorded while requests are executed, and sent afterwards (TransmitScheduler). A batch of requests is
// therefore acknowledged once, and a full port never stops reception. Exception: Responder::must_acknowledge_first().
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "engine/congestion/cnm_listener.hpp"
#include "engine/congestion/host_congestion_point.hpp"
#include "engine/congestion/notification_point.hpp"
#include "engine/receive/loopback.hpp"
#include "engine/receive/telemetry_sink.hpp"
#include "engine/worker/worker_context.hpp"
#include "engine/worker/worker_handoff.hpp"
#include "port/port.hpp"
#include "transport/packet_sink.hpp"

namespace roci {

class TransmitScheduler;

// Owned by its worker.
class ReceivePipeline {
 public:
  ReceivePipeline(const WorkerContext& context, const WorkerParts& parts, TransmitScheduler& scheduler);

  // Processes a burst of each source. Returns whether there was any frame.
  bool receive(TransportContext& context);
  // Delivers multicasts of this host to its own members. Returns whether there was any.
  bool receive_own_multicasts(TransportContext& context) {
    return parts_.loopback.has_multicasts() && deliver_own_multicasts(context);
  }
  // Sends a pause (PFC) if this host must. Called by the first worker.
  bool send_pause(Nanos now);

  // After a full burst, packets that arrived in time may still wait in the port.
  [[nodiscard]] bool may_have_more() const { return full_rounds_ > 0 && full_rounds_ < kMaxBursts; }
  // Hops of the packets of the current burst (FrameView::telemetry).
  [[nodiscard]] const PacketHops* hops() const { return telemetry_.hops(); }
  // When a frame can arrive from the port.
  [[nodiscard]] Nanos next_arrival() const;

 private:
  static constexpr uint16_t kBurst = WorkerHandoff::kBurst;
  // After this number of consecutive full bursts, frames that were in the port
  // at a time-out have been received: a port holds fewer frames.
  static constexpr uint32_t kMaxBursts = 256;

  struct Received {
    rte_mbuf* frame = nullptr;
    FrameView view;
    AttachedQueuePair* qp = nullptr;
    bool unchecked = false;  // the ICRC is validated while the payload is copied
  };
  enum class Origin : uint8_t { kPort, kOtherWorker };
  enum class Verdict : uint8_t {
    kForQueuePair,  // RoCEv2 for a queue pair of this worker; ICRC valid, or validated later
    kDone,
    kForeign,     // not for a protocol of this host; refused_as_ is set
    kHandedOver,  // handed over to another worker
  };

  void execute(TransportContext& context, std::span<rte_mbuf*> burst, Origin origin);
  // Rare, but not gnu::cold: GCC would then move the steps of Worker::poll behind them into its cold section.
  [[gnu::noinline]] bool receive_loopback(TransportContext& context);
  [[gnu::noinline]] bool deliver_own_multicasts(TransportContext& context);
  void deliver_multicast(TransportContext& context, const FrameView& view, const rte_mbuf* frame);

  void parse(Received& received) const;
  Verdict classify(Received& received, Nanos now, Origin origin);
  Verdict classify_telemetry(Received& received, Nanos now, Origin origin);
  Verdict classify_roce(Received& received, Nanos now, Origin origin);
  Verdict classify_resolution(const FrameView& view, rte_mbuf* frame, Nanos now, Origin origin);
  // The frame is for none of this host's protocols. `at_all_workers`: each other worker has a copy.
  Verdict refuse(Counter reason, bool at_all_workers = false) {
    if (!steering_.empty()) [[unlikely]] {
      refused_as_ = reason;
      refused_at_all_workers_ = at_all_workers;
      return Verdict::kForeign;
    }
    parts_.counters.add(reason);
    return Verdict::kDone;
  }
  // Flow rules: of frames that are refused, and of sniffers.
  [[gnu::cold, gnu::noinline]] void steer(TransportContext& context, const rte_mbuf& frame, Origin origin);
  [[gnu::cold, gnu::noinline]] void sniff(TransportContext& context, std::span<rte_mbuf* const> burst);
  void deliver_frame(TransportContext& context, AttachedQueuePair& qp, const rte_mbuf& frame);
  [[nodiscard]] bool may_hand_over(Origin origin) const {
    return origin == Origin::kPort && parts_.handoff.has_other_workers();
  }
  Verdict hand_over(uint32_t worker, rte_mbuf* frame) {
    parts_.handoff.pass(worker, frame);
    return Verdict::kHandedOver;
  }
  [[nodiscard]] bool is_for_datagrams(const FrameView& view) const;
  bool verify_deferred_icrc(const TransportContext& context, Received& received);
  void learn_neighbor(const Received& packet, Nanos now);
  void count_flow(AttachedQueuePair& qp, const FrameView& view, Nanos now) {
    if (qp.core.session != nullptr && view.opcode->is_request()) flows_.note(qp.flow_seen, now);
  }

  // receive_congestion.cpp: PFC, CNMs and CNPs.
  Verdict take_mac_control(rte_mbuf* frame, Nanos now, Origin origin);
  void note_backlog(const PortQueue& queue, bool full_burst);
  Verdict take_cnm(Received& received, Nanos now, Origin origin);
  void sample(const Received& packet, Nanos now);
  void notify(const Received& packet, Nanos now);

  const WorkerParts parts_;
  TransmitScheduler& scheduler_;
  const MulticastTable& groups_;
  const SteeringTable& steering_;
  FlowControl& flow_control_;
  FlowCount& flows_;      // of this worker
  const MacAddress mac_;  // of the port
  const bool header_only_;
  const bool needs_icrc_;       // of the port
  const bool place_early_;      // place payloads of middle packets while their ICRC is computed
  const bool pausable_;         // the link partner may pause priorities
  const bool watches_backlog_;  // of received frames
  // Of the frame that is being classified.
  Counter refused_as_{};
  bool refused_at_all_workers_ = false;
  uint32_t full_rounds_ = 0;        // number of consecutive rounds with a full receive burst
  uint32_t full_bursts_ = 0;        // consecutive
  std::vector<PortQueue*> queues_;  // of the port
  TelemetrySink telemetry_;
  CnmListener cnms_;
  std::optional<HostCongestionPoint> congestion_point_;
  NotificationPoint notification_point_;
  std::array<Received, kBurst> received_{};
};

}  // namespace roci
