// A port over a device of DPDK: a physical NIC, or a virtual one (memif to another process, af_packet or tap
// to the kernel, rings inside this process). What a device cannot do, this port does in software and says so
// once at info level when it is opened.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "port/eal.hpp"
#include "port/memif_gate.hpp"
#include "port/port.hpp"

struct rte_ring;

namespace roci {

struct EthdevConfig {
  // DPDK's name of the device with its options: "net_memif0,role=client,id=0,socket=/run/x.sock",
  // "net_af_packet0,iface=veth0", "net_tap0,iface=roci0", "net_null0", or a PCI address "0000:01:00.0".
  // Buffer and frame sizes are chosen to fit the MTU unless given.
  std::string device;
  uint16_t mtu = 1500;
  uint16_t queues = 1;             // wanted; a device may have others, and Port::queues() tells
  uint16_t rx_descriptors = 1024;  // of each queue
  uint16_t tx_descriptors = 1024;
  bool promiscuous = false;          // take frames for any MAC; a switch port wants it
  Nanos connect_timeout = 5s;        // how long a memif client waits for its server to listen
  std::optional<MacAddress> mac{};   // instead of the device's own
  std::shared_ptr<MbufPool> pool{};  // received frames come from it

  friend bool operator==(const EthdevConfig&, const EthdevConfig&) = default;
};

class EthdevPort final : public Port {
 public:
  // Probes, configures and starts the device; start_eal() comes before. Any thread; the result is used by
  // one.
  static Result<std::unique_ptr<EthdevPort>> open(const EthdevConfig& config);
  // Stops and removes the device. Frames it has accepted and not sent yet are lost.
  ~EthdevPort() override;

  // The bytes a buffer of the pool must hold so that this device can receive at this MTU. A memif port takes
  // smaller ones too and then delivers chains.
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

  // A memif port is up while its other side is connected; tx_burst() takes nothing before.
  [[nodiscard]] bool link_up() const override;
  // Sleeps until the link is up; an error after `timeout`.
  [[nodiscard]] Status wait_for_link(Nanos timeout);
  // Stops and starts the device, by the port's own thread: a memif client whose server went away connects
  // again.
  [[nodiscard]] Status restart();
  // Frames the device itself lost on reception: no buffer, no descriptor, broken.
  [[nodiscard]] uint64_t device_rx_missed() const;

 private:
  friend Result<std::pair<std::unique_ptr<EthdevPort>, std::unique_ptr<EthdevPort>>> make_ring_pair(
      const std::string& name, const std::shared_ptr<MbufPool>& pool, uint16_t mtu, uint32_t ring_size,
      uint16_t queues);

  // The rings shared by the two ports of a pair; frees what is left in them.
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
    uint16_t tx_carefully(std::span<rte_mbuf*> frames);
    uint16_t send(std::span<rte_mbuf*> frames, uint64_t bytes);
    // Of the device; nothing while the interrupt thread has it.
    uint16_t receive_from_device(rte_mbuf** out, uint16_t room);
    uint16_t send_by_device(rte_mbuf** frames, uint16_t count);

    friend class EthdevPort;
    const EthdevPort& port_;
    const uint16_t index_;
    PortStats stats_;
    std::unique_ptr<MemifGate::Visitor> visitor_;  // of a memif device
  };

  EthdevPort(std::string name, const EthdevConfig& config);
  Status start(const EthdevConfig& config);
  Status start_device();
  Status configure_queues(const EthdevConfig& config);
  Status set_up_queues(const EthdevConfig& config);
  Status set_mtu(const EthdevConfig& config);
  void set_addresses(const EthdevConfig& config);
  [[nodiscard]] bool needs_copy(const rte_mbuf& frame) const;
  [[nodiscard]] bool is_unsendable(const rte_mbuf& frame) const;
  [[nodiscard]] rte_mbuf* copy_to_one_segment(rte_mbuf* chain) const;

  std::string name_;
  std::shared_ptr<MbufPool> pool_;
  std::shared_ptr<Rings> rings_;
  Nanos connect_timeout_;
  const bool is_memif_client_;      // it calls the other side, and not the other way round
  uint16_t pool_room_;              // bytes that one buffer of the pool holds
  uint16_t id_ = RTE_MAX_ETHPORTS;  // DPDK's; this value is none
  MacAddress mac_;
  PortCapabilities capabilities_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

using EthdevPortPair = std::pair<std::unique_ptr<EthdevPort>, std::unique_ptr<EthdevPort>>;

// Two ports of this process joined back to back: what one sends the other receives, without a copy, so a
// received chain may point into the sender's memory. Each direction holds `ring_size` frames. Each port of
// the pair may be used by its own thread. With several queues, what one port sends on a queue arrives on the same queue
// of the other.
Result<EthdevPortPair> make_ring_pair(const std::string& name, const std::shared_ptr<MbufPool>& pool,
                                      uint16_t mtu, uint32_t ring_size, uint16_t queues = 1);

}  // namespace roci
