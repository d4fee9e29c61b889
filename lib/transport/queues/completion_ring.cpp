#include "transport/queues/completion_ring.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "base/trace_points.hpp"

namespace roci {

CompletionRing::CompletionRing(uint32_t capacity, uint32_t first, const EventObject& object,
                               std::shared_ptr<ChannelQueue> channel, Producers producers)
    : channel_(std::move(channel)),
      many_producers_(producers == Producers::kMany),
      capacity_(capacity),
      entries_(std::bit_ceil(capacity)),
      head_(first),
      tail_(first),
      filled_(first),
      head_seen_(first) {
  member_.object = object;
  if (channel_ != nullptr) channel_->join();
}

CompletionRing::~CompletionRing() { abandon_events(); }

bool CompletionRing::push(const ibv_wc& completion, bool solicited, CompletionBatch* batch, Nanos now) {
  solicited |= completion.status != IBV_WC_SUCCESS;
  {
    std::unique_lock guard(producers_, std::defer_lock);
    if (many_producers_) guard.lock();
    if (filled_ - head_seen_ >= capacity()) head_seen_ = head_.load(std::memory_order_acquire);
    if (filled_ - head_seen_ >= capacity()) {
      overflowed_.store(true, std::memory_order_relaxed);
      return false;
    }
    if (!times_.empty()) [[unlikely]]
      times_[filled_ & (times_.size() - 1)] = static_cast<uint64_t>(now.count());
    at(filled_++) = completion;
    trace::completion_written(completion.qp_num, completion.wr_id, completion.status, completion.opcode);
    if (batch != nullptr && !many_producers_) {
      batch_solicited_ |= solicited;
      if (!in_batch_) batch->add(*this);
      return true;
    }
    publish(filled_);
  }
  notify(solicited);
  return true;
}

// With a channel, the store is ordered before the load of armed_ (seq_cst): either this producer reads the request, or
// the requesting thread reads these completions. Without a channel, release is enough, since applications only poll.
void CompletionRing::publish(uint32_t tail) {
  tail_.store(tail, channel_ == nullptr ? std::memory_order_release : std::memory_order_seq_cst);
}

void CompletionRing::notify(bool solicited) {
  if (channel_ == nullptr) return;
  const Armed armed = armed_.load(std::memory_order_seq_cst);
  if (armed == Armed::kAny || (armed == Armed::kSolicited && solicited)) {
    if (armed_.exchange(Armed::kNo) != Armed::kNo) channel_->raise(member_);
  }
}

void CompletionBatch::add(CompletionRing& ring) {
  ring.in_batch_ = true;
  (first_ == nullptr ? first_ : last_->next_in_batch_) = &ring;
  last_ = &ring;
}

void CompletionBatch::publish_all() {
  if (first_ == last_) [[likely]] {
    CompletionRing& ring = *std::exchange(first_, nullptr);
    ring.in_batch_ = false;
    ring.publish(ring.filled_);
    return ring.notify(std::exchange(ring.batch_solicited_, false));
  }
  for (CompletionRing* ring = first_; ring != nullptr; ring = ring->next_in_batch_)
    ring->publish(ring->filled_);
  while (first_ != nullptr) {
    CompletionRing& ring = *std::exchange(first_, std::exchange(first_->next_in_batch_, nullptr));
    ring.in_batch_ = false;
    ring.notify(std::exchange(ring.batch_solicited_, false));
  }
}

int CompletionRing::poll(int count, ibv_wc* out, uint64_t* times) {
  if (empty()) return overflowed_.load(std::memory_order_relaxed) ? -1 : 0;
  const std::scoped_lock guard(consumers_);
  const uint32_t head = head_.load(std::memory_order_relaxed);
  const uint32_t waiting = tail_.load(std::memory_order_acquire) - head;
  const uint32_t take = count < 0 ? 0 : std::min(static_cast<uint32_t>(count), waiting);
  for (uint32_t i = 0; i < take; ++i) {
    out[i] = at(head + i);
    trace::completion_polled(out[i].qp_num, out[i].wr_id, out[i].status, out[i].opcode);
  }
  for (uint32_t i = 0; times != nullptr && i < take; ++i)
    times[i] = times_.empty() ? 0 : times_[(head + i) & (times_.size() - 1)];
  head_.store(head + take, std::memory_order_release);
  return static_cast<int>(take);
}

CompletionRing::Space CompletionRing::make_space(uint32_t capacity) const {
  const size_t size = std::bit_ceil(capacity);
  return {std::vector<ibv_wc>(size), std::vector<uint64_t>(keeps_times_ ? size : 0)};
}

bool CompletionRing::resize(uint32_t capacity, Space& space) {
  auto& [larger, times] = space;
  const std::scoped_lock guard(producers_, consumers_);
  const uint32_t head = head_.load(std::memory_order_relaxed);
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head > capacity) return false;
  for (uint32_t i = head; i != tail; ++i) {
    if (!times.empty()) times[i & (times.size() - 1)] = times_[i & (times_.size() - 1)];
    larger[i & (larger.size() - 1)] = at(i);
  }
  entries_.swap(larger);
  times_.swap(times);
  capacity_.store(capacity, std::memory_order_relaxed);
  return true;
}

void CompletionRing::request_notify(bool solicited_only) {
  if (channel_ == nullptr || disowned_.load(std::memory_order_relaxed)) return;
  solicited_only_.store(solicited_only, std::memory_order_relaxed);
  if (!solicited_only) {
    armed_.store(Armed::kAny, std::memory_order_seq_cst);
    return;
  }
  auto idle = Armed::kNo;
  armed_.compare_exchange_strong(idle, Armed::kSolicited, std::memory_order_seq_cst);
}

bool CompletionRing::take_back_event() {
  if (!empty() || overflowed()) return false;
  request_notify(solicited_only_.load(std::memory_order_relaxed));
  // A completion preceded the request, so no event follows for it.
  if (!empty()) return false;
  ack_events(1);
  return true;
}

void CompletionRing::ack_events(uint32_t count) {
  if (channel_ != nullptr) channel_->acknowledge(member_, count);
}

uint32_t CompletionRing::unacknowledged() {
  return channel_ != nullptr ? channel_->unacknowledged(member_) : 0;
}

void CompletionRing::abandon_events() {
  overflow_claimed_.store(true, std::memory_order_relaxed);
  if (disowned_.exchange(true, std::memory_order_relaxed) || channel_ == nullptr) return;
  armed_.store(Armed::kNo, std::memory_order_seq_cst);
  channel_->leave(member_);
}

void CompletionRing::remove(uint32_t qp_num) {
  const std::scoped_lock guard(producers_, consumers_);
  const uint32_t head = head_.load(std::memory_order_relaxed);
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  uint32_t kept = head;
  for (uint32_t i = head; i != tail; ++i) {
    const ibv_wc& wc = at(i);
    if (wc.qp_num == qp_num) continue;
    if (!times_.empty()) times_[kept & (times_.size() - 1)] = times_[i & (times_.size() - 1)];
    at(kept++) = wc;
  }
  filled_ = kept;
  tail_.store(kept, std::memory_order_release);
}

}  // namespace roci
