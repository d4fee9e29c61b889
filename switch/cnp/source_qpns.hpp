// Source queue pairs of flows. A packet names only its destination queue pair, but a CNP or telemetry response must
// name the sender's. The switch learns it from these sources, in order of reliability:
//
//   1. the packets: DETH of datagrams, else SOURCE-QPN, if two hosts have negotiated it
//   2. REQ and REP of the connection manager, which name the queue pairs of both hosts
//   3. acknowledgments of the reverse direction, for flows that find() was called for and for some other busy flows
//      (ack_correlator.hpp)
//
// A less reliable source does not overwrite a more reliable one. No source is authenticated: a packet with forged
// addresses may name any queue pair. An entry therefore belongs to the port at which the flow enters the switch.
// Packets that arrive at another port do not change it until it has expired there, as after a flow has moved. The source
// MAC address does not identify that port: the MAC table learns a forged one at the port of its sender. Where
// `addresses` binds addresses to ports, such packets are dropped before (port_bindings.hpp). Bounded (ageing_table.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "switch/cnp/ack_correlator.hpp"
#include "switch/cnp/notify_counters.hpp"
#include "switch/forwarding/ageing_table.hpp"
#include "switch/pipeline/packet.hpp"

namespace roci {

// Owned by one switch worker; counters() may be read by any thread.
class SourceQpns {
 public:
  // A flow is removed `ageing` after its last inspected packet. Of kRefresh data packets of all flows, one is
  // inspected.
  SourceQpns(uint32_t size, Nanos ageing)
      : ageing_(ageing), senders_(size, ageing), requests_(kRequests, kRequestAgeing) {}

  // Processes a packet that passes the switch and entered it at the port `ingress`.
  void observe(const RocePeek& packet, uint16_t ingress, Nanos now);

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
    uint16_t ingress = kNoPort;  // port at which the flow enters; kNoPort: not known yet
    Nanos seen{0};               // last inspected packet at that port
  };
  struct Request {
    Qpn queue_pair;
    uint16_t ingress = kNoPort;
  };
  // Key: requester, responder, and communication ID of the request (in place of a queue pair).
  using Requests = AgeingTable<RoceFlow, Request, RoceFlowHash>;

  void refresh(const RocePeek& packet, uint16_t ingress, Nanos now);
  void learn(const RoceFlow& flow, const Sender& sender, Nanos now);
  void connect(const RocePeek& packet, uint16_t ingress, Nanos now);

  const Nanos ageing_;
  AgeingTable<RoceFlow, Sender, RoceFlowHash> senders_;
  Requests requests_;
  AckCorrelator acks_;
  SenderCounters counters_;
  uint32_t seen_ = 0;  // data packets
};

}  // namespace roci
