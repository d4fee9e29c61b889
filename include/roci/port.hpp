// Ports that are not part of Rocinante: a program implements ExternalPort for its own way to transfer Ethernet frames,
// and creates devices on it with Device::create() (roci/device.hpp), or registers a factory for the port names of
// configuration files. Frames are DPDK packet buffers (rte_mbuf).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "roci/result.hpp"

struct rte_mbuf;
struct rte_mempool;

namespace roci {

// Threads: at most one thread at a time calls receive() and transmit(); any thread calls the others. A function of a
// port must not call the device on it or objects of that device: the call would wait for the round of the poll loop
// that has called the function.
class ExternalPort {
 public:
  ExternalPort() = default;
  ExternalPort(const ExternalPort&) = delete;
  ExternalPort& operator=(const ExternalPort&) = delete;
  virtual ~ExternalPort() = default;

  // Stores up to `count` received frames, each in one segment without FCS, and returns their number. The device then
  // owns the frames, and frees them with rte_pktmbuf_free(). Never blocks.
  virtual uint16_t receive(rte_mbuf** frames, uint16_t count) = 0;
  // Sends frames in order, and returns how many of the first were accepted. The port owns accepted frames, and frees
  // them with rte_pktmbuf_free(), at the latest in its destructor; the device offers the others again. The device frees
  // their buffer pool after the port, so a port that passes frames to another device copies them. Never blocks. A frame
  // may have several segments (rte_mbuf.next); no frame exceeds the MTU.
  virtual uint16_t transmit(rte_mbuf** frames, uint16_t count) = 0;

  // Values of a port do not change.
  struct Capabilities {
    // Largest IP packet, 576 to 65,385 bytes. A frame adds 14 bytes and 4 for each of two VLAN tags.
    uint16_t mtu = 1500;
    uint64_t link_rate = 0;  // bit/s; 0: unknown
    // false: the port does not alter frames, so the ICRC field of RoCEv2 packets is 0 and is not validated. Both ends
    // must agree.
    bool needs_icrc = true;
  };
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  [[nodiscard]] virtual std::array<uint8_t, 6> mac() const = 0;
  // Whether the link is up; a change raises IBV_EVENT_PORT_ACTIVE or IBV_EVENT_PORT_ERR. Not called for each packet.
  [[nodiscard]] virtual bool link_up() const { return true; }
};

// Values of a configuration file for a port.
struct PortRequest {
  // As in the file: the registered prefix, a number or name, and arguments, such as "ipc0,path=/x".
  std::string device;
  uint16_t mtu = 0;  // bytes; ports with another MTU are rejected
  // For received frames: a buffer contains a frame of this MTU. Valid as long as the port.
  rte_mempool* buffers = nullptr;
};
using PortFactory = std::function<Result<std::unique_ptr<ExternalPort>>(const PortRequest&)>;

// Registers the factory of ports whose name in a configuration file (`port: {device: NAME}`) starts with `prefix`. An
// error of the factory is the error of open_device(). Fails with EEXIST if this prefix is the start of a registered
// one or the reverse. Fails with EINVAL if it is empty, has other characters than letters, digits and '_', or starts
// with "net_" (DPDK's drivers). Fails with EOPNOTSUPP in the portable build, whose DPDK cannot share packet buffers
// with the program. Registration cannot be reversed. Any thread.
[[nodiscard]] Status register_port(const std::string& prefix, PortFactory factory);

}  // namespace roci
