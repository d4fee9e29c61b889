#include "roci-switch/switch_file.hpp"

namespace roci {

Result<SwitchFile> read_switch_file(const std::string& path) {
  SwitchFile file;
  file.eal.telemetry = true;  // what a switch does is meant to be watched
  const auto read_port = [&](ConfigNode& item, size_t) -> Status {
    EthdevConfig& device = file.devices.emplace_back();
    device.promiscuous = true;  // a bridge takes frames for any MAC
    return read_device(item, device);
  };
  const auto read_section = [&](ConfigNode& node) -> Status {
    ROCI_TRY(read_idle(node, file.idle));
    ROCI_TRY(node.optional("core", file.core, [](std::string_view text) {
      return parse_integer(text, 0, 4095).map([](int64_t core) {
        return std::optional{static_cast<unsigned>(core)};
      });
    }));
    return read_switch(node, file.sw, read_port);
  };
  const Status status = read_config(path, [&](ConfigNode& root) -> Status {
    if (Status eal = read_eal(root, file.eal); !eal) return eal;
    return root.section("switch", Need::kRequired, read_section);
  });
  if (!status) return fail(status.error());
  return file;
}

}  // namespace roci
