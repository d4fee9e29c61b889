// Where the networks of this machine are: a folder of this user's own, with one folder for each network in it.
//
//   $ROCI_RUNTIME, else $XDG_RUNTIME_DIR/rocinante, else /run/rocinante for root where that can be made,
//   else /tmp/rocinante-UID
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace roci {

// Makes it with mode 0700 when it is not there. Fails when it belongs to somebody else, or others may write to it.
Result<std::filesystem::path> runtime_folder();

// Whether a network may be called so: it names a folder.
Status check_net_name(std::string_view name);
// The folder of a network, which need not be there.
Result<std::filesystem::path> net_folder(std::string_view name);
// The folder of a network that is there. An error names those that are.
Result<std::filesystem::path> find_net(std::string_view name);
// Names, in alphabetical order.
Result<std::vector<std::string>> list_nets();

// What is in the folder of a network, beside the files of its places (port/shm_join.hpp).
inline constexpr const char* kNetFile = "net.yaml";           // its description (net_config.hpp)
inline constexpr const char* kNetSwitchFile = "switch.yaml";  // roci-switch's configuration
inline constexpr const char* kNetSwitchLock = "switch.lock";  // the switch has it for as long as it lives
inline constexpr const char* kNetSwitchPid = "switch.pid";    // roci-switch's ready file
inline constexpr const char* kNetSwitchLog = "switch.log";
inline constexpr const char* kNetLastWords = "last-words";  // what processes leave (port/last_words.hpp)

}  // namespace roci
