// Whose queue pair a flow comes from. A packet names the queue pair it goes to alone, and a CNP must name the sender's, so a
// switch that sends CNPs learns it, in this order of trust:
//
//   1. the packets say so: datagrams in their DETH, others in SOURCE-QPN, where two hosts have agreed on it
//   2. the connection manager's REQ and REP, in which both hosts tell each other theirs
//   3. the acknowledgements that come back, for flows that somebody has asked for and for some of the others that are
//      busy (ack_correlator.hpp)
//
// What a better way has said is not changed by a worse one. Nothing here is authenticated. Bounded (ageing_table.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "switch/ack_correlator.hpp"
#include "switch/ageing_table.hpp"
#include "switch/notify_counters.hpp"

namespace roci {

// Owned by the switch's thread; counters() may be read by any.
class SourceQpns {
 public:
  // `ageing` after its last packets (one of kRefresh, over all flows, is looked at) a flow is forgotten.
  SourceQpns(uint32_t size, Nanos ageing) : senders_(size, ageing), requests_(kRequests, kRequestAgeing) {}

  // A packet has come by.
  void see(const RoceGlance& packet, Nanos now);

  // Who sends the flow; `responses`: its packets are READ responses. When it is not known the flow is watched from now on.
  std::optional<Qpn> find(const RoceFlow& flow, bool responses, Nanos now);

  [[nodiscard]] uint32_t size() const { return senders_.size(); }
  [[nodiscard]] const SenderCounters& counters() const { return counters_; }

 private:
  static constexpr uint32_t kRefresh = 64;
  // Connections that somebody has asked for and nobody answered yet.
  static constexpr uint32_t kRequests = 1024;
  static constexpr Nanos kRequestAgeing = 10s;

  enum class Way : uint8_t { kAcks, kCm, kPacket };  // the better the later
  struct Sender {
    Qpn queue_pair;
    Way way = Way::kAcks;
  };
  // By whom, to whom, and under which number (in the place of a queue pair).
  using Requests = AgeingTable<RoceFlow, Qpn, RoceFlowHash>;

  void look_at(const RoceGlance& packet, Nanos now);
  void learn(const RoceFlow& flow, Qpn sender, Way way, Nanos now);
  void connect(const RoceGlance& packet, Nanos now);

  AgeingTable<RoceFlow, Sender, RoceFlowHash> senders_;
  Requests requests_;
  AckCorrelator acks_;
  SenderCounters counters_;
  uint32_t seen_ = 0;  // packets with data
};

}  // namespace roci
