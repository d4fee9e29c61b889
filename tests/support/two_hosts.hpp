// Two hosts on one simulated link in virtual time, with a queue pair each, connected to each other; every RoCEv2
// packet that is sent is written down as a line, and a script says what happens to which. What a packet script needs.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/virtual_runner.hpp"
#include "device/host.hpp"
#include "port/borrowed_port.hpp"
#include "port/sim_link.hpp"
#include "roci/device.hpp"
#include "support/connect.hpp"
#include "support/must.hpp"
#include "transport/reliable_queue_pair.hpp"
#include "wire/packet.hpp"

namespace roci::test {

using Lines = std::vector<std::string>;  // what was seen, a line each

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
  BitsPerSec rate = 100_Gbps;  // of the link, both directions
  Bytes queue = 1_MiB;         // in front of it
  uint32_t frames = 4096;      // buffers of the link
  uint32_t packets_per_ack = 64;
  bool check_before_placing = false;
  ExtensionConfig extensions_a{.mode = ExtensionMode::kOff};
  ExtensionConfig extensions_b{.mode = ExtensionMode::kOff};
  std::array<uint32_t, 2> workers{1, 1};  // of a and b
  std::array<uint16_t, 2> queues{1, 1};   // of their ports
  bool poll_workers_apart = false;        // each is a poller of its own
  bool seeded = true;                     // else queue pair numbers and keys come from the operating system
  uint32_t max_qp = 1U << 23;
  uint32_t max_mr = 1U << 23;
};

// One host: its device and one of everything on it.
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
  // All completions so far, oldest first.
  std::vector<ibv_wc> completions();
  // Posting one request; the return code is the verbs'.
  int post(ibv_wr_opcode opcode, uint64_t wr_id, size_t offset, size_t length, uint64_t remote = 0,
           uint32_t rkey = 0, unsigned flags = 0, uint32_t immediate = 0);
  int atomic(ibv_wr_opcode opcode, uint64_t wr_id, size_t offset, uint64_t remote, uint32_t rkey,
             uint64_t compare_add, uint64_t swap = 0);
  int receive(uint64_t wr_id, size_t offset, size_t length);
};

class TwoHosts {
  // The ports outlive the devices on them.
  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<SimLink> link_;

 public:
  explicit TwoHosts(const TwoHostsOptions& options = {});
  ~TwoHosts();

  // To RTS on both sides, and the neighbours known, with an empty packet log.
  void connect();

  Side a, b;
  // "> RC_WRITE_FIRST 0" : direction (> is a to b), opcode, PSN less the direction's first PSN. An acknowledgement
  // has the first PSN of the other direction taken off and its syndrome behind: "< RC_ACK 3 ack", "nak 0", "rnr".
  // A packet the script dropped has " lost" behind it.
  Lines wire;
  // Asked for each packet with its line as above; true loses it.
  std::function<bool(const std::string& line)> lose;

  // Shown each RoCEv2 frame that is sent, from the first on; what it says is done with the frame, beside the loss.
  std::function<SimVerdict(const Packet& packet, char direction)> watch;

  // Until nothing is left to happen, or the limit (of virtual time from now on).
  void run(Nanos limit = 10s);
  // What a asks of b's memory at `remote`; the return code is the verbs'.
  int write(uint64_t wr_id, size_t offset, size_t length, size_t remote = 0, unsigned flags = 0);
  int read(uint64_t wr_id, size_t offset, size_t length, size_t remote = 0, unsigned flags = 0);
  [[nodiscard]] Nanos now() const { return runner_.now(); }
  SimLink& link() { return *link_; }
  VirtualRunner& runner() { return runner_; }
  // The insides of the side's queue pair.
  static ReliableQueuePair& core(const Side& side);
  // Gives the queue pair a turn although nothing was posted: it then takes over what has become known of its peer.
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
