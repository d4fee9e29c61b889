#include "roci-top/output/live.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "roci-top/output/terminal.hpp"
#include "roci-top/tables/table.hpp"
#include "roci-top/tables/text.hpp"

namespace roci::top {
namespace {

constexpr Nanos kFirstInterval = 250ms;  // short, so that the first rates appear soon

class Live {
 public:
  Live(Processes& processes, Snapshot first, Nanos interval, Terminal& terminal)
      : processes_(processes),
        terminal_(terminal),
        interval_(interval),
        now_(std::move(first)),
        before_(now_) {}

  void run() {
    next_ = now_.at + std::min(interval_, kFirstInterval);
    draw();
    for (;;) {
      // While paused, only keys and signals are processed.
      const Terminal::Input input = terminal_.wait(paused_ ? Nanos{1h} : next_ - steady_now());
      if (!act(input)) return;
      if (!paused_ && steady_now() >= next_) {
        before_ = std::move(now_);
        now_ = processes_.look();
        next_ = now_.at + interval_;
      }
      draw();
    }
  }

 private:
  // Returns false to exit.
  bool act(const Terminal::Input& input) {
    const size_t page = std::max<size_t>(terminal_.height(), 4) - 3;
    switch (input.event) {
      case Terminal::Event::kEnd:
        return false;
      case Terminal::Event::kUp:
        scroll_ -= std::min<size_t>(scroll_, 1);
        break;
      case Terminal::Event::kDown:
        ++scroll_;
        break;
      case Terminal::Event::kPageUp:
        scroll_ -= std::min(scroll_, page);
        break;
      case Terminal::Event::kPageDown:
        scroll_ += page;
        break;
      case Terminal::Event::kKey:
        return act_on_key(input.key);
      case Terminal::Event::kNothing:
      case Terminal::Event::kRedraw:
        break;
    }
    return true;
  }

  bool act_on_key(char key) {
    switch (key) {
      case 'q':
        return false;
      case 'p':
        paused_ = !paused_;
        break;
      case 'c':
        look_.classes = !look_.classes;
        break;
      case 'f':
        look_.queue_pairs = !look_.queue_pairs;
        break;
      case 's':
        look_.sort = static_cast<Sort>((static_cast<unsigned>(look_.sort) + 1) % kSorts);
        break;
      default:
        break;
    }
    return true;
  }

  void draw() {
    look_.width = terminal_.width();
    std::vector<Line> lines = render(now_, before_, look_);
    if (lines.empty()) lines.push_back({fitted("no Rocinante process found; waiting", look_.width)});
    const size_t space = std::max<size_t>(terminal_.height(), 2) - 1;  // lines below the title
    scroll_ = lines.size() > space ? std::min(scroll_, lines.size() - space) : 0;
    lines.erase(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(scroll_));
    lines.insert(lines.begin(), {fitted(title(), look_.width), Line::Style::kTitle});
    terminal_.draw(lines);
  }

  [[nodiscard]] std::string title() const {
    std::array<char, 64> every;
    std::snprintf(every.data(), every.size(), "every %g s", static_cast<double>(interval_.count()) * 1e-9);
    std::string text = "roci-top, " + (paused_ ? std::string{"PAUSED"} : std::string{every.data()});
    if (now_.silent > 0) text += ", " + std::to_string(now_.silent) + " not responding";
    return text + " | q quit, p pause, c classes, f flows, s sort: " + sort_name(look_.sort);
  }

  Processes& processes_;
  Terminal& terminal_;
  const Nanos interval_;
  Snapshot now_, before_;
  Nanos next_{0};
  Look look_;
  size_t scroll_ = 0;
  bool paused_ = false;
};

}  // namespace

Status run_live(Processes& processes, Snapshot first, Nanos interval) {
  const auto terminal = Terminal::open();
  if (!terminal) return fail(terminal.error());
  Live{processes, std::move(first), interval, **terminal}.run();
  return {};
}

}  // namespace roci::top
