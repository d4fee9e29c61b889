// A host with one queue pair that has the parameters of a recorded one: address, MAC, QPN, first PSN, path MTU,
// regions with the recorded keys and addresses. The test passes frames in and takes sent frames out.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/api/events.hpp"
#include "engine/worker/flow_control.hpp"
#include "engine/worker/worker.hpp"
#include "replay/recording.hpp"

namespace roci::test {

// A port whose peer is the test.
class HandPort final : public Port {
 public:
  HandPort(const MacAddress& mac, uint16_t mtu, std::shared_ptr<MbufPool> pool);
  ~HandPort() override;
  void put(const ByteVector& frame);
  struct Sent {
    Nanos at;
    ByteVector bytes;
  };
  std::vector<Sent> take() { return std::exchange(sent_, {}); }

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
  [[nodiscard]] Nanos next_arrival() const override { return arriving_.empty() ? kNever : Nanos{0}; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] std::string_view name() const override { return "hand"; }
  [[nodiscard]] PortStats stats() const override { return stats_; }

 private:
  MacAddress mac_;
  PortCapabilities capabilities_;
  PortStats stats_;
  std::shared_ptr<MbufPool> pool_;
  std::deque<rte_mbuf*> arriving_;
  std::vector<Sent> sent_;
};

// A region with its virtual address.
struct Region {
  uint64_t va = 0;
  ByteVector bytes;
};
using Regions = std::map<uint32_t, Region>;  // by R_Key

class ReplayHost {
 public:
  static constexpr int kEverything =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  static constexpr uint8_t kReads = 16;  // max_dest_rd_atomic
  struct Config {
    ibv_qp_type type = IBV_QPT_RC;
    MacAddress mac, peer_mac;
    IpAddress address, peer;
    Qpn qpn, peer_qpn;
    Psn first_psn;                     // of the received requests
    std::optional<Psn> first_own_psn;  // of the sent requests; without it the queue pair only receives
    QKey qkey;                         // UD only
    uint32_t path_mtu = 1024;
    uint8_t traffic_class = 0;
    uint8_t min_rnr_timer = 0;
    uint8_t timeout = 0;  // encoded
    uint8_t retry_count = 0;
    uint8_t rnr_retry = 0;
    uint16_t udp_source_port = 0;  // 0: derived from the two QPNs
    Regions regions;
    bool had_turn = true;             // the queue pair has the peer's MAC before the first packet
    int access = kEverything;         // access flags of the queue pair
    int region_access = kEverything;  // access flags of the regions

    // The receiver or the sender of this packet: both addresses and MACs.
    static Config receiver_of(const Packet& packet);
    static Config sender_of(const Packet& packet);
  };
  explicit ReplayHost(const Config& config);
  ~ReplayHost();

  // Passes the frames to the host at once and polls it until it is idle. Returns the sent packets.
  std::vector<Packet> feed(std::span<const ByteVector> frames);
  // Posts a receive buffer of this size, filled with kUntouched.
  void post_receive(uint32_t length);
  // One send request with a buffer of its own. UD sends use `qkey`; opcodes with a remote address use `remote` and
  // `rkey`.
  struct Message {
    ibv_wr_opcode opcode = IBV_WR_SEND;
    ByteVector bytes{};      // READs and atomics: initial contents of the buffer
    uint32_t immediate = 0;  // host byte order
    uint64_t remote = 0;
    uint32_t rkey = 0;
    QKey qkey{};
    bool solicited = false;
    uint64_t compare_add = 0;
    uint64_t swap = 0;
  };
  // Sends one message and polls the host. Returns the frames.
  std::vector<ByteVector> send(const Message& message);

  // The same in steps, at times that the caller chooses and that must not decrease. All effects of a frame happen at
  // the time of its arrival.
  size_t post(const Message& message);  // returns its wr_id, for buffer()
  void give(const ByteVector& frame) { port_.put(frame); }
  void run_until(Nanos time);  // polls at each deadline and at `time`
  std::vector<HandPort::Sent> take() { return port_.take(); }
  [[nodiscard]] const ByteVector& buffer(size_t wr_id) const { return buffers_.at(wr_id).second; }
  std::vector<ibv_wc> completions();

  // Contents of the used receive buffers, followed by the immediate data if present.
  std::vector<ByteVector> received();
  void write(MemoryKey rkey, uint64_t va, const ByteVector& bytes) {
    Region& region = regions_.at(rkey.value());
    std::ranges::copy(bytes, region.bytes.begin() + static_cast<std::ptrdiff_t>(va - region.va));
  }
  [[nodiscard]] const Regions& regions() const { return regions_; }
  [[nodiscard]] ibv_qp_state state() const { return qp_->core.state(); }
  [[nodiscard]] Counters& counters() { return worker_->counters(); }

  static constexpr uint8_t kUntouched = 0xa5;

 private:
  void work();
  void work_now();

  std::shared_ptr<MbufPool> pool_;
  HandPort port_;
  IdSource ids_{1};
  MemoryTable memory_{ids_};
  std::shared_ptr<EventQueue> events_ = std::move(*EventQueue::create());
  MulticastTable groups_;
  SteeringTable steering_;
  CompletionRing completions_{1024};
  Regions regions_;
  std::deque<std::pair<MemoryKey, ByteVector>> buffers_;
  Handoff hand_over_{1, 1};
  FlowCounts flows_{1};
  ExtensionConfig extensions_{.mode = ExtensionMode::kOff};
  HostTelemetryConfig telemetry_;  // disabled
  FlowControl flow_control_{{}, {}, {}};
  CongestionConfig congestion_;
  CongestionFlows congestion_flows_{false, 0, 0};
  CongestionControlConfig control_;  // its notification point sends CNPs
  std::vector<std::unique_ptr<ControlCore>> control_cores_;
  SparseArena arena_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<AttachedQueuePair> qp_;
  std::unique_ptr<AttachedAddress> to_peer_;
  Nanos now_{0};
};

}  // namespace roci::test
