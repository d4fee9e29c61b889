// Fuzzed host with queue pairs of every service, memory and windows. Application and peers may do anything; the class
// verifies the invariants.
//
//   slot 0  RC, the first peer       slot 4  RC on the shared receive queue, the second peer
//        1  RC, the second peer           5  UD on the shared receive queue, in the multicast group
//        2  UC, the first peer            6  RC of another protection domain, permits only READs
//        3  UD, in the multicast group    7  RC over IPv6
//
// The first peer is 10.0.0.2, the second 10.0.0.3, the third fd00::2.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <set>

#include "fuzz/fuzz_target.hpp"
#include "fuzz/host_program.hpp"
#include "support/hosts/lone_host.hpp"
#include "support/hosts/services.hpp"
#include "wire/cnm/l3_congestion_notification.hpp"
#include "wire/mad/capability_mad.hpp"

namespace roci::test {

class LiveHost {
 public:
  static constexpr size_t kSlots = 8;
  static constexpr size_t kPeers = 3;
  static constexpr uint16_t kCnmPort = 4999;
  static constexpr SipKey kCnmKey{7};

  static constexpr uint16_t kTelemetryPort = 4998;

  // `controlled`: the queue pairs have congestion control, as the setup specifies.
  explicit LiveHost(const Setup& setup, bool controlled = false);
  ~LiveHost();
  LiveHost(const LiveHost&) = delete;
  LiveHost& operator=(const LiveHost&) = delete;

  void step(const Step& step);
  // After the last step: verifies that all posted requests complete and all buffers are returned.
  void finish();

 private:
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

  void post(const Step& step);
  void receive(const Step& step);
  void control(const Step& step);
  void change(Slot& slot, const Step& step);
  void set_state(Slot& slot, ibv_qp_state state);
  void forget_work(Slot& slot);

  void work();
  void wait(Nanos span);
  void poll();
  void take_completion(const ibv_wc& wc);
  void check_states();
  void check_memory() const;
  void check_sent();

  Setup setup_;
  bool controlled_;
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
  std::array<std::unique_ptr<AddressHandle>, 4> handles_;  // of the peers and the group
  std::array<Peer, kPeers> peers_;
  std::array<Slot, kSlots> slots_;
  uint64_t next_id_ = 1;
  bool overflowed_ = false;
  bool held_back_ = false;
  ByteVector last_;  // last received frame
  ByteVector data_;  // last data packet that the host sent
};

}  // namespace roci::test
