#include "engine/congestion/host_congestion_point.hpp"

#include <algorithm>

namespace roci {
namespace {

CongestionPointConfig point_of(const ReceivePointConfig& config, int64_t frame_unit) {
  return {.qeq = Bytes{config.qeq * static_cast<uint64_t>(frame_unit)},
          .weight = config.weight,
          .sample = Bytes{config.sample}};
}

}  // namespace

HostCongestionPoint::HostCongestionPoint(const CongestionConfig& config, const MacAddress& mac,
                                         uint32_t index, uint32_t workers, uint64_t seed)
    : mac_(mac),
      queue_(static_cast<uint16_t>(index)),
      port_(config.cnm_port),
      key_(config.cnm_key),
      point_(point_of(config.receive_point, kFrameUnit), seed),
      limit_(config.cnm_rate == 0 ? 0 : std::max(1U, config.cnm_rate / workers)),
      time_of_day_(config.time_of_day.value_or(Nanos{0})) {}

// The queue length in bytes assumes that the waiting frames are as long as this frame.
std::optional<QcnFeedback> HostCongestionPoint::taken(uint32_t bytes) {
  if (!point_.is_due(bytes)) return std::nullopt;
  QcnFeedback feedback = point_.sample(waiting_ * static_cast<uint64_t>(kFrameUnit));
  if (!feedback.is_congested()) return std::nullopt;
  feedback.offset = feedback.offset / kFrameUnit * bytes;
  feedback.delta = feedback.delta / kFrameUnit * bytes;
  return feedback;
}

uint32_t HostCongestionPoint::write(std::span<const uint8_t> sampled, bool tagged,
                                    const QcnFeedback& feedback, RocePath back, Nanos now,
                                    std::span<uint8_t, kMaxL3CnmFrame> out) {
  auto cnm = sample_frame(sampled);
  if (!cnm || (!tagged && port_ == 0) || !limit_.allow(now)) return 0;
  cnm->feedback = feedback.quantized;
  cnm->point = {mac_, queue_};
  cnm->queue_offset = cnm_queue_units(feedback.offset);
  cnm->queue_delta = cnm_queue_units(feedback.delta);
  if (tagged) return build_cnm_frame(*CnmLink::answering(sampled, mac_), *cnm, out);
  const auto flow = read_five_tuple(sampled);
  if (!flow) return 0;
  // The source is the receiver of the flow, which is this host (L3QCN 5.2.2 step 3).
  back.source_ip = flow->destination;
  back.destination_ip = flow->source;
  back.udp_source_port = flow->source_port;
  L3CnmTlvs more;
  if (key_) more.auth_sequence = sequence_.next(now + time_of_day_);
  const uint32_t length = build_l3_cnm(back, port_, *flow, *cnm, more, out);
  if (key_) (void)sign_l3_cnm(out.first(length), port_, *key_);
  return length;
}

}  // namespace roci
