#include "switch/qos/class_config.hpp"

#include <algorithm>
#include <string>

namespace roci {
namespace {

constexpr uint32_t kMaxWeight = 10'000;
constexpr Bytes kMaxLossless{uint64_t{1} << 40};

Status read_curve(ConfigNode& node, std::string_view key, MarkingCurve& curve, BitsPerSec rate) {
  return node.section(key, Need::kOptional, [&](ConfigNode& item) -> Status {
    QueueDepth kmin, kmax;
    ROCI_TRY(item.required("kmin", kmin));
    kmax = kmin;
    ROCI_TRY(item.optional("kmax", kmax));
    ROCI_TRY(item.optional("pmax", curve.pmax, number_in(0, 1)));
    for (auto [name, depth] : {std::pair{"kmin", &kmin}, std::pair{"kmax", &kmax}}) {
      if (Status s = depth->resolve(rate, name); !s) return item.error(name, s.error().message);
    }
    curve.kmin = kmin.bytes;
    curve.kmax = kmax.bytes;
    if (curve.kmax < curve.kmin) return item.error("kmax", "must not be below kmin");
    return {};
  });
}

Status read_lossless(ConfigNode& node, std::optional<LosslessConfig>& lossless, BitsPerSec rate) {
  return node.section("lossless", Need::kOptional, [&](ConfigNode& item) -> Status {
    QueueDepth xoff, xon, headroom, hysteresis;
    double alpha = 0;
    const bool dynamic = item.has("alpha");
    if (dynamic) {
      ROCI_TRY(item.required("alpha", alpha, number_in(1.0 / 1024, 1024)));
      ROCI_TRY(item.optional("hysteresis", hysteresis));
    } else {
      ROCI_TRY(item.required("xoff", xoff));
      ROCI_TRY(item.required("xon", xon));
    }
    ROCI_TRY(item.required("headroom", headroom));
    for (auto [name, depth] : {std::pair{"xoff", &xoff}, std::pair{"xon", &xon},
                               std::pair{"headroom", &headroom}, std::pair{"hysteresis", &hysteresis}}) {
      if (Status s = depth->resolve(rate, name); !s) return item.error(name, s.error().message);
    }
    if (!dynamic && xoff.bytes <= xon.bytes) return item.error("xon", "must be below xoff");
    lossless = LosslessConfig{xoff.bytes, xon.bytes, headroom.bytes, alpha, hysteresis.bytes};
    return {};
  });
}

Status read_contents(ConfigNode& node, QcnConfig::Contents& contents) {
  using Contents = QcnConfig::Contents;
  std::vector<bool Contents::*> listed;
  const std::string_view key = node.renamed("additional_values", "says");
  ROCI_TRY(
      node.optional_list(key, listed,
                         one_of<bool Contents::*>({{"port", &Contents::port},
                                                   {"ecn", &Contents::ecn},
                                                   {"available_bandwidth", &Contents::available_bandwidth},
                                                   {"rate_change", &Contents::rate_change}})));
  if (node.has(key)) contents = {};
  for (bool Contents::*const one : listed) contents.*one = true;
  return {};
}

Status read_cnp(ConfigNode& node, CnpConfig& cnp, BitsPerSec rate) {
  using Choice = CnpConfig::Choice;
  return node.section("cnp", Need::kOptional, [&](ConfigNode& item) -> Status {
    QueueDepth threshold{.bytes = cnp.threshold};
    ROCI_TRY(item.optional("threshold", threshold));
    if (Status s = threshold.resolve(rate, "threshold"); !s)
      return item.error("threshold", s.error().message);
    cnp.threshold = threshold.bytes;
    ROCI_TRY(item.optional("sample", cnp.sample));
    return item.optional("key_flow", cnp.key_flow,
                         one_of<Choice>({{"sampled", Choice::kSampled}, {"heaviest", Choice::kHeaviest}}));
  });
}

Status check_cnp(const CnpConfig& cnp) {
  if (cnp.threshold < Bytes{1} || cnp.threshold > 1_GiB)
    return fail("cnp: threshold must be 1 byte to 1 GiB");
  if (cnp.sample < Bytes{1000} || cnp.sample > 1_GiB)
    return fail("cnp: sample must be 1 KB to 1 GiB, not " + std::to_string(cnp.sample.value()) + " bytes");
  return {};
}

}  // namespace

Result<QueueDepth> QueueDepth::parse(std::string_view text) {
  if (auto bytes = parse_bytes(text)) return QueueDepth{.bytes = *bytes};
  if (auto time = parse_duration(text); time && *time > Nanos{0} && *time != roci::kNever)
    return QueueDepth{.time = *time};
  return fail("'" + std::string{text} +
              "' is not a queue length; allowed are a size, such as 100KiB, and a time at the port's rate, "
              "such as 20us");
}

Status QueueDepth::resolve(BitsPerSec rate, std::string_view what) {
  if (time == Nanos{0}) return {};
  if (rate.value() == 0) {
    return fail(std::string{what} +
                " is a time, which requires a rate of the port; set the rate, or specify bytes");
  }
  __extension__ using Wide = unsigned __int128;
  const Wide bits = static_cast<Wide>(rate.value()) * static_cast<uint64_t>(time.count()) / 1'000'000'000;
  bytes = Bytes{static_cast<uint64_t>(bits / 8)};
  return {};
}

Status read_aqm(ConfigNode& node, AqmConfig& aqm, BitsPerSec rate) {
  ROCI_TRY(read_curve(node, "mark", aqm.mark, rate));
  ROCI_TRY(read_curve(node, "drop", aqm.drop, rate));
  ROCI_TRY(node.optional("mark_at", aqm.mark_at,
                         one_of<AqmConfig::MarkAt>({{"enqueue", AqmConfig::MarkAt::kEnqueue},
                                                    {"dequeue", AqmConfig::MarkAt::kDequeue}})));
  return node.optional("average", aqm.weight, number_in(1e-6, 1));
}

Status check_aqm(const AqmConfig& aqm) {
  for (const MarkingCurve* curve : {&aqm.mark, &aqm.drop}) {
    if (curve->kmax < curve->kmin) return fail("kmax must not be below kmin");
    if (!(curve->pmax >= 0 && curve->pmax <= 1)) return fail("pmax must be 0 to 1");
  }
  if (!(aqm.weight > 0 && aqm.weight <= 1)) return fail("average must be above 0 and at most 1");
  return {};
}

Status read_qcn(ConfigNode& node, QcnConfig& qcn, BitsPerSec rate) {
  return node.section("qcn", Need::kOptional, [&](ConfigNode& item) -> Status {
    QueueDepth qeq{.bytes = qcn.qeq};
    ROCI_TRY(item.optional("qeq", qeq));
    if (Status s = qeq.resolve(rate, "qeq"); !s) return item.error("qeq", s.error().message);
    qcn.qeq = qeq.bytes;
    ROCI_TRY(item.optional("weight", qcn.weight,
                           number_in(1 / CongestionPoint::kMaxWeight, CongestionPoint::kMaxWeight)));
    ROCI_TRY(item.optional("sample", qcn.sample));
    ROCI_TRY(item.optional("l3", qcn.l3));
    ROCI_TRY(read_contents(item, qcn.contents));
    return item.optional("rtt", qcn.rtt);
  });
}

Status check_qcn(const QcnConfig& qcn) {
  if (!CongestionPoint::is_weight(qcn.weight))
    return fail("qcn: weight must be a power of two from 1/1024 to 1024");
  if (qcn.qeq < Bytes{1} || qcn.qeq > 1_GiB) return fail("qcn: qeq must be 1 byte to 1 GiB");
  if (qcn.sample < Bytes{1000} || qcn.sample > 1_GiB)
    return fail("qcn: sample must be 1 KB to 1 GiB, not " + std::to_string(qcn.sample.value()) + " bytes");
  if (qcn.rtt < 1us || qcn.rtt > 1s) return fail("qcn: rtt must be 1 us to 1 s");
  if (qcn.contents.any() && !qcn.l3)
    return fail("qcn: additional_values requires l3; layer-2 CNMs contain only the feedback");
  return {};
}

namespace {

Status read_class(ConfigNode& item, ClassConfigs& classes, BitsPerSec rate) {
  uint8_t number = 0;
  ROCI_TRY(item.required("class", number, integer_in<uint8_t>(0, kTrafficClasses - 1)));
  ClassConfig& config = classes[number];
  ROCI_TRY(read_aqm(item, config.aqm, rate));
  ROCI_TRY(item.optional("strict", config.strict));
  if (config.strict && item.has("weight"))
    return item.error("weight", "not allowed for a strict class; it is served before all weighted classes");
  ROCI_TRY(item.optional("weight", config.weight, integer_in<uint32_t>(1, kMaxWeight)));
  ROCI_TRY(item.optional("notify", config.notify,
                         one_of<ClassConfig::Notify>({{"none", ClassConfig::Notify::kNone},
                                                      {"qcn", ClassConfig::Notify::kQcn},
                                                      {"cnp", ClassConfig::Notify::kCnp}})));
  ROCI_TRY(read_qcn(item, config.qcn, rate));
  ROCI_TRY(read_cnp(item, config.cnp, rate));
  return read_lossless(item, config.lossless, rate);
}

}  // namespace

Status read_classes(ConfigNode& node, ClassConfigs& classes, BitsPerSec rate) {
  return node.each("classes", Need::kOptional,
                   [&](ConfigNode& item) -> Status { return read_class(item, classes, rate); });
}

uint8_t ClassifierConfig::pcp_of(uint8_t traffic_class) const {
  if (by_pcp[traffic_class] == traffic_class) return traffic_class;
  const auto found = std::ranges::find(by_pcp, traffic_class);
  return found == by_pcp.end() ? uint8_t{0} : static_cast<uint8_t>(found - by_pcp.begin());
}

Status read_classifier(ConfigNode& node, ClassifierConfig& classifier) {
  using Trust = ClassifierConfig::Trust;
  const auto class_number = integer_in<uint8_t>(0, kTrafficClasses - 1);
  return node.section("classify", Need::kOptional, [&](ConfigNode& section) -> Status {
    ROCI_TRY(section.optional("trust", classifier.trust,
                              one_of<Trust>({{"dscp", Trust::kDscp}, {"pcp", Trust::kPcp}})));
    ROCI_TRY(section.optional("untagged", classifier.untagged, class_number));
    uint8_t other = 0;
    ROCI_TRY(section.optional("other", other, class_number));
    if (section.has("other")) classifier.by_dscp.fill(other);
    ROCI_TRY(section.each("dscp", Need::kOptional, [&](ConfigNode& item) -> Status {
      uint8_t dscp = 0;
      if (Status s = item.required("dscp", dscp, integer_in<uint8_t>(0, 63)); !s) return s;
      return item.required("class", classifier.by_dscp[dscp], class_number);
    }));
    return section.each("pcp", Need::kOptional, [&](ConfigNode& item) -> Status {
      uint8_t pcp = 0;
      if (Status s = item.required("pcp", pcp, integer_in<uint8_t>(0, 7)); !s) return s;
      return item.required("class", classifier.by_pcp[pcp], class_number);
    });
  });
}

Status check_classes(const ClassConfigs& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    const ClassConfig& config = classes[i];
    const std::string where = "class " + std::to_string(i) + ": ";
    if (Status s = check_aqm(config.aqm); !s) return fail(where + s.error().message);
    if (config.weight == 0 || config.weight > kMaxWeight)
      return fail(where + "weight must be 1 to " + std::to_string(kMaxWeight));
    if (config.notify == ClassConfig::Notify::kQcn) {
      if (Status s = check_qcn(config.qcn); !s) return fail(where + s.error().message);
    }
    if (config.notify == ClassConfig::Notify::kCnp) {
      if (Status s = check_cnp(config.cnp); !s) return fail(where + s.error().message);
    }
    if (!config.lossless) continue;
    const LosslessConfig& lossless = *config.lossless;
    if (lossless.headroom > kMaxLossless || lossless.xoff > kMaxLossless)
      return fail(where + "xoff and headroom must be at most 1 TiB");
    if (!lossless.is_dynamic() && lossless.xoff <= lossless.xon)
      return fail(where + "xon must be below xoff");
  }
  return {};
}

}  // namespace roci
