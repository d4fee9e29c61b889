#include "roci-top/output/terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/os/standard_output.hpp"
#include "base/units.hpp"

namespace roci::top {
namespace {

// ECMA-48 and xterm: alternate screen, hidden cursor.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the terminal was closed; SIGHUP follows
    text.remove_prefix(static_cast<size_t>(written));
  }
}

winsize window() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

size_t from_environment(const char* variable, size_t otherwise) {
  const char* text = secure_getenv(variable);
  const auto value = parse_integer(text == nullptr ? "" : text, 1, 10'000);
  return value ? static_cast<size_t>(*value) : otherwise;
}

std::string_view style_code(Line::Style style, bool colours) {
  switch (style) {
    case Line::Style::kTitle:
      return "\x1b[1m";
    case Line::Style::kHeading:
      return "\x1b[7m";
    case Line::Style::kAlert:
      return colours ? "\x1b[31m" : "\x1b[1m";
    case Line::Style::kPlain:
      break;
  }
  return "";
}

}  // namespace

size_t output_width() {
  const auto columns = terminal_columns(STDOUT_FILENO);
  return columns ? *columns : from_environment("COLUMNS", 80);
}

Result<std::unique_ptr<Terminal>> Terminal::open() {
  const char* kind = secure_getenv("TERM");
  if (isatty(STDOUT_FILENO) == 0 || (kind != nullptr && std::string_view{kind} == "dumb"))
    return fail("standard output is not a terminal; use --once or --json");
  std::unique_ptr<Terminal> made{new Terminal};
  made->keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &made->before_) == 0;
  made->colors_ = secure_getenv("NO_COLOR") == nullptr;
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : kSignals) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  made->signals_ = signalfd(-1, &signals, SFD_CLOEXEC);
  if (made->signals_ < 0)
    return fail(std::string("a signalfd cannot be created: ") + std::strerror(errno), errno);
  made->enter();
  return made;
}

Terminal::~Terminal() {
  leave();
  if (signals_ >= 0) close(signals_);
}

void Terminal::enter() {
  if (keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ISIG stays set: ^C and ^Z are signals
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  }
  write_all(kEnter);
  entered_ = true;
}

void Terminal::leave() {
  if (!entered_) return;
  write_all(kLeave);
  if (keys_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  entered_ = false;
}

size_t Terminal::width() const { return output_width(); }

size_t Terminal::height() const {
  const winsize size = window();
  return size.ws_row > 0 ? size.ws_row : from_environment("LINES", 24);
}

void Terminal::draw(const std::vector<Line>& lines) {
  const size_t rows = height();
  std::string out;
  for (size_t i = 0; i < std::min(lines.size(), rows); ++i) {
    std::string_view text = lines[i].text;
    if (lines[i].style != Line::Style::kHeading) text = text.substr(0, text.find_last_not_of(' ') + 1);
    // Erase before writing: after a full line the cursor is still on its last character.
    out += "\x1b[" + std::to_string(i + 1) + ";1H\x1b[K";
    out += style_code(lines[i].style, colors_);
    out += text;
    out += "\x1b[0m";
  }
  if (lines.size() < rows) out += "\x1b[" + std::to_string(lines.size() + 1) + ";1H\x1b[J";
  write_all(out);
}

Terminal::Input Terminal::wait(Nanos timeout) {
  if (!typed_.empty()) return next_key();
  std::array<pollfd, 2> files{{{signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(std::max(timeout, Nanos{0})).count();
  const int ready = poll(files.data(), keys_ ? 2 : 1, static_cast<int>(std::min<int64_t>(millis, 1'000'000)));
  if (ready <= 0) return {};
  if (files[0].revents != 0) return read_signal();
  return read_keys();
}

Terminal::Input Terminal::read_signal() {
  signalfd_siginfo info{};
  if (read(signals_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return {Event::kEnd};
  if (info.ssi_signo == SIGWINCH) return {Event::kRedraw};
  if (info.ssi_signo != SIGTSTP) return {Event::kEnd};
  leave();
  raise(SIGSTOP);  // stopped until SIGCONT
  enter();
  return {Event::kRedraw};
}

// Returns the first of the typed keys that are not yet processed.
Terminal::Input Terminal::next_key() {
  const std::string keys = std::exchange(typed_, {});
  const bool special = keys.size() > 2 && keys[0] == '\x1b' && (keys[1] == '[' || keys[1] == 'O');
  if (!special) {
    typed_ = keys.substr(1);
    return {Event::kKey, keys.front()};
  }
  // ECMA-48: parameter bytes, and a final byte from '@' to '~'.
  size_t end = 2;
  while (end < keys.size() && (keys[end] < '@' || keys[end] > '~')) ++end;
  if (end < keys.size()) typed_ = keys.substr(end + 1);
  const std::string_view sequence = std::string_view{keys}.substr(2, end - 1);
  if (sequence == "A") return {Event::kUp};
  if (sequence == "B") return {Event::kDown};
  if (sequence == "5~") return {Event::kPageUp};
  if (sequence == "6~") return {Event::kPageDown};
  return {};
}

Terminal::Input Terminal::read_keys() {
  std::array<char, 64> bytes;
  const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count <= 0) return {Event::kEnd};
  typed_.assign(bytes.data(), static_cast<size_t>(count));
  return next_key();
}

}  // namespace roci::top
