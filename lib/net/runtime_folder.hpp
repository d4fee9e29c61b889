// Folder of the networks of this machine. It belongs to the user, and contains one folder for each network.
//
//   $ROCI_RUNTIME; else /run/rocinante for root, if it can be created; else $XDG_RUNTIME_DIR/rocinante, if
//   XDG_RUNTIME_DIR belongs to the effective user; else /tmp/rocinante-UID
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace roci {

// Creates the folder with mode 0700 if it does not exist. Fails if it belongs to another user, if others have write
// permission, or if another user can replace it or a folder above it (base/os/private_folder.hpp).
Result<std::filesystem::path> runtime_folder();

// Checks the name of a network, which is also the name of its folder.
Status check_net_name(std::string_view name);
// Folder of a network, which need not exist.
Result<std::filesystem::path> net_folder(std::string_view name);
// Folder of an existing network. The error lists the existing networks.
Result<std::filesystem::path> find_net(std::string_view name);
// Names of the networks in alphabetical order.
Result<std::vector<std::string>> list_nets();

// Files in the folder of a network, in addition to the files of its slots (port/shm/shm_join.hpp).
inline constexpr const char* kNetFile = "net.yaml";           // description (net_config.hpp)
inline constexpr const char* kNetSwitchFile = "switch.yaml";  // configuration of roci-switch
inline constexpr const char* kNetSwitchLock = "switch.lock";  // locked while the switch runs
inline constexpr const char* kNetSwitchPid = "switch.pid";    // ready file of roci-switch
inline constexpr const char* kNetSwitchLog = "switch.log";
inline constexpr const char* kNetCrashNotices =
    "crash-notices";  // crash notifications (port/crash_notice.hpp)

}  // namespace roci
