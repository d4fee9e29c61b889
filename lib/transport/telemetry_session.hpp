// What a queue pair has to do with in-band telemetry: as a receiver it returns what switches wrote into the peer's packets,
// as a sender it keeps the last that the peer returned, where congestion control finds it, and begins telemetry in its own
// packets. One whose host or peer knows nothing of telemetry has none.
#pragma once

#include <array>
#include <cstdint>

#include "base/rate_limit.hpp"
#include "base/sequence.hpp"
#include "base/sparse_arena.hpp"
#include "base/types.hpp"
#include "roci/telemetry_config.hpp"
#include "transport/packet_hops.hpp"
#include "wire/frame.hpp"
#include "wire/telemetry_edit.hpp"

struct rte_mbuf;

namespace roci {

struct TransportContext;

// What hops are about. Requests are a direction of a queue pair, READ responses another (transport/flow.hpp).
enum class HopsOf : uint8_t { kRequests, kResponses, kProbe };

// The last that the receiver of one of our directions has returned.
struct EchoedHops {
  uint64_t echoes = 0;  // that were taken so far
  Nanos heard{0};       // when the last of them came
  Nanos age{0};         // between its packet's arrival at the peer and the echo; kLongestAge for longer
  uint8_t flags = 0;    // IntEchoHeader's
  PacketHops path;

  static constexpr Nanos kLongestAge{65'535'000};
};

// The last that a switch has told us itself.
struct SwitchReport {
  uint64_t reports = 0;
  Nanos heard{0};
  Psn psn;  // of our packet that met the congestion
  HopsOf of = HopsOf::kRequests;
  IntHopValues hop;
};

// Owned by the worker of its queue pair.
class TelemetrySession {
 public:
  // `echo_hops`: of the longest INT-ECHO that both hosts take. `longest`: bytes of an IP packet that our port and the peer
  // take, with the room of the hops to come taken off.
  TelemetrySession(const HostTelemetryConfig& config, uint8_t echo_hops, uint32_t longest);
  // It lies where its queue pair lies; null when there is no memory.
  static void* operator new(size_t bytes, SparseArena& arena) noexcept { return arena.take(bytes); }
  static void operator delete(void* session, SparseArena&) noexcept {
    SparseArena::give_back(session, sizeof(TelemetrySession));
  }
  static void operator delete(void* session, size_t bytes) noexcept {
    SparseArena::give_back(session, bytes);
  }

  // Receiver: a packet with these hops has come. The newest one's are returned, once.
  void note(HopsOf of, const PacketHops& hops, Nanos now);
  void forget(HopsOf of) { due(of).packets = 0; }
  // How many packets of requests have come with telemetry, and what the newest one's was.
  [[nodiscard]] uint64_t noted_requests() const { return noted_requests_; }
  [[nodiscard]] const PacketHops& newest_of_requests() const { return due(HopsOf::kRequests).path; }
  [[nodiscard]] bool is_due(HopsOf of) const { return due(of).packets > 0; }
  // In the INT-ECHO that is due.
  [[nodiscard]] uint8_t due_hops(HopsOf of) const;
  void write_echo(const ExtensionView& block, HopsOf of, Nanos now);

  // Sender: a block with an INT-ECHO has come. False when it is older than what is known.
  bool take_echo(const ExtensionView& block, HopsOf of, Nanos now);
  // A switch tells of a packet of ours that is under way. False when there are too many of these.
  bool take_report(const IntReport& report, Psn psn, HopsOf of, Nanos now);
  // `of`: a direction; what came back with a probe is about requests.
  [[nodiscard]] const EchoedHops& heard(HopsOf of) const { return heard_[static_cast<size_t>(of)]; }
  [[nodiscard]] const SwitchReport& report() const { return report_; }

  [[nodiscard]] bool begins(HopsOf of) const {
    return begin_ == TelemetryBegin::kAll || (of == HopsOf::kProbe && begin_ != TelemetryBegin::kNone);
  }
  // Puts the header into a packet that is whole.
  void begin(TransportContext& context, rte_mbuf& frame) const;

 private:
  struct Due {
    uint32_t packets = 0;  // with telemetry since the last echo
    Nanos arrived{0};
    PacketHops path;
  };
  // Switches are not authenticated: a flood of their reports must cost little.
  static constexpr uint32_t kReportsPerSecond = 100'000;
  static constexpr Nanos kComparable{1'000'000'000};  // hop times wrap after 4.3 s

  [[nodiscard]] Due& due(HopsOf of) { return due_[static_cast<size_t>(of)]; }
  [[nodiscard]] const Due& due(HopsOf of) const { return due_[static_cast<size_t>(of)]; }

  IntSource source_;
  TelemetryBegin begin_;
  uint8_t echo_hops_;
  uint32_t longest_;
  std::array<Due, 3> due_;
  uint64_t noted_requests_ = 0;
  std::array<EchoedHops, 2> heard_;
  SwitchReport report_;
  RateLimit reports_allowed_{kReportsPerSecond};
};

}  // namespace roci
