#include "switch/qcn/tor_shapers.hpp"

#include <algorithm>
#include <map>

#include "switch/pipeline/frame_edit.hpp"

namespace roci {
namespace {

// Maximum time that a shaper catches up after late polling.
constexpr Nanos kMaxCatchUp = 100us;

// Destination of an IP packet; empty for other frames and truncated headers.
std::optional<IpAddress> destination_of(const SwitchPacket& packet) {
  const auto head = head_of(packet.frame);
  if (packet.ether_type == kEtherTypeIpv4 && head.size() >= packet.l3_offset + sizeof(Ipv4Header)) {
    const auto& ip = *reinterpret_cast<const Ipv4Header*>(head.data() + packet.l3_offset);
    return IpAddress::from_v4(ip.destination.get());
  }
  if (packet.ether_type == kEtherTypeIpv6 && head.size() >= packet.l3_offset + sizeof(Ipv6Header)) {
    const auto& ip = *reinterpret_cast<const Ipv6Header*>(head.data() + packet.l3_offset);
    return IpAddress{ip.destination};
  }
  return std::nullopt;
}

}  // namespace

TorShapers::Shaper::Shaper(const SwitchShaperConfig& config, uint64_t seed)
    : limit(config.queue.value()),
      frame_limit(config.queue_frames),
      traffic_class(config.traffic_class),
      line(config.rate),
      reaction(config.reaction, config.rate, seed),
      clock(config.rate),
      aqm(config.aqm, config.rate, seed ^ 1U) {
  if (config.qcn) point.emplace(config.qcn->point(), seed ^ 2U);
}

void TorShapers::Shaper::count_arrival(uint32_t bytes_now, Nanos now) {
  if (now - window >= kWindow) {
    last_window_bytes = now - window < 2 * kWindow ? window_bytes : 0;
    window_bytes = 0;
    window = now;
  }
  window_bytes += bytes_now;
}

// Rate of the last window, or of the current one if it is higher: a sender that has just started is not slow.
// 0 after kIdle without arrivals.
BitsPerSec TorShapers::Shaper::sending(Nanos now) const {
  if (now - window >= kIdle) return BitsPerSec{0};
  const auto rate_of = [](uint64_t count, Nanos span) {
    return static_cast<double>(count) * 8e9 / static_cast<double>(std::max(span, Nanos{1}).count());
  };
  const double last = rate_of(last_window_bytes, kWindow);
  const double current = rate_of(window_bytes, std::max(now - window, kWindow / 10));
  return BitsPerSec{static_cast<uint64_t>(std::max(last, current))};
}

void TorShapers::Shaper::follow_rate() {
  const bool limits = reaction.is_limiting();
  const BitsPerSec rate = limits ? reaction.rate() : line;
  if (clock.rate() != rate) clock.set_rate(rate);
  rate_now.store(limits ? reaction.rate().value() : 0, std::memory_order_relaxed);
}

TorShapers::TorShapers(const SwitchConfig& config, SwitchBuffer& buffer, uint32_t workers, uint64_t seed)
    : classifier_(config.classifier), buffer_(buffer), workers_(workers) {
  Rng seeds{seed};
  for (const SwitchShaperConfig& c : config.shapers) {
    shapers_.push_back(std::make_unique<Shaper>(c, seeds.next()));
    classes_ = static_cast<uint8_t>(classes_ | 1U << c.traffic_class);
  }
}

TorShapers::~TorShapers() {
  for (const auto& shaper : shapers_) {
    while (!shaper->waiting.empty()) rte_pktmbuf_free(shaper->waiting.pop().packet.frame);
  }
}

Status TorShapers::open(const SwitchConfig& config) {
  std::map<IpNetwork, uint16_t> numbers;
  std::vector<RouteEntry> entries;
  for (size_t i = 0; i < config.shapers.size(); ++i) {
    const SwitchShaperConfig& c = config.shapers[i];
    const auto [known, is_new] = numbers.emplace(c.prefix.masked(), static_cast<uint16_t>(numbers.size()));
    if (is_new) {
      entries.push_back({c.prefix, known->second});
      by_class_.emplace_back().fill(kNotFound);
    }
    by_class_[known->second][c.traffic_class] = static_cast<uint16_t>(i);
  }
  // A longer prefix has the shapers of the shorter ones for the classes in which it has none.
  std::vector<std::pair<IpNetwork, uint16_t>> by_length(numbers.begin(), numbers.end());
  std::ranges::stable_sort(by_length, {}, [](const auto& one) { return one.first.prefix_length; });
  for (size_t longer = 1; longer < by_length.size(); ++longer) {
    for (size_t shorter = longer; shorter-- > 0;) {
      if (!by_length[shorter].first.contains(by_length[longer].first.address)) continue;
      for (size_t c = 0; c < kTrafficClasses; ++c) {
        uint16_t& shaper = by_class_[by_length[longer].second][c];
        if (shaper == kNotFound) shaper = by_class_[by_length[shorter].second][c];
      }
      break;  // which has those of still shorter prefixes
    }
  }
  auto table = RouteTable::create(entries);
  if (!table) return fail(table.error());
  prefixes_ = std::move(*table);
  return {};
}

size_t TorShapers::find(const IpAddress& destination, uint8_t traffic_class) const {
  const uint16_t prefix = prefixes_.find(destination);
  if (prefix == kNotFound) return kNone;
  const uint16_t shaper = by_class_[prefix][traffic_class];
  return shaper == kNotFound ? kNone : shaper;
}

size_t TorShapers::find(const SwitchPacket& packet) const {
  const auto destination = destination_of(packet);
  return destination ? find(*destination, packet.traffic_class) : kNone;
}

TorShapers::RateRequest TorShapers::request_rate(size_t shaper, const SwitchPacket& packet, uint32_t length,
                                                 Nanos now) {
  Shaper& s = *shapers_[shaper];
  s.count_arrival(length, now);
  s.reaction.advance(now);
  if (!s.reaction.is_limiting() && s.waiting.empty()) return {};
  const auto refuse = [&s](DropReason reason) {
    bump(s.dropped);
    return RateRequest{.refused = reason};
  };
  s.follow_rate();
  if (s.waiting.empty() && s.clock.free_at() <= now) {
    s.clock.occupy(now, Bytes{length} + kEthernetLineOverhead);
    s.reaction.sent(length, now);
    return {};
  }
  // As in the queue of a port: a lossless class is limited by its accounts in the shared buffer.
  const bool is_full =
      s.bytes + length > s.limit && !buffer_.is_lossless(packet.ingress, packet.traffic_class);
  if (is_full || s.waiting.size() >= s.frame_limit) return refuse(DropReason::kQueueFull);
  const DropReason full = buffer_.admit(packet.ingress, packet.traffic_class, length, s.bytes);
  if (full != DropReason::kNone) return refuse(full);
  const AqmVerdict verdict = s.aqm.on_arrival(s.bytes, packet.ecn, now);
  if (verdict == AqmVerdict::kDrop) return refuse(DropReason::kEarlyDrop);
  if (verdict == AqmVerdict::kMark) bump(s.marked);
  return {.waits = true, .mark = verdict == AqmVerdict::kMark};
}

std::optional<QcnFeedback> TorShapers::hold(size_t shaper, const SwitchPacket& packet, uint16_t egress) {
  Shaper& s = *shapers_[shaper];
  const uint32_t length = packet.frame->pkt_len;
  s.waiting.push({packet, egress});
  ++waiting_;
  s.bytes += length;
  buffer_.take(packet.ingress, packet.traffic_class, length);
  bump(s.held);
  s.queue_bytes.store(s.bytes, std::memory_order_relaxed);
  if (s.bytes > s.queue_peak_bytes.load(std::memory_order_relaxed))
    s.queue_peak_bytes.store(s.bytes, std::memory_order_relaxed);
  if (!s.point || !s.point->is_due(length)) return std::nullopt;
  const QcnFeedback feedback = s.point->sample(s.bytes);
  return feedback.is_congested() ? std::optional{feedback} : std::nullopt;
}

bool TorShapers::release(Nanos now, Released& out) {
  for (size_t tried = 0; waiting_ > 0 && tried < shapers_.size(); ++tried) {
    Shaper& s = *shapers_[next_];
    next_ = next_ + 1 < shapers_.size() ? next_ + 1 : 0;
    if (s.waiting.empty()) continue;
    s.reaction.advance(now);
    s.follow_rate();
    if (s.clock.free_at() > now) continue;
    const Held held = s.waiting.pop();
    --waiting_;
    const uint32_t length = held.packet.frame->pkt_len;
    s.bytes -= length;
    s.queue_bytes.store(s.bytes, std::memory_order_relaxed);
    buffer_.release(held.packet.ingress, held.packet.traffic_class, length);
    s.clock.occupy(std::max(s.clock.free_at(), now - kMaxCatchUp), Bytes{length} + kEthernetLineOverhead);
    s.reaction.sent(length, now);
    out.packet = held.packet;
    out.egress = held.egress;
    out.mark = s.aqm.on_departure(s.bytes, held.packet.ecn, now) == AqmVerdict::kMark;
    if (out.mark) bump(s.marked);
    return true;
  }
  return false;
}

Nanos TorShapers::next_deadline() const {
  Nanos next = kNever;
  if (waiting_ == 0) return next;
  for (const auto& shaper : shapers_) {
    if (!shaper->waiting.empty()) next = std::min(next, shaper->clock.free_at());
  }
  return next;
}

// Class that the switch would assign to the sampled packet.
uint8_t TorShapers::class_of(const Cnm& cnm) const {
  if (classifier_.trust == ClassifierConfig::Trust::kDscp && cnm.msdu.size() >= 4) {
    const auto type = static_cast<uint16_t>(cnm.msdu[0] << 8 | cnm.msdu[1]);
    if (type == kEtherTypeIpv4) return classifier_.by_dscp[cnm.msdu[3] >> 2];
    if (type == kEtherTypeIpv6) {
      const auto traffic_class = static_cast<unsigned>((cnm.msdu[2] & 0xf) << 4 | cnm.msdu[3] >> 4);
      return classifier_.by_dscp[traffic_class >> 2];
    }
  }
  return classifier_.by_pcp[cnm.priority];
}

bool TorShapers::take(const L3CnmView& view, Nanos now) {
  const size_t found = find(view.flow.destination, class_of(view.cnm));
  if (found == kNone) return false;
  Shaper& s = *shapers_[found];
  bump(s.notices);
  s.reaction.advance(now);
  const BitsPerSec sending = s.sending(now);
  // The traffic is that of other workers. A limit would start at the lowest rate.
  if (!s.reaction.is_limiting() && sending.value() == 0) return true;
  if (view.tlvs.rate_change) {
    s.reaction.change(int64_t{*view.tlvs.rate_change} * static_cast<int64_t>(kL3CnmRateUnit) / workers_,
                      sending, now);
  } else if (view.cnm.feedback != 0) {
    s.reaction.slow_down(view.cnm.feedback, sending, now);
  }
  s.follow_rate();
  return true;
}

void TorShapers::add_counts(size_t shaper, ShaperCounts& sum) const {
  const Shaper& s = *shapers_[shaper];
  const uint64_t rate = s.rate_now;
  sum.limiting += rate != 0 ? 1 : 0;
  sum.rate += rate != 0 ? rate : s.line.value();
  sum.queue_bytes += s.queue_bytes;
  sum.queue_peak_bytes = std::max<uint64_t>(sum.queue_peak_bytes, s.queue_peak_bytes);
  sum.held += s.held;
  sum.marked += s.marked;
  sum.dropped += s.dropped;
  sum.notices += s.notices;
}

}  // namespace roci
