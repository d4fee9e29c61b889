// Fuzzed host with queue pairs, memory and windows. Application and peers may do anything; the class verifies the
// invariants.
//
// LiveKind::kServices and kControlled: queue pairs of all services except XRC.
//
//   slot 0  RC, the first peer       slot 4  RC on the shared receive queue, the second peer
//        1  RC, the second peer           5  UD on the shared receive queue, in the multicast group
//        2  UC, the first peer            6  RC of another protection domain, permits only READs
//        3  UD, in the multicast group    7  RC over IPv6
//
// LiveKind::kXrc: XRC and one RC queue pair. A message selects one of four XRC shared receive queues.
//
//   slot 0  initiator, the first peer                 slot 4  RC on the shared receive queue, the second peer
//        1  initiator, the second peer                     5  initiator over IPv6
//        2  target of domain 0, the first peer             6  target of domain 1, permits only READs
//        3  target of domain 0, the second peer            7  target of domain 0 over IPv6
//
//   XRC queue 0  domain 0                              XRC queue 2  domain 1
//             1  domain 0, completion queue 1                   3  domain 1, completion queue 1, another
//                                                                  protection domain
//
// The first peer is 10.0.0.2, the second 10.0.0.3, the third fd00::2.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <set>
#include <span>

#include "fuzz/fuzz_target.hpp"
#include "fuzz/host_program.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"
#include "transport/xrc/xrc_initiator.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"
#include "wire/mad/capability_mad.hpp"

namespace roci::test {

enum class LiveKind : uint8_t {
  kServices,
  kControlled,  // the queue pairs have congestion control, as the setup specifies
  kXrc,
};

class LiveHost {
 public:
  static constexpr size_t kSlots = 8;
  static constexpr size_t kPeers = 3;
  static constexpr size_t kXrcDomains = 2;
  static constexpr size_t kXrcQueues = 4;
  static constexpr uint16_t kCnmPort = 4999;
  static constexpr SipKey kCnmKey{7};

  static constexpr uint16_t kTelemetryPort = 4998;

  LiveHost(const Setup& setup, LiveKind kind);
  ~LiveHost();
  LiveHost(const LiveHost&) = delete;
  LiveHost& operator=(const LiveHost&) = delete;

  void step(const Step& step);
  // After the last step: verifies that all posted requests complete and all buffers are returned.
  void finish();

 private:
  // Of another protection domain.
  static constexpr size_t kForeignSlot = 6, kForeignQueue = 3;
  // Values of Step::key, see opened_by().
  static constexpr uint8_t kKeys = 9, kForeignKey = 2;
  // Memory layout: parts with guard bytes between them.
  static constexpr size_t kGuard = 1024;
  static constexpr size_t kMain = 16384, kReadOnly = 1024, kForeign = 1024;
  static constexpr size_t kMainAt = kGuard, kReadOnlyAt = kMainAt + kMain + kGuard,
                          kForeignAt = kReadOnlyAt + kReadOnly + kGuard,
                          kMemory = kForeignAt + kForeign + kGuard;

  struct Slot {
    ibv_qp_type type = IBV_QPT_RC;
    size_t peer = 0;
    bool shared = false;  // uses the shared receive queue
    uint32_t remote_qp = 0;
    std::unique_ptr<QueuePair> qp;
    std::deque<uint64_t> sends, receives;  // without a completion so far
    uint64_t signed_packets = 0;
    ibv_qp_state state = IBV_QPS_RESET;  // after the last step
    bool in_group = false;
    uint32_t domain = 0;  // of an XRC target: LiveDomain::number
  };
  struct LiveDomain {
    std::unique_ptr<XrcDomain> domain;
    uint32_t number = 0;  // of domains opened so far
  };
  struct XrcQueue {
    std::unique_ptr<SharedReceiveQueue> srq;  // null after it was destroyed
    uint32_t domain = 0;                      // LiveDomain::number
    CompletionQueue* cq = nullptr;
    std::set<uint64_t> receives;               // without a completion so far
    std::array<uint64_t, kSlots> completed{};  // by each slot, the last one
  };
  struct Peer {
    MacAddress mac;
    IpAddress address;
    std::optional<CapabilityMessage> asked;  // last capability request of the host
    bool has_answered = false;               // answered with extensions
  };
  // Key that a step selects, and the address of its memory.
  struct Opened {
    uint32_t key;
    uint64_t address;
  };

