// One host with one queue pair that has the numbers of a recorded responder: address, MAC, QPN, first PSN, path MTU,
// regions under the recorded keys and addresses. Frames are put in by hand, what it sends is taken out by hand.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/events.hpp"
#include "engine/flow_control.hpp"
#include "engine/worker.hpp"
#include "replay/recording.hpp"

namespace roci::test {

// A port with a human at the other end.
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

// A region as peers see it.
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
    Psn first_psn;                     // of the requests it receives
    std::optional<Psn> first_own_psn;  // of those it sends; without it the queue pair only receives
    QKey qkey;                         // UD
    uint32_t path_mtu = 1024;
    uint8_t traffic_class = 0;
    uint8_t min_rnr_timer = 0;
    uint8_t timeout = 0;  // code
    uint8_t retry_count = 0;
    uint8_t rnr_retry = 0;
    uint16_t udp_source_port = 0;  // 0: made from the two QPNs
    Regions regions;
    bool had_turn = true;      // before the first packet: the MAC of the peer is known to the queue pair
    int access = kEverything;  // that the queue pair allows
    int region_access = kEverything;  // that the regions allow

    // The end of a recorded connection that this packet came to, or came from: both addresses and MACs.
    static Config receiver_of(const Packet& packet);
    static Config sender_of(const Packet& packet);
  };
  explicit ReplayHost(const Config& config);
  ~ReplayHost();

  // Gives the frames to the host at once and lets it work until it has nothing more to do. Returns what it sent.
  std::vector<Packet> feed(std::span<const ByteVector> frames);
  // A receive buffer of this size, filled with kUntouched.
  void post_receive(uint32_t length);
  // One send request, with a buffer of its own. UD sends go to the peer with `qkey`, all others that need an address to
  // `remote` and `rkey`.
  struct Message {
    ibv_wr_opcode opcode = IBV_WR_SEND;
    ByteVector bytes{};      // of READs and atomics: what the buffer holds before
    uint32_t immediate = 0;  // in host order
    uint64_t remote = 0;
    uint32_t rkey = 0;
    QKey qkey{};
    bool solicited = false;
    uint64_t compare_add = 0;
    uint64_t swap = 0;
  };
  // Sends one message and lets the host work; the frames, to the byte.
  std::vector<ByteVector> send(const Message& message);

  // The same step by step, at times of the caller's choice, which never go back. What comes at an instant has all its
  // consequences at that instant.
  size_t post(const Message& message);  // returns its wr_id, for buffer()
  void give(const ByteVector& frame) { port_.put(frame); }
  void run_until(Nanos time);  // works at each deadline up to then, and then
  std::vector<HandPort::Sent> take() { return port_.take(); }
  [[nodiscard]] const ByteVector& buffer(size_t wr_id) const { return buffers_.at(wr_id).second; }
  std::vector<ibv_wc> completions();

  // What has come into the receive buffers, with the immediate data behind when there is one.
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
  CompletionRing completions_{1024};
  Regions regions_;
  std::deque<std::pair<MemoryKey, ByteVector>> buffers_;
  HandOver hand_over_{1, 1};
  FlowCounts flows_{1};
  ExtensionConfig extensions_{.mode = ExtensionMode::kOff};
  HostTelemetryConfig telemetry_;  // none
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
