// What processes at the ports of a switch have left (port/last_words.hpp), sent when they are gone as if it had come from them.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "port/last_words.hpp"
#include "roci-switch/switch_process.hpp"

namespace roci {

// Files are called PORT.PID. Removes those of which all has been said. One thread.
class LastWordsSpeaker {
 public:
  // Looks into the folder that the switch names, if it names one.
  explicit LastWordsSpeaker(SwitchProcess& process) : process_(process), folder_(process.last_words()) {}

  // Does what is due; when to call it again.
  Nanos work(Nanos now);

 private:
  struct Gone {
    std::filesystem::path file;
    std::string port_name, pid;
    size_t port;
    LeftWords words;
    size_t said = 0;
  };

  // Somebody who is gone, if there is anybody.
  void look();
  void say_some();

  SwitchProcess& process_;
  const std::filesystem::path folder_;
  std::optional<Gone> gone_;
  Nanos next_look_{0};
  std::set<std::string> complained_;  // files that could not be read, each once
};

}  // namespace roci
