#include "roci-switch/crash_notice_sender.hpp"

#include <cstdio>

#include "base/os/standard_output.hpp"

namespace roci {
namespace {

constexpr Nanos kPeriod = 100ms;  // between two searches for exited processes
// Nearly the rate at which peers accept messages of unauthenticated senders; does not fill their queues in the switch.
constexpr size_t kAtOnce = 32;
constexpr Nanos kPause = 1ms;
// Each waits for the port's worker, which may be stopped.
constexpr unsigned kMaxAttempts = 10;

}  // namespace

Nanos CrashNoticeSender::work(Nanos now) {
  if (folder_.empty()) return kNever;
  if (!exited_ && now >= next_look_) {
    look();
    next_look_ = now + kPeriod;
  }
  if (!exited_) return next_look_;
  send_some();
  if (!exited_) next_look_ = now;  // search for further files at once
  return now + kPause;
}

void CrashNoticeSender::look() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    const size_t dot = name.rfind('.');
    if (dot == 0 || dot == std::string::npos) continue;  // temporary, or not a crash notification
    const auto port = process_.find_port(name.substr(0, dot));
    if (!port) continue;
    auto notices = CrashNoticeReader::take(entry.path());
    if (!notices) {
      if (complained_.insert(name).second)
        std::fprintf(stderr, "roci-switch: %s\n", notices.error().message.c_str());
    } else if (*notices) {
      exited_.emplace(ExitedProcess{entry.path(), name.substr(0, dot), name.substr(dot + 1), *port,
                                    std::move(**notices)});
      return;
    }
  }
}

void CrashNoticeSender::send_some() {
  std::vector<std::vector<uint8_t>>& frames = exited_->frames;
  while (frames.size() < kAtOnce) {
    const auto frame = exited_->notices.next();
    if (frame.empty()) break;
    frames.emplace_back(frame.begin(), frame.end());
  }
  const Status inserted = process_.insert(exited_->port, frames);
  if (!inserted) {
    const bool retries = ++exited_->attempts < kMaxAttempts;
    std::fprintf(stderr, "roci-switch: crash notifications of process %s: %s%s\n", exited_->pid.c_str(),
                 inserted.error().message.c_str(), retries ? "; trying again" : "");
    if (retries) return;
  } else {
    const bool more = frames.size() == kAtOnce;
    exited_->sent_frames += frames.size();
    exited_->attempts = 0;
    frames.clear();
    if (more) return;
  }
  if (exited_->sent_frames > 0) {
    std::printf("roci-switch: '%s': process %s at %s has exited; crash notifications sent (%zu frames)\n",
                process_.name().c_str(), exited_->pid.c_str(), exited_->port_name.c_str(),
                exited_->sent_frames);
    flush_standard_output();
  }
  exited_->notices.remove(exited_->file);
  exited_.reset();
}

}  // namespace roci
