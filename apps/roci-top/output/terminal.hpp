// Terminal access of the live view: alternate screen and unbuffered keys. The previous state is restored when the
// program exits, unless it is killed.
#pragma once

#include <termios.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "roci-top/tables/look.hpp"

namespace roci::top {

// The terminal in live mode. One object at a time, used by the main thread: it receives signals that end or stop the
// program and terminal signals.
class Terminal {
 public:
  enum class Event : uint8_t { kNothing, kEnd, kRedraw, kKey, kUp, kDown, kPageUp, kPageDown };
  struct Input {
    Event event = Event::kNothing;
    char key = 0;  // with kKey
  };

  // Fails if the standard output is not a terminal.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] size_t width() const;
  [[nodiscard]] size_t height() const;
  // Draws the lines that fit on the screen, from the first one.
  void draw(const std::vector<Line>& lines);
  // Waits for the next key or signal; kNothing after `timeout`.
  Input wait(Nanos timeout);

 private:
  Terminal() = default;
  void enter();
  void leave();
  Input read_keys();
  Input next_key();
  Input read_signal();

  bool keys_ = false;  // the standard input is a terminal
  bool entered_ = false;
  bool colors_ = true;
  int signals_ = -1;
  std::string typed_;  // typed and not yet processed
  termios before_{};
};

// Width of the terminal; if unknown, the environment variable COLUMNS, otherwise 80.
size_t output_width();

}  // namespace roci::top
