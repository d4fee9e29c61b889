// Port between processes of one machine, through shared memory (shm_segment.hpp). Each process has a slot with a MAC
// address. A frame is written into the ring of the slot with its destination address; a multicast frame is written into
// the ring of each slot with an owner. There is no forwarding process: the sending port marks frames (ECN) and adds the
// hop of in-band telemetry, depending on the fill level of the receiver's ring. In a network with a switch, the port
// exchanges all frames with the switch's slot (shm_switch.hpp), but still answers ARP requests and neighbor
// solicitations for slots with an owner.
//
// A full ring blocks the sender while its reader frees space. If the reader frees nothing for kFullTimeout, frames for
// that slot are dropped and counted, so that a stopped process does not block traffic between other processes.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/peer_presence.hpp"
#include "port/port.hpp"
#include "port/shm/shm_link.hpp"
#include "port/shm/shm_peer_clock.hpp"
#include "port/shm/shm_placement.hpp"
#include "port/shm/shm_resolution.hpp"
#include "port/shm/shm_slot_owner.hpp"

namespace roci {

struct ShmPortConfig {
  std::string name = "shm0";
  uint32_t slot = 0;                 // of this process; below kShmSlots
  std::vector<SlotAddresses> slots;  // the addresses of each slot; used to answer ARP and ND
  bool via_switch = false;  // all frames pass kShmSwitchSlot, which also marks them and adds telemetry
  uint16_t mtu = 4400;      // at most 9600
  bool needs_icrc = true;   // PortCapabilities::needs_icrc; the same for all ports of the segment
  BitsPerSec rate{0};       // in telemetry hops; 0: 100 Gb/s
  // Place WRITEs into the memory of peer processes; not with a switch (shm_placement.hpp).
  bool sender_placement = false;
  // ECN marking by the number of bytes in the receiver's ring: never below kmin,
  // with probability pmax just below kmax, always above kmax.
  bool marks = false;
  uint64_t kmin = 0, kmax = 0;
  double pmax = 0;
  // UDP port of RoCEv2 packets with in-band telemetry, which get a hop; 0: none.
  uint16_t telemetry_port = 0;
  uint16_t telemetry_domain = 1;
  std::shared_ptr<MbufPool> pool{};  // allocates the buffers of received frames
};

// Counters in addition to PortStats. Single writer, any reader.
struct ShmStats {
  std::atomic<uint64_t> marked{0};       // frames that were marked CE
  std::atomic<uint64_t> no_receiver{0};  // frames to addresses without a process
  std::atomic<uint64_t> ring_full{0};    // dropped: full ring (unicast: for kFullTimeout)
  std::atomic<uint64_t> malformed{0};    // records or positions of another process that were out of range
  std::atomic<uint64_t> ring_peak{0};    // maximum number of unread bytes of a receiver
};

class ShmPort final : public Port, public PeerPresence {
 public:
  struct Owner {
    uint64_t incarnation = 0;  // 0: none
    pid_t pid = 0;
  };
  // Called on the polling thread when the port first exchanges frames with the owner of a slot.
  class ContactListener {
   public:
    ContactListener() = default;
    ContactListener(const ContactListener&) = delete;
    ContactListener& operator=(const ContactListener&) = delete;
    virtual ~ContactListener() = default;
    virtual void on_contact(uint32_t slot, const Owner& owner) = 0;
  };

  static constexpr size_t kMaxAnswers = 64;
  static constexpr Nanos kFullTimeout{10'000'000};
  // The same for the switch, through which all frames pass.
  static constexpr Nanos kSwitchFullTimeout = 1s;
  // Delay between a peer's crash notification and the report of its exit: a program that reads a failed completion
  // before the event of its connection reports the wrong cause. In a network with a switch, the delay also starts again
  // with each frame of the peer that the switch delivers, in the engine time of the switch: frames that the peer sent
  // before its exit may be in the switch's queues.
  static constexpr Nanos kExitDelay{50'000'000};
  static constexpr Nanos kMaxExitDelay{500'000'000};

