// Configuration of the traffic classes of a port: classification, AQM, bandwidth shares, lossless operation and
// congestion notification.
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

// One class per 802.1Q priority. The number of a class is its priority in PFC frames.
inline constexpr uint8_t kTrafficClasses = 8;

// Queue length in bytes, or as the time in which the port sends it at its rate. A time is resolved when the
// configuration is read.
struct QueueDepth {
  Bytes bytes{0};
  Nanos time{0};  // not 0: `bytes` is computed from it

  // "100KiB" or "20us".
  static Result<QueueDepth> parse(std::string_view text);
  // Computes `bytes` from `time`. Fails if the length is a time and the port has no rate. `what` names it in the error.
  Status resolve(BitsPerSec rate, std::string_view what);
};

// Probability of marking or dropping a frame by queue length (draft-dai-tsvwg-pfc-free-congestion-control §2.1): 0
// below kmin, linear from 0 to pmax between kmin and kmax, and 1 from kmax on. kmin = kmax is a step.
struct MarkingCurve {
  static constexpr Bytes kNever{std::numeric_limits<uint64_t>::max()};

  Bytes kmin = kNever;
  Bytes kmax = kNever;
  double pmax = 1;  // 0 to 1

  [[nodiscard]] bool never() const { return kmin == kNever; }

  friend bool operator==(const MarkingCurve&, const MarkingCurve&) = default;
};

// Active queue management of a traffic class.
struct AqmConfig {
  enum class MarkAt : uint8_t { kEnqueue, kDequeue };

  MarkingCurve mark;  // for ECN-capable packets: sets CE
  MarkingCurve drop;  // for all other packets: drops them, on arrival only
  MarkAt mark_at = MarkAt::kEnqueue;
  // Weight of the newest queue length in the average that the curves use (RED). 1: the length itself.
  double weight = 1;

  friend bool operator==(const AqmConfig&, const AqmConfig&) = default;
};

// Lossless class: counts the queued bytes of each ingress port, and pauses the neighbor there by PFC (802.1Q 36). The
// threshold is `xoff` or, with an `alpha`, alpha times the free shared buffer.
struct LosslessConfig {
  Bytes xoff{0};      // bytes of one ingress port at which the neighbor is paused
  Bytes xon{0};       // bytes at which the neighbor is resumed
  Bytes headroom{0};  // bytes that may arrive after the pause was sent
  // Dynamic threshold, as in HPCC-ns3 and in switches with a shared buffer (Choudhury and Hahne 1998): xoff and xon are
  // unused. 0: static threshold.
  double alpha = 0;
  Bytes hysteresis{0};  // the neighbor is resumed when its bytes are this far below a dynamic threshold

  [[nodiscard]] bool is_dynamic() const { return alpha > 0; }

  friend bool operator==(const LosslessConfig&, const LosslessConfig&) = default;
};

// QCN congestion point (802.1Q 30.2): reports the congestion of the queue to the senders of sampled frames.
struct QcnConfig {
  Bytes qeq{26'000};      // set point of the queue length
  double weight = 2;      // of queue growth relative to queue length; a power of two from 1/1024 to 1024
  Bytes sample{150'000};  // bytes between two samples without congestion
  bool l3 = false;        // also answer IP packets without a CN-TAG, by UDP across routers (L3QCN)
  // Values of self-defined CNMs in addition to the feedback (L3QCN 6).
  struct Contents {
    bool port = false;                 // hop values of the port, as in telemetry
    bool ecn = false;                  // number of packets queued, and of packets marked
    bool available_bandwidth = false;  // rate available to each flow (available_rate.hpp)
    bool rate_change = false;          // rate change of the sampled flow, to be applied at once

    [[nodiscard]] bool any() const { return port || ecn || rates(); }
    // Every sample causes a CNM with rates, also without congestion.
    [[nodiscard]] bool rates() const { return available_bandwidth || rate_change; }
    friend bool operator==(const Contents&, const Contents&) = default;
  };
  Contents contents{};
  Nanos rtt = 50us;  // typical RTT of the flows; the reported rates are updated four times per RTT

  [[nodiscard]] CongestionPointConfig point() const { return {qeq, weight, sample}; }
  friend bool operator==(const QcnConfig&, const QcnConfig&) = default;
};

// CNP congestion point: sends CNPs to the senders of a congested queue's key flows (L3QCN 5.2.1; key_flow.hpp).
struct CnpConfig {
  enum class Choice : uint8_t { kSampled, kHeaviest };

  Bytes threshold{100'000};  // minimum queue length for CNPs
  Bytes sample{64'000};      // mean number of bytes that arrive between two CNPs
  Choice key_flow = Choice::kSampled;

  friend bool operator==(const CnpConfig&, const CnpConfig&) = default;
};

struct ClassConfig {
  AqmConfig aqm;
  bool strict = false;  // scheduled before all classes that are not strict, the highest number first
  uint32_t weight = 1;  // bandwidth share relative to the weights of the other classes (ETS, 802.1Q 37)
  std::optional<LosslessConfig> lossless;
  enum class Notify : uint8_t { kNone, kQcn, kCnp };
  Notify notify = Notify::kNone;
  QcnConfig qcn;  // with Notify::kQcn
  CnpConfig cnp;  // with Notify::kCnp

  friend bool operator==(const ClassConfig&, const ClassConfig&) = default;
};
using ClassConfigs = std::array<ClassConfig, kTrafficClasses>;

// Mapping of frames to traffic classes.
struct ClassifierConfig {
  enum class Trust : uint8_t {
    kDscp,  // IP packets by DSCP, other frames by the PCP of their tag
    kPcp,   // all frames by the PCP of their tag
  };
  Trust trust = Trust::kDscp;
  std::array<uint8_t, 64> by_dscp = [] {
    std::array<uint8_t, 64> classes{};
    for (uint8_t dscp = 0; dscp < 64; ++dscp)
      classes[dscp] = dscp / 8;  // the class selector (RFC 2474 4.2.2)
    return classes;
  }();
  std::array<uint8_t, 8> by_pcp{0, 1, 2, 3, 4, 5, 6, 7};
  uint8_t untagged = 0;  // class of frames without a tag that are not classified by DSCP

  // PCP of a tag that is added to a frame of the class: the class's number if this PCP selects the class, else the first
  // that does. 0 if none does.
  [[nodiscard]] uint8_t pcp_of(uint8_t traffic_class) const;

  friend bool operator==(const ClassifierConfig&, const ClassifierConfig&) = default;
};

// Reads the key `classes` of a switch (for all ports) or of a port (for that port), and overrides values in `classes`.
Status read_classes(ConfigNode& node, ClassConfigs& classes, BitsPerSec rate);
// Reads the keys `mark`, `drop`, `mark_at` and `average` of a class or of another object with a queue.
Status read_aqm(ConfigNode& node, AqmConfig& aqm, BitsPerSec rate);
Status check_aqm(const AqmConfig& aqm);
// Reads the key `qcn`.
Status read_qcn(ConfigNode& node, QcnConfig& qcn, BitsPerSec rate);
Status check_qcn(const QcnConfig& qcn);
// Reads the key `classify` of a switch.
Status read_classifier(ConfigNode& node, ClassifierConfig& classifier);
// Validates the classes of one port and reports the first error. `queue` is the port's limit.
Status check_classes(const ClassConfigs& classes);

}  // namespace roci
