// Location of the runtime directories of this user's DPDK processes, which contain their telemetry sockets
// (endpoint.hpp). Implements EAL's rule (eal_create_runtime_dir of DPDK 22.11) for processes that do not use the EAL.
// Without XDG_RUNTIME_DIR, all users share a parent directory in /tmp: check it (base/os/private_folder.hpp) before use.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace roci {

// File name in the directory of a process. If several processes share a directory, further names end in ":1", ":2" etc.
inline constexpr std::string_view kTelemetrySocket = "dpdk_telemetry.v2";

// Parent directory; each process has a directory with the name of its --file-prefix. It may not exist.
inline std::filesystem::path dpdk_runtime_folder() {
  const auto from = [](const char* variable) -> std::string_view {
    const char* value = secure_getenv(variable);
    return value == nullptr ? "" : value;
  };
  std::filesystem::path folder = from("RUNTIME_DIRECTORY");
  if (folder.empty()) folder = getuid() == 0 ? "/var/run" : from("XDG_RUNTIME_DIR");
  if (folder.empty()) folder = "/tmp";
  return folder / "dpdk";
}

}  // namespace roci