  // Takes the slot in the segment. The caller must hold the slot's lock.
  static Result<std::unique_ptr<ShmPort>> open(std::shared_ptr<ShmSegment> segment, ShmPortConfig config);
  // Leaves the slot.
  ~ShmPort() override;

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos now) override;
  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos now) override;
  [[nodiscard]] Nanos next_arrival() const override;
  DirectBuffer take_direct(const MacAddress& to, uint32_t bytes, Nanos now) override;
  void receive_in_place() override { payload_ = ShmLink::Payload::kInPlace; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return config_.slots[config_.slot].mac; }
  [[nodiscard]] std::string_view name() const override { return config_.name; }
  [[nodiscard]] PortStats stats() const override { return stats_; }
  // In a network with a switch: whether the switch owns its slot.
  [[nodiscard]] bool link_up() const override {
    return !config_.via_switch || owner_.is_taken(kShmSwitchSlot);
  }
  [[nodiscard]] PortWakeup* wakeup() override { return &owner_.wakeup(); }
  [[nodiscard]] PeerPresence* peers() override { return this; }
  [[nodiscard]] Placement* placement() override { return placement_.get(); }
  // ShmStats by name, `wakes`, and for the rings that this port writes: `ring_bytes` (the fullest ring now),
  // `ring_peak_bytes`, `ring_size`.
  [[nodiscard]] std::vector<Detail> details() const override;
  [[nodiscard]] const ShmStats& shm_stats() const { return shm_stats_; }
  // Number of system calls that woke a receiver.
  [[nodiscard]] uint64_t wakes() const { return owner_.wakes(); }

  // PeerPresence.
  PeerTime time_of(const MacAddress& peer, Nanos now) override;
  [[nodiscard]] bool is_busy(const MacAddress& peer, Nanos now) override;
  [[nodiscard]] uint16_t process_of(const MacAddress& peer) override;
  [[nodiscard]] bool is_absent(const MacAddress& peer) override;
  std::optional<MacAddress> take_exit() override;

  // Must be set before the first poll. The listener is destroyed before the port leaves its slot.
  void set_contact_listener(std::unique_ptr<ContactListener> listener) { contacts_ = std::move(listener); }
  // The process that owned the slot with this incarnation has exited. Its `left_frames` are received as if they came
  // from the process (crash notification). Any thread.
  void note_exit(uint32_t slot, uint64_t incarnation, std::vector<std::vector<uint8_t>> left_frames);
  // The slot's current owner. Any thread.
  [[nodiscard]] Owner owner_of(uint32_t slot) const;

 private:
  struct Link;
  enum class Sent : uint8_t { kYes, kDropped, kBackpressure };

  ShmPort(std::shared_ptr<ShmSegment> segment, ShmPortConfig config);
  Link& link(uint32_t slot);
  Link& make_link(uint32_t slot);
  [[nodiscard]] std::optional<uint32_t> slot_of(const MacAddress& mac);
  [[nodiscard]] std::optional<uint32_t> find_slot(const MacAddress& mac);
  [[nodiscard]] std::optional<uint32_t> next_slot(const MacAddress& to);
  [[nodiscard]] ShmPeerClock::Ring ring_to(uint32_t slot);
  [[nodiscard]] ShmPeerClock::Ring ring_behind_switch(uint32_t slot) const;
  Sent send_to(uint32_t slot, rte_mbuf& frame, bool alone, Nanos now);
  void commit(rte_mbuf& frame);
  void note_written(Link& to, uint32_t slot, const ShmLink::Written& frame);
  bool is_stuck(uint32_t slot, Link& link, Nanos now);
  void drop(std::atomic<uint64_t>& reason);
  bool resolve(const rte_mbuf& frame);
  void send_to_all(rte_mbuf& frame, Nanos now);
  void add_hop(rte_mbuf& frame, uint64_t queue, Nanos now);
  void publish(Nanos now);
  uint16_t receive_from(uint32_t slot, std::span<rte_mbuf*> out);
  uint16_t receive(std::span<rte_mbuf*> out);
  uint16_t receive_answers(std::span<rte_mbuf*> out);
  uint16_t receive_left_frames(std::span<rte_mbuf*> out);
  // Delays the report of an exit while the switch still delivers frames of the process.
  void postpone_exits(std::span<rte_mbuf* const> received);
  const PeerTime& time_of_switch(Nanos now);
  void report_contact(uint32_t slot);
  void report_first_contact(uint32_t slot);

  const ShmPortConfig config_;
  ShmSlotOwner owner_;
  PortCapabilities capabilities_;
  PortStats stats_;
  ShmStats shm_stats_;
  LightRng rng_{1};
  ShmLink::Payload payload_ = ShmLink::Payload::kCopied;
  std::array<std::unique_ptr<Link>, kShmSlots> links_;
  std::array<ShmPeerClock, kShmSlots> behind_;  // of the other slots, in a network with a switch
  uint64_t ready_ = 0;                          // slots whose rings may have frames
  std::atomic<bool> unread_{false};             // ready_ is not 0, or answers_ is not empty
  uint32_t next_ = 0;                           // slot from which the next poll receives first
  std::vector<std::vector<uint8_t>> answers_;   // ARP and ND replies that rx_burst() returns next
  uint64_t published_ = 0;                      // slots to which frames were written since the last publish()
  uint32_t last_slot_ = 0;                      // last slot that slot_of() found
  uint64_t reported_contacts_ = 0;              // slots that were reported to the listener
  std::unique_ptr<ContactListener> contacts_;
  std::unique_ptr<ShmPlacement> placement_;

  struct Exit {
    MacAddress mac;
    bool left_frames;
    Nanos due{0};          // time of the report; 0: not computed yet
    Nanos latest{0};       // limit to which postpone_exits() moves `due`
    Nanos switch_lost{0};  // PeerTime::lost of the switch when `due` was computed
  };
  std::atomic<Nanos> exits_due_{kNever};  // of the first exit to be reported
  std::atomic<bool> frames_waiting_{false};
  std::mutex exits_mutex_;
  std::vector<Exit> exits_;
  std::deque<std::vector<uint8_t>> left_frames_;
};

}  // namespace roci
