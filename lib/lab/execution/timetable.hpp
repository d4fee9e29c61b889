// Timetable of actions, which run at their times while no node runs.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "lab/execution/window_runner.hpp"

namespace roci::lab {

class Timetable final : public TimedTask {
 public:
  // Actions of the same time run in the order in which they were added.
  void at(Nanos time, std::function<void()> what) { entries_.emplace(time, std::move(what)); }

  [[nodiscard]] Nanos next() const override { return entries_.empty() ? kNever : entries_.begin()->first; }
  Status run(Nanos now) override {
    while (!entries_.empty() && entries_.begin()->first <= now) entries_.extract(entries_.begin()).mapped()();
    return {};
  }

 private:
  std::multimap<Nanos, std::function<void()>> entries_;
};

}  // namespace roci::lab
