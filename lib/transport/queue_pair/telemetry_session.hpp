// In-band telemetry of a queue pair. As a receiver it returns the hops that switches wrote into the peer's packets. As
// a sender it stores the latest hops that the peer returned, for congestion control, and starts telemetry in its own
// packets. A queue pair has no telemetry session if its host or its peer does not support telemetry.
#pragma once

#include <array>
#include <cstdint>

#include "base/containers/sparse_arena.hpp"
#include "base/sequence.hpp"
#include "base/time/rate_limit.hpp"
#include "base/types.hpp"
#include "roci/telemetry_config.hpp"
#include "transport/packet_hops.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/roce/frame.hpp"

struct rte_mbuf;

namespace roci {

struct TransportContext;

// Subject of a list of hops. Requests are one direction of a queue pair, READ responses the other
// (transport/queue_pair/flow.hpp).
enum class HopsOf : uint8_t { kRequests, kResponses, kProbe };

// The latest hops that the receiver of a direction of this host has returned.
struct EchoedHops {
  uint64_t echoes = 0;   // accepted so far
  Nanos received_at{0};  // time of reception of the last one
  Nanos age{0};          // time between the packet's arrival at the peer and the echo; kMaxAge: longer
  uint8_t flags = 0;     // of IntEchoHeader
  PacketHops path;

  static constexpr Nanos kMaxAge{65'535'000};
};

// The latest report that a switch has sent itself.
struct SwitchReport {
  uint64_t reports = 0;
  Nanos received_at{0};
  Psn psn;  // of the packet of this host that met congestion
  HopsOf of = HopsOf::kRequests;
  IntHopValues hop;
};

// Owned by the worker of its queue pair.
class TelemetrySession {
 public:
  // `echo_hops`: maximum in an INT-ECHO, as negotiated. `longest`: maximum IP packet of the port and the peer, bytes,
  // minus the space for further hops.
  TelemetrySession(const HostTelemetryConfig& config, uint8_t echo_hops, uint32_t longest);
  // Allocated in the arena of its queue pair; null when there is no memory.
  static void* operator new(size_t bytes, SparseArena& arena) noexcept { return arena.take(bytes); }
  static void operator delete(void* session, SparseArena&) noexcept {
    SparseArena::give_back(session, sizeof(TelemetrySession));
  }
  static void operator delete(void* session, size_t bytes) noexcept {
    SparseArena::give_back(session, bytes);
  }

  // Receiver: records the hops of a packet. Those of the newest packet are returned once.
  void note(HopsOf of, const PacketHops& hops, Nanos now);
  void clear(HopsOf of) { due(of).packets = 0; }
  // Number of requests that arrived with telemetry, and the hops of the newest one.
  [[nodiscard]] uint64_t noted_requests() const { return noted_requests_; }
  [[nodiscard]] const PacketHops& newest_of_requests() const { return due(HopsOf::kRequests).path; }
  [[nodiscard]] bool is_due(HopsOf of) const { return due(of).packets > 0; }
  // Number of hops in the INT-ECHO that is due.
  [[nodiscard]] uint8_t due_hops(HopsOf of) const;
  void write_echo(const ExtensionView& block, HopsOf of, Nanos now);

  // Sender: processes a block with an INT-ECHO. False when it is older than the stored one.
  bool take_echo(const ExtensionView& block, HopsOf of, Nanos now);
  // Sender: processes a switch's report about a packet in flight. False when the rate limit of reports is exceeded.
  bool take_report(const IntReport& report, Psn psn, HopsOf of, Nanos now);
  // `of`: a direction. Hops returned for a probe are those of requests.
  [[nodiscard]] const EchoedHops& echoed(HopsOf of) const { return echoed_[static_cast<size_t>(of)]; }
  [[nodiscard]] const SwitchReport& report() const { return report_; }

  [[nodiscard]] bool inserts_header(HopsOf of) const {
    return begin_ == TelemetryBegin::kAll || (of == HopsOf::kProbe && begin_ != TelemetryBegin::kNone);
  }
  // Inserts the telemetry header into a complete packet.
  void begin(TransportContext& context, rte_mbuf& frame) const;

 private:
  struct Due {
    uint32_t packets = 0;  // with telemetry since the last echo
    Nanos arrived{0};
    PacketHops path;
  };
  // Limits the cost of a flood of reports, since switches are not authenticated.
  static constexpr uint32_t kReportsPerSecond = 100'000;
  static constexpr Nanos kComparable{1'000'000'000};  // hop time stamps wrap after 4.3 s

  [[nodiscard]] Due& due(HopsOf of) { return due_[static_cast<size_t>(of)]; }
  [[nodiscard]] const Due& due(HopsOf of) const { return due_[static_cast<size_t>(of)]; }

  IntSource source_;
  TelemetryBegin begin_;
  uint8_t echo_hops_;
  uint32_t longest_;
  std::array<Due, 3> due_;
  uint64_t noted_requests_ = 0;
  std::array<EchoedHops, 2> echoed_;
  SwitchReport report_;
  RateLimit reports_allowed_{kReportsPerSecond};
};

}  // namespace roci
