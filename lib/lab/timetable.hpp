// What is to happen at certain times, while all nodes stand still.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "lab/window_runner.hpp"

namespace roci::lab {

class Timetable final : public Interlude {
 public:
  // At one time in the order in which they were put here.
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
