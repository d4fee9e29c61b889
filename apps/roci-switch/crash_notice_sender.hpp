// Delivery of the crash notifications (port/crash_notice.hpp) of exited processes at the ports of a switch, as if the
// processes had sent them.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "port/crash_notice.hpp"
#include "roci-switch/switch_process.hpp"

namespace roci {

// Sends the frames in files PORT.PID, then removes the files. Used by one thread.
class CrashNoticeSender {
 public:
  // Uses the folder configured for the switch; does nothing if there is none.
  explicit CrashNoticeSender(SwitchProcess& process) : process_(process), folder_(process.crash_notices()) {}

  // Performs due work. Returns the time of the next call.
  Nanos work(Nanos now);

 private:
  struct ExitedProcess {
    std::filesystem::path file;
    std::string port_name, pid;
    size_t port;
    CrashNoticeReader notices;
    std::vector<std::vector<uint8_t>> frames{};  // the next to send
    unsigned attempts = 0;                       // to send them
    size_t sent_frames = 0;
  };

  // Finds the file of one exited process, if there is one.
  void look();
  void send_some();

  SwitchProcess& process_;
  const std::filesystem::path folder_;
  std::optional<ExitedProcess> exited_;
  Nanos next_look_{0};
  std::set<std::string> complained_;  // unreadable files, reported once
};

}  // namespace roci
