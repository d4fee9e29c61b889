// What the traffic classes of a port are told: which frames belong to them, how their queues mark and drop, which share
// of the line they have, and whether they may lose anything.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/config.hpp"
#include "base/congestion_point.hpp"
#include "base/types.hpp"
#include "port/pause_state.hpp"

namespace roci {

// As many as 802.1Q has priorities. A class's number is its priority in PFC frames.
inline constexpr uint8_t kTrafficClasses = 8;

// The length of a queue: bytes, or what the port sends in a time at its rate (resolved when the configuration is read).
struct QueueDepth {
  Bytes bytes{0};
  Nanos time{0};  // when it is not 0, bytes are made of it

  // "100KiB" or "20us".
  static Result<QueueDepth> parse(std::string_view text);
  // Fails when it is a time and the port has no rate. `what` names it.
  Status resolve(BitsPerSec rate, std::string_view what);
};

// How probable it is that a frame which finds a queue of some length is marked or dropped (draft-dai… §2.1): 0 below
// kmin, from there in a straight line up to pmax at kmax, and 1 from kmax on. kmin = kmax is a step.
struct MarkingCurve {
  static constexpr Bytes kNever{std::numeric_limits<uint64_t>::max()};

  Bytes kmin = kNever;
  Bytes kmax = kNever;
  double pmax = 1;  // 0 to 1

  [[nodiscard]] bool never() const { return kmin == kNever; }

  friend bool operator==(const MarkingCurve&, const MarkingCurve&) = default;
};

// Active queue management of a class.
struct AqmConfig {
  enum class MarkAt : uint8_t { kEnqueue, kDequeue };

  MarkingCurve mark;  // of ECN-capable packets: CE is set
  MarkingCurve drop;  // of all others: they are dropped, always on arrival
  MarkAt mark_at = MarkAt::kEnqueue;
  // Weight of the newest length in the average that the curves are asked with (RED); 1 is the length itself.
  double weight = 1;

  friend bool operator==(const AqmConfig&, const AqmConfig&) = default;
};

// A class that loses nothing: it counts what each ingress port has in the switch, and stops its neighbour there by PFC
// (802.1Q 36).
struct LosslessConfig {
  Bytes xoff{0};      // from so many bytes of one ingress port on it is told to stop,
  Bytes xon{0};       // and to go on when they are down to so many
  Bytes headroom{0};  // what may come in after it was told

  friend bool operator==(const LosslessConfig&, const LosslessConfig&) = default;
};

// A congestion point of QCN (802.1Q 30.2): senders of sampled frames are told how congested the queue is.
struct QcnConfig {
  Bytes qeq{26'000};      // where the queue should be
  double weight = 2;      // of its growth against its length; a power of two from 1/1024 to 1024
  Bytes sample{150'000};  // come between two samples when there is no congestion
  bool l3 = false;        // answers also IP packets without a CN-TAG, in UDP through routers (L3QCN)
  // What self-defined CNMs say beside the feedback (L3QCN 6).
  struct Says {
    bool port = false;                 // its state, as telemetry says it
    bool ecn = false;                  // how many packets have come, and how many were marked
    bool available_bandwidth = false;  // what each flow may take (available_rate.hpp)
    bool rate_change = false;          // by how much the sampled one shall send more, or less, at once

    [[nodiscard]] bool any() const { return port || ecn || rates(); }
    // With them every sample is answered, that of a queue without congestion too.
    [[nodiscard]] bool rates() const { return available_bandwidth || rate_change; }
    friend bool operator==(const Says&, const Says&) = default;
  };
  Says says{};
  Nanos rtt = 50us;  // of the flows, about: how often the rates that it says are made anew

  [[nodiscard]] CongestionPointConfig point() const { return {qeq, weight, sample}; }
  friend bool operator==(const QcnConfig&, const QcnConfig&) = default;
};

// A congested queue whose key flows' senders get CNPs (L3QCN 5.2.1), key_flow.hpp.
struct CnpConfig {
  enum class Choice : uint8_t { kSampled, kHeaviest };

  Bytes threshold{100'000};  // of the queue
  Bytes sample{64'000};      // come between two CNPs, about
  Choice key_flow = Choice::kSampled;

  friend bool operator==(const CnpConfig&, const CnpConfig&) = default;
};

struct ClassConfig {
  AqmConfig aqm;
  bool strict = false;  // before all classes that are not, the highest number first
  uint32_t weight = 1;  // its share among the others is its weight over theirs (ETS, 802.1Q 37)
  std::optional<LosslessConfig> lossless;
  enum class Notify : uint8_t { kNone, kQcn, kCnp };
  Notify notify = Notify::kNone;
  QcnConfig qcn;  // when `notify` says so
  CnpConfig cnp;  // the same

  friend bool operator==(const ClassConfig&, const ClassConfig&) = default;
};
using ClassConfigs = std::array<ClassConfig, kTrafficClasses>;

// Which class a frame belongs to.
struct ClassifierConfig {
  enum class Trust : uint8_t {
    kDscp,  // IP packets by DSCP, other frames by the priority of their tag
    kPcp,   // all by the priority of their tag
  };
  Trust trust = Trust::kDscp;
  std::array<uint8_t, 64> by_dscp = [] {
    std::array<uint8_t, 64> classes{};
    for (uint8_t dscp = 0; dscp < 64; ++dscp)
      classes[dscp] = dscp / 8;  // the class selector (RFC 2474 4.2.2)
    return classes;
  }();
  std::array<uint8_t, 8> by_pcp{0, 1, 2, 3, 4, 5, 6, 7};
  uint8_t untagged = 0;  // of frames that say nothing

  friend bool operator==(const ClassifierConfig&, const ClassifierConfig&) = default;
};

// The keys `classes` of a switch (for all ports) or of a port (for that one), over what `classes` holds.
Status read_classes(ConfigNode& node, ClassConfigs& classes, BitsPerSec rate);
// The keys `mark`, `drop`, `mark_at` and `average` of a class, or of something else with a queue.
Status read_aqm(ConfigNode& node, AqmConfig& aqm, BitsPerSec rate);
Status check_aqm(const AqmConfig& aqm);
// The key `qcn`.
Status read_qcn(ConfigNode& node, QcnConfig& qcn, BitsPerSec rate);
Status check_qcn(const QcnConfig& qcn);
// The key `classify` of a switch.
Status read_classifier(ConfigNode& node, ClassifierConfig& classifier);
// What cannot work, as one sentence, of one port's classes; `queue` is the port's limit.
Status check_classes(const ClassConfigs& classes, Bytes queue);

}  // namespace roci
