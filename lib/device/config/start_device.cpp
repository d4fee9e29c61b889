#include "device/config/start_device.hpp"

#include <thread>
#include <utility>

#include "device/api/create_device.hpp"
#include "port/dpdk/eal.hpp"
#include "port/external_port.hpp"

namespace roci {
namespace {

constexpr uint32_t kSpareFrames = 1024;  // received frames held by the device, and per-thread caches
// Further frames of an XDP socket: 2048 in its fill ring, and copies of as many frames to be sent.
constexpr uint32_t kXdpFrames = 4096;

// Waits for the link of a port of the program, as EthdevPort::wait_for_link().
Status wait_for_link(const Port& port, Nanos timeout) {
  constexpr Nanos kStep = 5ms;
  for (Nanos waited{0}; !port.link_up(); waited += kStep) {
    if (waited >= timeout) {
      return fail("port " + std::string(port.name()) + " has no link after " +
                      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()) +
                      " ms",
                  ETIMEDOUT);
    }
    std::this_thread::sleep_for(kStep);
  }
  return {};
}

Result<std::unique_ptr<Device>> start_on_external_port(const PortFactory& factory, const EalConfig& eal,
                                                       const DeviceFile& file) {
  ROCI_TRY(start_eal(eal));
  const std::string& name = file.port.device;
  auto pool = MbufPool::create(file.device.name, file.port.rx_descriptors + kSpareFrames,
                               EthdevPort::data_room_for(name, file.port.mtu));
  if (!pool) return fail(pool.error());
  auto port = factory({.device = name, .mtu = file.port.mtu, .buffers = (*pool)->get()});
  if (!port) return fail(port.error().within("port " + name));
  if (*port == nullptr) return fail("port " + name + ": its factory has returned no port");
  if ((*port)->capabilities().mtu != file.port.mtu) {
    return fail("port " + name + ": MTU " + std::to_string((*port)->capabilities().mtu) +
                " is not the configured " + std::to_string(file.port.mtu));
  }
  auto adapted = adapt_port(std::move(*port), name, std::move(*pool));
  if (!adapted) return fail(adapted.error());
  ROCI_TRY(wait_for_link(**adapted, file.port.connect_timeout));
  return create_device(std::move(*adapted), file.device);
}

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
  if (const PortFactory factory = find_port_factory(file.port.device))
    return start_on_external_port(factory, eal, file);
  auto port = start_port(eal, file.port, file.device.name, file.port.connect_timeout);
  if (!port) return fail(port.error());
  return create_device(std::move(*port), file.device);
}

}  // namespace roci
