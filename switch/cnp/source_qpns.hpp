// Source queue pairs of flows. A packet names only its destination queue pair, but a CNP or telemetry response must
// name the sender's. The switch learns it from these sources, in order of reliability:
//
//   1. the packets: DETH of datagrams, else SOURCE-QPN, if two hosts have negotiated it
//   2. REQ and REP of the connection manager, which name the queue pairs of both hosts
//   3. acknowledgments of the reverse direction, for flows that find() was called for and for some other busy flows
//      (ack_correlator.hpp)
//
// A less reliable source does not overwrite a more reliable one. No source is authenticated. Bounded
// (ageing_table.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "switch/cnp/ack_correlator.hpp"
#include "switch/cnp/notify_counters.hpp"
#include "switch/forwarding/ageing_table.hpp"

namespace roci {

// Owned by one switch worker; counters() may be read by any thread.
class SourceQpns {
 public:
  // A flow is removed `ageing` after its last inspected packet. Of kRefresh data packets of all flows, one is
  // inspected.
  SourceQpns(uint32_t size, Nanos ageing) : senders_(size, ageing), requests_(kRequests, kRequestAgeing) {}

  // Processes a packet that passes the switch.
  void observe(const RocePeek& packet, Nanos now);

  // Returns the sender of the flow. If it is not known, the flow is watched from now on. `responses`: its packets are
  // READ responses.
  std::optional<Qpn> find(const RoceFlow& flow, bool responses, Nanos now);

  [[nodiscard]] uint32_t size() const { return senders_.size(); }
  [[nodiscard]] const SenderCounters& counters() const { return counters_; }

 private:
  static constexpr uint32_t kRefresh = 64;
  // Connection requests without a reply.
  static constexpr uint32_t kRequests = 1024;
  static constexpr Nanos kRequestAgeing = 10s;

  enum class Origin : uint8_t { kAcks, kCm, kPacket };  // in ascending reliability
  struct Sender {
    Qpn queue_pair;
    Origin origin = Origin::kAcks;
  };
  // Key: requester, responder, and communication ID of the request (in place of a queue pair).
  using Requests = AgeingTable<RoceFlow, Qpn, RoceFlowHash>;

  void read_cm_message(const RocePeek& packet, Nanos now);
  void learn(const RoceFlow& flow, Qpn sender, Origin origin, Nanos now);
  void connect(const RocePeek& packet, Nanos now);

  AgeingTable<RoceFlow, Sender, RoceFlowHash> senders_;
  Requests requests_;
  AckCorrelator acks_;
  SenderCounters counters_;
  uint32_t seen_ = 0;  // data packets
};

}  // namespace roci
