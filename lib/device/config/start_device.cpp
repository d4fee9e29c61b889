#include "device/config/start_device.hpp"

#include <utility>

namespace roci {
namespace {

constexpr uint32_t kSpareFrames = 1024;  // received frames held by the device, and per-thread caches
// Further frames of an XDP socket: 2048 in its fill ring, and copies of as many frames to be sent.
constexpr uint32_t kXdpFrames = 4096;

}  // namespace

Result<std::unique_ptr<EthdevPort>> start_port(const EalConfig& eal, const EthdevConfig& port,
                                               const std::string& name, Nanos link_timeout) {
  ROCI_TRY(start_eal(eal));
  const uint32_t own = port.device.starts_with("net_af_xdp") ? kXdpFrames : 0;
  auto pool = MbufPool::create(name, port.queues * (port.rx_descriptors + kSpareFrames + own),
                               EthdevPort::data_room_for(port.device, port.mtu));
  if (!pool) return fail(pool.error());
  EthdevConfig with_pool = port;
  with_pool.pool = *pool;
  auto opened = EthdevPort::open(with_pool);
  if (!opened) return fail(opened.error());
  ROCI_TRY((*opened)->wait_for_link(link_timeout));
  return opened;
}

Result<std::unique_ptr<Device>> start_device(const EalConfig& eal, const DeviceFile& file) {
  auto port = start_port(eal, file.port, file.device.name, file.port.connect_timeout);
  if (!port) return fail(port.error());
  return Device::create(std::move(*port), file.device);
}

}  // namespace roci
