// One host whose peer is the test: it receives the packets that the test builds, and the test decodes its packets.
// For packets that no correct peer sends.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/host/host.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/device.hpp"
#include "support/hosts/two_hosts.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {

using Statuses = std::vector<ibv_wc_status>;

// Port that delivers the frames of put(), and records sent frames or rejects them while `blocked`.
class ScriptPort final : public Port {
 public:
  explicit ScriptPort(std::shared_ptr<MbufPool> pool);
  ~ScriptPort() override;

  // As one segment, or as a chain of segments with at most `segment` bytes.
  void put(const ByteVector& frame, size_t segment = SIZE_MAX);
  std::vector<ByteVector> sent;
  bool blocked = false;
  std::function<void()> on_burst;  // called before a burst is accepted

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
  [[nodiscard]] Nanos next_arrival() const override { return waiting_.empty() ? kNever : Nanos{0}; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return MacAddress::local(1); }
  [[nodiscard]] std::string_view name() const override { return "script"; }
  [[nodiscard]] PortStats stats() const override { return stats_; }

 private:
  std::shared_ptr<MbufPool> pool_;
  std::deque<rte_mbuf*> waiting_;
  PortCapabilities capabilities_;
  PortStats stats_;
};

struct LoneHostOptions {
  uint32_t rq_psn = 100;
  uint32_t sq_psn = 5000;
  uint8_t timeout = 10;  // 4.2 ms
  uint8_t retry_count = 3;
  uint8_t rnr_retry = 3;
  uint8_t reads = 2;
  ibv_mtu path_mtu = IBV_MTU_256;
  uint32_t window_bytes = 512 * 1024;
  uint32_t tx_buffers = 512;
  int cq_entries = 64;
  size_t region = 8192;  // bytes, in the middle of the memory
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  bool signal_all = true;
  uint32_t packets_per_ack = 64;
  ExtensionConfig extensions{.mode = ExtensionMode::kOff};
  CongestionConfig congestion{};
  CongestionControlConfig control{};
  uint16_t vlan = 0;
  bool header_only = false;  // frames without the bytes of the payload
  bool static_peer = true;   // the peer's MAC is configured
};

// The host has address 10.0.0.1, its peer 10.0.0.2 and queue pair kPeerQp. The queue pair is in RTS.
class LoneHost {
  std::shared_ptr<MbufPool> pool_;
  ScriptPort* port_ = nullptr;  // owned by the device

 public:
  static constexpr Qpn kPeerQp{0x222222};
  // Bytes before and after the region, which must not change.
  static constexpr size_t kGuard = 4096;

  explicit LoneHost(const LoneHostOptions& options = {});
  ~LoneHost();

  Side side;
  Nanos now{1'000'000};
  [[nodiscard]] const MbufPool& pool() const { return *pool_; }  // for frames that the host receives
  [[nodiscard]] ScriptPort& port() { return *port_; }
  [[nodiscard]] ReliableQueuePair& core();

  void connect();
  void to_init();
  void to_rtr();
  void to_rts();
  void to_bare(ibv_qp_state state);  // RESET or ERR

  // Packets of the peer. `ahead` is relative to the first PSN that the host expects (requests) or sends (responses).
  [[nodiscard]] Packet request(Opcode opcode, int ahead, size_t payload = 0) const;
  [[nodiscard]] Packet write(Opcode opcode, int ahead, size_t offset, size_t payload, uint32_t length) const;
  [[nodiscard]] Packet read(int ahead, size_t offset, uint32_t length) const;
  [[nodiscard]] Packet response(Opcode opcode, int ahead, uint8_t syndrome = 0x1f, size_t payload = 0) const;

  // The host receives the packet and is polled until it has nothing to do at this instant. Returns the sent packets
  // as lines: opcode, PSN relative to the first of its direction, and for an acknowledgment the syndrome in hex.
  Lines receive(Packet packet);
  Lines receive_bytes(const ByteVector& frame, size_t segment = SIZE_MAX);
  Lines work();
  Lines wait(Nanos span);  // polls at each deadline
  // The same as packets. take_packets() does not poll.
  [[nodiscard]] std::vector<Packet> work_for_packets();
  [[nodiscard]] std::vector<Packet> take_packets();

  // Whether the bytes around the region are unchanged.
  [[nodiscard]] bool guards_whole() const;
  [[nodiscard]] Statuses statuses();  // all completions since the last call
  // Local and remote offset kGuard.
  int post(ibv_wr_opcode opcode, uint64_t wr_id, size_t length, unsigned flags = 0);

 private:
  [[nodiscard]] std::string line_of(const Packet& packet) const;
  LoneHostOptions options_;
};

}  // namespace roci::test
