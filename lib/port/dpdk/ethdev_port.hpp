// A port on a DPDK device: a physical NIC, or a virtual device (memif to another process, af_packet or tap to the
// kernel, rings inside this process). Functions that a device lacks are implemented in software and logged once at info
// level when the port is opened.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/dpdk/memif_gate.hpp"
#include "port/port.hpp"

struct rte_ring;

namespace roci {

struct EthdevConfig {
  // DPDK's device name with options: "net_memif0,role=client,id=0,socket=/run/x.sock",
  // "net_af_packet0,iface=veth0", "net_tap0,iface=roci0", "net_null0", or a PCI address "0000:01:00.0".
  // Buffer and frame sizes that are not specified are derived from the MTU.
  std::string device;
  uint16_t mtu = 1500;
  uint16_t queues = 1;             // requested; Port::queues() returns the actual number
  uint16_t rx_descriptors = 1024;  // per queue
  uint16_t tx_descriptors = 1024;
  bool promiscuous = false;         // receive frames for any MAC address; needed by switch ports
  Nanos connect_timeout = 5s;       // how long a memif client waits for its server to listen
  std::optional<MacAddress> mac{};  // replaces the device's address
  // Used by drivers that otherwise create a random address at each start (memif). With a random one, peers would send
  // to the address of an earlier process with this IP address until they have verified that it has exited (1 s).
  std::optional<MacAddress> default_mac{};
  std::shared_ptr<MbufPool> pool{};  // allocates the buffers of received frames

  friend bool operator==(const EthdevConfig&, const EthdevConfig&) = default;
};

class EthdevPort final : public Port {
 public:
  // Probes, configures and starts the device; requires start_eal(). Any thread; the port is then used by one thread.
  static Result<std::unique_ptr<EthdevPort>> open(const EthdevConfig& config);
  // Stops and removes the device. Frames that it has accepted but not sent are lost.
  ~EthdevPort() override;

  // Minimum buffer size of the pool, in bytes, for this device to receive at this MTU. A memif port also accepts
  // smaller buffers and then delivers chains.
  static uint16_t data_room_for(const std::string& device, uint16_t mtu);

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override { return queues_[0]->rx_burst(out, now); }
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override {
    return queues_[0]->tx_burst(frames, now);
  }
  [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
  [[nodiscard]] std::optional<uint32_t> waiting() const override { return queues_[0]->waiting(); }
  [[nodiscard]] uint16_t queues() const override { return static_cast<uint16_t>(queues_.size()); }
  [[nodiscard]] PortQueue& queue(uint16_t index) override { return *queues_[index]; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] PortStats stats() const override;

  // A memif port is up while its peer is connected; until then tx_burst() accepts no frames.
  [[nodiscard]] bool link_up() const override;
  // Sleeps until the link is up; an error after `timeout`.
  [[nodiscard]] Status wait_for_link(Nanos timeout);
  // Stops and starts the device, so that a memif client whose server
  // has exited connects again. Called by the port's thread.
  [[nodiscard]] Status restart();
  // Frames that the device lost on reception: no buffer, no descriptor, or an error.
  [[nodiscard]] uint64_t device_rx_missed() const;

 private:
  friend Result<std::pair<std::unique_ptr<EthdevPort>, std::unique_ptr<EthdevPort>>> make_ring_pair(
      const std::string& name, const std::shared_ptr<MbufPool>& pool, uint16_t mtu, uint32_t ring_size,
      uint16_t queues);

  // The rings shared by the two ports of a pair. The destructor frees the frames in them.
  class Rings;

  class alignas(64) Queue final : public PortQueue {
   public:
    Queue(const EthdevPort& port, uint16_t index) : port_(port), index_(index) {}
    uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
    uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
    [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
    [[nodiscard]] std::optional<uint32_t> waiting() const override;
    [[nodiscard]] const PortStats& stats() const { return stats_; }

   private:
    uint16_t tx_checked(std::span<rte_mbuf*> frames);
    uint16_t send(std::span<rte_mbuf*> frames, uint64_t bytes);
    // Pass a burst to the device. Return 0 while the interrupt thread uses the device.
    uint16_t receive_from_device(rte_mbuf** out, uint16_t capacity);
    uint16_t send_by_device(rte_mbuf** frames, uint16_t count);

    friend class EthdevPort;
    const EthdevPort& port_;
    const uint16_t index_;
    PortStats stats_;
    std::unique_ptr<MemifGate::QueueUser> gate_user_;  // only for memif devices
  };

  EthdevPort(std::string name, const EthdevConfig& config);
  Status start(const EthdevConfig& config);
  Status start_device();
  Status configure_queues(const EthdevConfig& config);
  Status set_up_queues(const EthdevConfig& config);
  Status set_mtu(const EthdevConfig& config);
  Status set_addresses(const EthdevConfig& config);
  [[nodiscard]] bool needs_copy(const rte_mbuf& frame) const;
  [[nodiscard]] bool is_unsendable(const rte_mbuf& frame) const;
  [[nodiscard]] rte_mbuf* copy_to_one_segment(rte_mbuf* chain) const;

  std::string name_;
  std::shared_ptr<MbufPool> pool_;
  std::shared_ptr<Rings> rings_;
  Nanos connect_timeout_;
  const bool is_memif_client_;      // true: this end connects; false: the peer does
  uint16_t pool_buffer_bytes_;      // data bytes per buffer of the pool
  uint16_t id_ = RTE_MAX_ETHPORTS;  // DPDK's port number; RTE_MAX_ETHPORTS: no device
  MacAddress mac_;
  PortCapabilities capabilities_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

using EthdevPortPair = std::pair<std::unique_ptr<EthdevPort>, std::unique_ptr<EthdevPort>>;

// Two ports of this process, connected back to back. Each receives the frames that the other sends, without a copy, so
// a received chain may point into the sender's memory. Each direction holds `ring_size` frames. Each port may be used
// by its own thread. With several queues, frames sent on a queue arrive on the same queue of the other port.
Result<EthdevPortPair> make_ring_pair(const std::string& name, const std::shared_ptr<MbufPool>& pool,
                                      uint16_t mtu, uint32_t ring_size, uint16_t queues = 1);

}  // namespace roci
