// Two hosts on one simulated link in virtual time, with a connected queue pair on each. Every RoCEv2 packet is
// recorded as a line, and the test decides about losses and faults. Base of the packet scripts.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time/virtual_runner.hpp"
#include "device/host/host.hpp"
#include "port/sim/borrowed_port.hpp"
#include "port/sim/sim_link.hpp"
#include "roci/device.hpp"
#include "support/hosts/connect.hpp"
#include "support/must.hpp"
#include "transport/rc/reliable_queue_pair.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {

using Lines = std::vector<std::string>;  // recorded packets, one line each

struct TwoHostsOptions {
  ibv_mtu path_mtu = IBV_MTU_1024;
  bool ipv6 = false;
  uint32_t psn_a = 0x1000;  // first PSN of a's requests
  uint32_t psn_b = 0x2000;
  uint8_t timeout = 10;  // 4.2 ms
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;  // 640 us
  uint8_t reads = 4;
  int access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  int cq_entries = 256;
  ibv_qp_cap cap{
      .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};
  bool signal_all = true;
  size_t memory = 1 << 20;
  uint32_t window_bytes = 512 * 1024;
  std::string congestion_control = "window";
  Nanos delay = 1us;
  BitsPerSec rate = 100_Gbps;  // of the link, in both directions
  Bytes queue = 1_MiB;         // of each direction
  uint32_t frames = 4096;      // buffers of the link
  uint32_t packets_per_ack = 64;
  bool check_before_placing = false;
  ExtensionConfig extensions_a{.mode = ExtensionMode::kOff};
  ExtensionConfig extensions_b{.mode = ExtensionMode::kOff};
  std::array<uint32_t, 2> workers{1, 1};  // of a and b
  std::array<uint16_t, 2> queues{1, 1};   // of their ports
  bool poll_workers_apart = false;        // each worker is a separate poller
  bool seeded = true;  // if false, queue pair numbers and keys come from the operating system
  uint32_t max_qp = 1U << 23;
  uint32_t max_mr = 1U << 23;
  uint32_t max_pd = 1U << 16;
  uint32_t max_cq = 1U << 23;
  uint32_t max_srq = 1U << 23;
  uint32_t max_ah = 1U << 23;
};

// A host: its device and one object of each kind.
struct Side {
  std::unique_ptr<Device> device;
  std::unique_ptr<ProtectionDomain> pd;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;
  std::vector<uint8_t> memory;
  std::unique_ptr<MemoryRegion> region;

  [[nodiscard]] ibv_sge sge(size_t offset, size_t length) const {
    return {reinterpret_cast<uint64_t>(memory.data()) + offset, static_cast<uint32_t>(length),
            region->lkey()};
  }
  [[nodiscard]] uint64_t address(size_t offset) const {
    return reinterpret_cast<uint64_t>(memory.data()) + offset;
  }
  uint64_t counter(const std::string& name) const;
  // All completions since the last call, oldest first.
  std::vector<ibv_wc> completions();
  // These post one request and return the verbs return code.
  int post(ibv_wr_opcode opcode, uint64_t wr_id, size_t offset, size_t length, uint64_t remote = 0,
           uint32_t rkey = 0, unsigned flags = 0, uint32_t immediate = 0);
  int atomic(ibv_wr_opcode opcode, uint64_t wr_id, size_t offset, uint64_t remote, uint32_t rkey,
             uint64_t compare_add, uint64_t swap = 0);
  int receive(uint64_t wr_id, size_t offset, size_t length);
};

class TwoHosts {
  // The ports must outlive the devices.
  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<SimLink> link_;

 public:
  explicit TwoHosts(const TwoHostsOptions& options = {});
  ~TwoHosts();

  // Moves both queue pairs to RTS, resolves the addresses and clears the packet log.
  void connect();

  Side a, b;
  // Format "> RC_WRITE_FIRST 0": direction (> is a to b), opcode, PSN relative to the direction's first PSN. The PSN
  // of an acknowledgment is relative to the other direction's first PSN, and its syndrome follows: "< RC_ACK 3 ack",
  // "nak 0", "rnr". " lost" follows if the test dropped the packet.
  Lines wire;
  // Called for each packet with its line. Drops the packet if it returns true.
  std::function<bool(const std::string& line)> lose;

  // Called for each RoCEv2 frame from the first on. The verdict applies in addition to `lose`.
  std::function<SimVerdict(const Packet& packet, char direction)> watch;

  // Runs until no event is left, or for `limit` of virtual time.
  void run(Nanos limit = 10s);
  // A request of a for offset `remote` of b's memory. Returns the verbs return code.
  int write(uint64_t wr_id, size_t offset, size_t length, size_t remote = 0, unsigned flags = 0);
  int read(uint64_t wr_id, size_t offset, size_t length, size_t remote = 0, unsigned flags = 0);
  [[nodiscard]] Nanos now() const { return runner_.now(); }
  SimLink& link() { return *link_; }
  VirtualRunner& runner() { return runner_; }
  // The internal queue pair object.
  static ReliableQueuePair& core(const Side& side);
  // Schedules the queue pair although nothing was posted, so that it adopts new information about its peer.
  static void wake(const Side& side, Nanos now = Nanos{0});
  void make_qp(Side& side);
  void to_rts(Side& side, const Side& peer, uint32_t rq_psn, uint32_t sq_psn);

 private:
  void make_side(Side& side, Port& port, const std::string& address, uint64_t seed);
  SimVerdict on_frame(const rte_mbuf& frame, char direction);

  TwoHostsOptions options_;
  VirtualRunner runner_;
  bool recording_ = false;
};

}  // namespace roci::test
