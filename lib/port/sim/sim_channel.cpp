#include "port/sim/sim_channel.hpp"

#include <algorithm>

#include "port/sim/bit_errors.hpp"
#include "wire/net/rewrite.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

SimLink::Channel::Channel(const SimDirectionConfig& config, uint16_t queues, Rng rng, rte_mempool* copies)
    : faults(config.faults),
      line(config.rate),
      delay_(config.delay),
      queue_limit_(config.queue.value()),
      rng_(std::move(rng)),
      copies_(copies),
      queues_(std::max<size_t>(queues, 1)),
      arriving_(queues_) {}

SimLink::Channel::~Channel() {
  collect();
  for (Arrivals& arrivals : arriving_) {
    while (arrivals.next() != kNever) rte_pktmbuf_free(arrivals.take().frame);
  }
}

void SimLink::Channel::Arrivals::add(const InFlightFrame& frame) {
  if (!frame.late) {
    in_order_.push(frame);
    return;
  }
  late_.push_back(frame);
  std::ranges::push_heap(late_, Later{});
}

Nanos SimLink::Channel::Arrivals::next() const {
  const Nanos in_order = in_order_.empty() ? kNever : in_order_.front().arrival;
  return late_.empty() ? in_order : std::min(in_order, late_.front().arrival);
}

SimLink::Channel::InFlightFrame SimLink::Channel::Arrivals::take() {
  if (!reordered_is_first()) return in_order_.pop();
  std::ranges::pop_heap(late_, Later{});
  const InFlightFrame first = late_.back();
  late_.pop_back();
  return first;
}

uint32_t SimLink::Channel::Arrivals::count(Nanos by) const {
  const auto has_arrived = [by](const InFlightFrame& f) { return f.arrival <= by; };
  uint32_t arrived = static_cast<uint32_t>(std::ranges::count_if(late_, has_arrived));
  for (size_t i = 0; i < in_order_.size() && has_arrived(in_order_[i]); ++i) ++arrived;
  return arrived;
}

bool SimLink::Channel::send(rte_mbuf* frame, Nanos now, bool up) {
  retire(now);
  const uint32_t bytes = frame->pkt_len;
  if (!sending_.empty() && sending_bytes_ + bytes > queue_limit_) {
    refused_ = true;
    return false;
  }
  const Nanos done = line.occupy(now, Bytes{bytes} + kEthernetLineOverhead);
  if (done > now) {
    sending_.push({done, bytes});
    sending_bytes_ += bytes;
    if (sending_bytes_ > stats.peak_queue) stats.peak_queue.store(sending_bytes_, std::memory_order_relaxed);
  }

  const uint64_t index = stats.accepted;
  bump(stats.accepted);
  const SimVerdict verdict = script ? script(*frame, index) : SimVerdict{};
  if (!up || verdict.drop || rng_.chance(faults.loss)) {
    bump(stats.lost);
    rte_pktmbuf_free(frame);
    return true;
  }
  frame = own(frame);
  if (frame == nullptr) return true;
  corrupt(frame, verdict, faults);

  Nanos arrival = done + delay_ + verdict.extra_delay;
  const bool late = rng_.chance(faults.reordering);
  if (late) {
    const auto most = static_cast<uint64_t>(std::max<int64_t>(faults.reordering_delay.count(), 1));
    arrival += Nanos{static_cast<int64_t>(rng_.between(1, most))};
  }
  if (late || verdict.extra_delay > Nanos{0}) bump(stats.reordered);

  const unsigned duplicates = verdict.duplicates + (rng_.chance(faults.duplication) ? 1U : 0U);
  const bool overtaken = arrival > done + delay_;
  deliver_at(frame, arrival, overtaken);
  for (unsigned i = 0; i < duplicates; ++i) {
    bump(stats.duplicated);
    rte_mbuf* copy = rte_pktmbuf_copy(frame, copies_, 0, UINT32_MAX);
    if (copy == nullptr) {
      bump(stats.no_buffer);
    } else {
      deliver_at(copy, arrival, overtaken);
    }
  }
  return true;
}

rte_mbuf* SimLink::Channel::receive(uint16_t queue, Nanos now) {
  if (next_arrival(queue) > now) return nullptr;
  bump(stats.delivered);
  return arriving_[queue].take().frame;
}

Nanos SimLink::Channel::next_free() const {
  if (!refused_) return kNever;
  return sending_.empty() ? Nanos{0} : sending_.front().done;
}

bool SimLink::Channel::wake(Nanos now) {
  if (next_free() > now) return false;
  retire(now);
  refused_ = false;
  return true;
}

void SimLink::Channel::retire(Nanos now) {
  while (!sending_.empty() && sending_.front().done <= now) sending_bytes_ -= sending_.pop().bytes;
}

rte_mbuf* SimLink::Channel::own(rte_mbuf* frame) {
  frame = own_frame(frame, copies_);
  if (frame == nullptr) {
    bump(stats.no_buffer);
  } else {
    frame->ol_flags = 0;  // TX offload flags of the sender are not valid RX flags
  }
  return frame;
}

void SimLink::Channel::corrupt(rte_mbuf* frame, const SimVerdict& verdict, const SimFaults& random) {
  if ((verdict.mark || rng_.chance(random.marking)) &&
      mark_congestion(rte_pktmbuf_mtod(frame, uint8_t*), frame->data_len)) {
    bump(stats.marked);
  }
  for (const uint32_t bit : verdict.flip_bits) flip_bit(frame, bit);
  bool corrupted = !verdict.flip_bits.empty();
  if (rng_.chance(random.corruption)) corrupted |= flip_random_bits(frame, random.corruption_bits, rng_);
  if (corrupted) bump(stats.corrupted);
}

void SimLink::Channel::deliver_at(rte_mbuf* frame, Nanos arrival, bool late) {
  in_transit_.push({arrival, order_++, frame, static_cast<uint16_t>(queue_of(frame)), late});
  if (listener_ != nullptr) listener_->arriving(arrival);
}

void SimLink::Channel::collect() {
  for (const InFlightFrame* next = in_transit_.front(); next != nullptr; next = in_transit_.front()) {
    arriving_[next->queue].add(*next);
    in_transit_.pop();
  }
}

// Models a NIC's receive side scaling: a hash of IP addresses
// and UDP ports of RoCEv2 packets. Other frames go to queue 0.
size_t SimLink::Channel::queue_of(const rte_mbuf* frame) const {
  if (queues_ == 1) return 0;
  const FrameView view = parse_frame(rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len, frame->pkt_len,
                                     OpcodeRange::kWithPrivate);  // a NIC does not check opcodes
  if (view.kind != FrameKind::kRoce) return 0;
  uint64_t hash = 0;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  };
  for (const IpAddress& address : {view.source_ip(), view.destination_ip()}) {
    for (const uint8_t byte : address.bytes) mix(byte);
  }
  mix(view.udp().source_port.get());
  mix(view.udp().destination_port.get());
  return hash % queues_;
}

}  // namespace roci
