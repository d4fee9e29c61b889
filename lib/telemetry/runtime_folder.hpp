// Where the DPDK processes of this user have their folders, and in them the sockets by which others may ask them
// (endpoint.hpp). The rule is EAL's own (eal_create_runtime_dir of DPDK 22.11), for whoever wants to find a process without
// being one.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace roci {

// In a process's folder. When several processes share a folder, the others' have ":1", ":2", … behind it.
inline constexpr std::string_view kTelemetrySocket = "dpdk_telemetry.v2";

// One folder for each process below it, called by the process's --file-prefix. It need not be there.
inline std::filesystem::path dpdk_runtime_folder() {
  const auto from = [](const char* variable) -> std::string_view {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
  };
  std::filesystem::path folder = from("RUNTIME_DIRECTORY");
  if (folder.empty()) folder = getuid() == 0 ? "/var/run" : from("XDG_RUNTIME_DIR");
  if (folder.empty()) folder = "/tmp";
  return folder / "dpdk";
}

}  // namespace roci
