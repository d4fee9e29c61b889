#include "congestion/control_core.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

namespace roci {
namespace {

void bump(std::atomic<uint64_t>& number) {
  number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

EventRing::EventRing(uint32_t capacity) : records_(std::bit_ceil(std::max(capacity, 2U))) {}

bool EventRing::push(ControlFlow& flow, Kind what, const roci_cc_event& event) {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_seen_ == capacity()) head_seen_ = head_.load(std::memory_order_acquire);
  if (tail - head_seen_ == capacity()) return false;
  Record& record = records_[tail & (capacity() - 1)];
  record.flow = &flow;
  record.what = what;
  record.event = event;
  if (event.path != nullptr) {
    std::memcpy(&record.path, event.path,
                offsetof(roci_cc_path, hop) + event.path->hops * sizeof(roci_cc_hop));
    record.event.path = &record.path;
  }
  tail_.store(tail + 1, std::memory_order_release);
  return true;
}

const EventRing::Record* EventRing::front() {
  const uint32_t head = head_.load(std::memory_order_relaxed);
  if (tail_seen_ == head) tail_seen_ = tail_.load(std::memory_order_acquire);
  return tail_seen_ == head ? nullptr : &records_[head & (capacity() - 1)];
}

void EventRing::pop() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

ControlCore::ControlCore(std::string name, uint32_t workers, uint32_t trace, uint32_t ring)
    : name_(std::move(name)), runner_(trace) {
  for (uint32_t i = 0; i < workers; ++i) links_.push_back(std::make_unique<Link>(ring));
}

bool ControlCore::poll(Nanos now) {
  const std::scoped_lock guard(round_);
  bool worked = runner_.advance(now, [this](ControlFlow& flow) { links_[flow.worker]->decided.add(flow); });
  for (const auto& link : links_) {
    for (uint32_t left = kMaxConsecutive; left > 0; --left) {
      const EventRing::Record* record = link->events.front();
      if (record == nullptr) break;
      take(*link, *record, now);
      link->events.pop();
      worked = true;
    }
  }
  return worked;
}

void ControlCore::take(Link& link, const EventRing::Record& record, Nanos now) {
  ControlFlow& flow = *record.flow;
  const Nanos at{static_cast<int64_t>(record.event.now_ns)};
  switch (record.what) {
    case EventRing::Kind::kStart:
      runner_.adopt(flow);
      return;
    case EventRing::Kind::kEnd:
      runner_.stop(flow);
      link.ended.add(flow);
      return;
    case EventRing::Kind::kEvent: {
      // A timer event of the core may be newer than this event.
      roci_cc_event event = record.event;
      event.now_ns = std::max(event.now_ns, static_cast<uint64_t>(flow.last_event.count()));
      runner_.run(flow, event);
      bump(events_);
      const auto delay = static_cast<uint64_t>(std::max<int64_t>((now - at).count(), 0));
      bump(delays_[std::min<size_t>(std::bit_width(delay), delays_.size() - 1)]);
      break;
    }
  }
  link.decided.add(flow);
}

void ControlCore::remove(uint32_t worker) {
  EventRing& events = links_[worker]->events;
  while (const EventRing::Record* record = events.front()) {
    if (record->what == EventRing::Kind::kEnd) {
      remove(*record->flow);
      links_[worker]->ended.add(*record->flow);
    }
    events.pop();
  }
}

Nanos ControlCore::next_deadline() const {
  for (const auto& link : links_) {
    if (!link->events.empty()) return Nanos{0};
  }
  return runner_.next_deadline();
}

ControlCore::Counts ControlCore::counts() const {
  Counts counts;
  counts.events = events_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < delays_.size(); ++i) counts.delays[i] = delays_[i].load(std::memory_order_relaxed);
  return counts;
}

}  // namespace roci