  void make_device();
  void make_slot(size_t index);
  void connect(Slot& slot);
  void register_main();
  void bind_windows();
  [[nodiscard]] QueuePairCore& core(const Slot& slot) const;
  // Null for a queue pair that sends no reliable requests.
  [[nodiscard]] const Requester* requester(const Slot& slot) const;
  [[nodiscard]] bool has_main() const { return side_.region != nullptr; }

  // live_packets.cpp
  [[nodiscard]] Packet make(const Step& step, const Slot& slot);
  [[nodiscard]] ExtensionBlock block_of(const Step& step, const Slot& slot, Psn near) const;
  [[nodiscard]] Opened opened_by(const Step& step) const;
  void put_packet(const Step& step);
  void put_mad(const Step& step);
  void put_raw(const Step& step);
  void put_neighbor(const Step& step);
  void put_cnm(const Step& step);
  void put(ByteVector frame, const Step& step);
  [[nodiscard]] CapabilityOffer offer(uint8_t choice) const;
  [[nodiscard]] Packet mad(size_t peer, const CapabilityMessage& message) const;
  void answer(size_t peer, uint8_t choice);
  void refuse(size_t peer);

  // live_control.cpp
  void configure_control(DeviceConfig& config) const;
  void choose_control(size_t index);
  void aim(ExtensionBlock& block, const Step& step, const Slot& slot) const;
  void aim(Packet& packet, const Step& step, const Slot& slot) const;
  void check_control() const;

  // live_xrc.cpp
  void make_xrc_queues();
  void open_domain(size_t index);
  void make_xrc_queue(size_t index);
  void drop_xrc_queue(size_t index);
  void make_target(Slot& slot, ibv_qp_init_attr& init);
  void call_xrc(const Step& step);
  void close_domain(size_t index);
  void replace_domain(size_t index, bool targets_first);
  // SRQ number that a step selects for a packet or for a request.
  [[nodiscard]] uint32_t xrc_number_of(const Step& step) const;
  [[nodiscard]] const OpcodeInfo& opcode_of(const Step& step, const Slot& slot) const;
  [[nodiscard]] bool take_xrc_completion(const Slot& slot, const ibv_wc& wc, const CompletionQueue& cq);
  void forget_xrc_receive(const Slot& slot);
  void check_sent_xrc(const FrameView& view) const;
  void check_xrc_queues();

  void post(const Step& step);
  void receive(const Step& step);
  void control(const Step& step);
  void change(Slot& slot, const Step& step);
  void set_state(Slot& slot, ibv_qp_state state);
  void forget_work(Slot& slot);

  void work();
  void wait(Nanos span);
  void poll();
  void poll(CompletionQueue& cq);
  void take_completion(const ibv_wc& wc, const CompletionQueue& cq);
  // A completion may have been lost.
  [[nodiscard]] bool may_have_lost() const { return overflowed_ || (setup_.habits & Setup::kSmallCq) != 0; }
  [[nodiscard]] std::unique_ptr<CompletionQueue> make_cq() const;
  void check_states();
  void check_memory() const;
  void check_sent();

  Setup setup_;
  LiveKind kind_;
  std::shared_ptr<MbufPool> pool_;
  ScriptPort* port_ = nullptr;  // owned by the device
  Nanos now_{1'000'000};
  Side side_;  // its queue pair is not used
  // Expected contents of the memory outside of the main part; of all of it while the main part is not registered.
  std::vector<uint8_t> golden_;
  std::unique_ptr<ProtectionDomain> foreign_pd_;
  std::unique_ptr<MemoryRegion> read_only_, foreign_;
  std::unique_ptr<MemoryWindow> window_one_, window_two_;
  uint32_t stale_key_ = 0, window_two_key_ = 0;
  std::unique_ptr<SharedReceiveQueue> srq_;
  std::set<uint64_t> shared_receives_;
  std::unique_ptr<CompletionQueue> xrc_cq_;
  std::array<LiveDomain, kXrcDomains> domains_;
  std::array<XrcQueue, kXrcQueues> xrc_queues_;
  uint32_t domains_opened_ = 0, stale_xrc_number_ = 0;
  std::array<std::unique_ptr<AddressHandle>, 4> handles_;  // of the peers and the group
  std::array<Peer, kPeers> peers_;
  std::array<Slot, kSlots> slots_;
  uint64_t next_id_ = 1;
  bool overflowed_ = false;
  bool held_back_ = false;
  ByteVector last_;  // last received frame
  ByteVector data_;  // last data packet that the host sent
};

// Executes the program of a fuzz input on a new host, step by step. The body of the fuzz targets host, host_control and
// xrc.
void run_host_program(std::span<const uint8_t> input, LiveKind kind);

}  // namespace roci::test
