#include "lab/execution/arrival_calendar.hpp"

#include <algorithm>
#include <bit>

namespace roci::lab {

ArrivalCalendar::ArrivalCalendar(Node& node, const std::vector<Port*>& ports)
    : ports_(ports), entered_(ports.size(), kNever) {
  for (size_t port = 0; port < ports.size(); ++port)
    listeners_.push_back(std::make_unique<Listener>(*this, node, static_cast<uint16_t>(port)));
}

void ArrivalCalendar::enter(uint16_t port) {
  const Nanos at = ports_[port]->next_arrival();
  if (at >= entered_[port]) return;
  entered_[port] = at;
  entries_.push({at, port});
}

void ArrivalCalendar::gather() {
  for (const uint16_t port : taken_) enter(port);
  taken_.clear();
  if (!any_.load(std::memory_order_relaxed) || !any_.exchange(false, std::memory_order_acquire)) return;
  for (size_t word = 0; word < announced_.size(); ++word) {
    if (announced_[word].load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t left = announced_[word].exchange(0, std::memory_order_acquire); left != 0; left &= left - 1)
      enter(static_cast<uint16_t>(word * 64U + static_cast<unsigned>(std::countr_zero(left))));
  }
}

Nanos ArrivalCalendar::next() {
  gather();
  return first();
}

Nanos ArrivalCalendar::first() {
  while (!entries_.empty() && entries_.top().at != entered_[entries_.top().port]) entries_.pop();
  return entries_.empty() ? kNever : entries_.top().at;
}

std::span<const uint16_t> ArrivalCalendar::due(Nanos now) {
  gather();
  while (first() <= now) {
    const uint16_t port = entries_.top().port;
    entries_.pop();
    entered_[port] = kNever;
    taken_.push_back(port);
  }
  taken_.insert(taken_.end(), always_.begin(), always_.end());
  std::ranges::sort(taken_);
  return taken_;
}

}  // namespace roci::lab
