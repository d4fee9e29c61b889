// The terminal while a live view has it: a screen of its own, keys one by one, and everything as it was afterwards, however
// the program ends short of being killed.
#pragma once

#include <termios.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "roci-top/look.hpp"

namespace roci::top {

// One at a time, by the main thread: it takes the signals that end or stop a program, and those about the terminal.
class Terminal {
 public:
  enum class Event : uint8_t { kNothing, kEnd, kRedraw, kKey, kUp, kDown, kPageUp, kPageDown };
  struct Input {
    Event event = Event::kNothing;
    char key = 0;  // with kKey
  };

  // Fails when standard output is no terminal.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] size_t width() const;
  [[nodiscard]] size_t height() const;
  // The first lines that there is room for.
  void draw(const std::vector<Line>& lines);
  // The next thing that somebody wants, or nothing after `timeout`.
  Input wait(Nanos timeout);

 private:
  Terminal() = default;
  void enter();
  void leave();
  Input read_keys();
  Input next_key();
  Input read_signal();

  bool keys_ = false;  // standard input is a terminal
  bool entered_ = false;
  bool colours_ = true;
  int signals_ = -1;
  std::string typed_;  // and not taken yet
  termios before_{};
};

// Columns of standard output: of the terminal, else what COLUMNS says, else 80.
size_t output_width();

}  // namespace roci::top
