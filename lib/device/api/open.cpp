#include "roci/open.hpp"

#include "device/config/start_device.hpp"
#include "port/dpdk/eal.hpp"

namespace roci {
namespace {

struct HostFile {
  EalConfig eal;
  DeviceFile host;
};

ConfigNode::Reader reader_of(HostFile& file) {
  return [&file](ConfigNode& root) -> Status {
    ROCI_TRY(read_eal(root, file.eal));
    return read_device_section(root, file.host);
  };
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const std::string& config_file) {
  HostFile file;
  ROCI_TRY(read_config(config_file, reader_of(file)));
  return start_device(file.eal, file.host);
}

Result<std::unique_ptr<Device>> open_device_from_text(const std::string& config) {
  HostFile file;
  ROCI_TRY(parse_config(config, "the configuration", reader_of(file)));
  return start_device(file.eal, file.host);
}

}  // namespace roci
