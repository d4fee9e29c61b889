// A port between the processes of one machine, through memory that they share (shm_segment.hpp). Each process has a slot and with it
// a MAC address; a frame is written into the ring of the slot that has its destination address, a group's frame into the ring of
// each slot that is taken. There is no process in between: the sending port marks frames (ECN) and adds the hop of in-band
// telemetry by the state of the receiver's ring. In a network with a switch the port exchanges all frames with the switch's slot
// (shm_switch.hpp); the port still answers ARP requests and neighbor solicitations for slots with an owner.
//
// A ring that is full holds the sender up as long as its reader frees anything, and at most for kPatience when it does not: then
// frames for that slot are dropped and counted, so that a process that has stopped cannot hold up the traffic between others.
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
#include "port/eal.hpp"
#include "port/peer_presence.hpp"
#include "port/port.hpp"
#include "port/shm_link.hpp"
#include "port/shm_peer_clock.hpp"
#include "port/shm_placement.hpp"
#include "port/shm_resolution.hpp"
#include "port/shm_slot_owner.hpp"

namespace roci {

struct ShmPortConfig {
  std::string name = "shm0";
  uint32_t slot = 0;                 // this process's; below kShmSlots
  std::vector<SlotAddresses> slots;  // the addresses of each; ARP and ND are answered from here
  bool via_switch =
      false;            // all frames go to and come from kShmSwitchSlot, which also marks and adds telemetry
  uint16_t mtu = 4400;  // at most 9600
  bool needs_icrc = true;  // PortCapabilities::needs_icrc; the same for all ports of the segment
  BitsPerSec rate{0};      // what telemetry reports; 0: 100 Gb/s
  bool places = false;  // WRITEs into memory of the peers' processes; not with a switch (shm_placement.hpp)
  // ECN-capable frames are marked by the bytes in the receiver's ring: never below kmin, with pmax just below kmax, always above.
  bool marks = false;
  uint64_t kmin = 0, kmax = 0;
  double pmax = 0;
  // RoCEv2 packets that carry in-band telemetry get a hop; UDP port 0: none.
  uint16_t telemetry_port = 0;
  uint16_t telemetry_domain = 1;
  std::shared_ptr<MbufPool> pool{};  // received frames come from it
};

// What a port did beyond PortStats. Single writer, any reader.
struct ShmStats {
  std::atomic<uint64_t> marked{0};       // frames that got CE
  std::atomic<uint64_t> no_receiver{0};  // for an address that no process has
  std::atomic<uint64_t> ring_full{0};    // dropped: the receiver has not freed its ring for kPatience
  std::atomic<uint64_t> malformed{0};    // records or positions of another process that were out of range
  std::atomic<uint64_t> ring_peak{0};    // most bytes that any of the receivers had not read
};

class ShmPort final : public Port, public PeerPresence {
 public:
  struct Owner {
    uint64_t incarnation = 0;  // 0: none
    pid_t pid = 0;
  };
  // Is called on the polling thread when the port first exchanges frames with the owner of a slot.
  class ContactListener {
   public:
    ContactListener() = default;
    ContactListener(const ContactListener&) = delete;
    ContactListener& operator=(const ContactListener&) = delete;
    virtual ~ContactListener() = default;
    virtual void on_contact(uint32_t slot, const Owner& owner) = 0;
  };

  static constexpr size_t kMostAnswers = 64;
  static constexpr Nanos kPatience{10'000'000};
  // The same for the switch, which all frames go through.
  static constexpr Nanos kSwitchPatience = 1s;
  // From a peer's crash notification to the report of its exit: a program that reads a failed completion before the event of its
  // connection reports the wrong cause. In a network with a switch also from the last frame of the peer that the switch has
  // delivered, as time of the switch: frames that the peer sent before its exit may be in the switch's queues.
  static constexpr Nanos kExitDelay{50'000'000};
  static constexpr Nanos kLongestExitDelay{500'000'000};

  // Takes the slot in the segment. The caller has made sure that no other process has it (a lock).
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
  // In a network with a switch: whether the switch has its slot.
  [[nodiscard]] bool link_up() const override {
    return !config_.via_switch || owner_.is_taken(kShmSwitchSlot);
  }
  [[nodiscard]] PortWakeup* wakeup() override { return &owner_.wakeup(); }
  [[nodiscard]] PeerPresence* peers() override { return this; }
  [[nodiscard]] Placement* placement() override { return placement_.get(); }
  // ShmStats by name, `wakes`, and of the rings that this port writes: `ring_bytes` (the fullest one now), `ring_peak_bytes`,
  // `ring_size`.
  [[nodiscard]] std::vector<Detail> details() const override;
  [[nodiscard]] const ShmStats& shm_stats() const { return shm_stats_; }
  // System calls that woke a receiver.
  [[nodiscard]] uint64_t wakes() const { return owner_.wakes(); }

  // PeerPresence.
  PeerTime time_of(const MacAddress& peer, Nanos now) override;
  [[nodiscard]] bool is_busy(const MacAddress& peer, Nanos now) override;
  [[nodiscard]] uint16_t process_of(const MacAddress& peer) override;
  [[nodiscard]] bool is_absent(const MacAddress& peer) override;
  std::optional<MacAddress> take_exit() override;

  // Before the first poll. It ends before the port leaves its slot.
  void set_contact_listener(std::unique_ptr<ContactListener> listener) { contacts_ = std::move(listener); }
  // Any thread: the process that had the slot with this incarnation has exited. Frames it has left for its peers are received
  // as if they came from it (crash notification).
  void note_exit(uint32_t slot, uint64_t incarnation, std::vector<std::vector<uint8_t>> left_frames);
  // Any thread. The slot's present owner.
  [[nodiscard]] Owner owner_of(uint32_t slot) const;

 private:
  struct Link;
  enum class Sent : uint8_t { kYes, kDropped, kNoRoom };

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
  bool is_stuck(Link& link, Nanos now);
  void drop(std::atomic<uint64_t>& reason);
  bool resolve(const rte_mbuf& frame);
  void send_to_all(rte_mbuf& frame, Nanos now);
  void add_hop(rte_mbuf& frame, uint64_t queue, Nanos now);
  void publish(Nanos now);
  uint16_t receive_from(uint32_t slot, std::span<rte_mbuf*> out);
  uint16_t receive(std::span<rte_mbuf*> out);
  uint16_t receive_answers(std::span<rte_mbuf*> out);
  uint16_t receive_left_frames(std::span<rte_mbuf*> out);
  // Delays the report of an exit when the switch still delivers frames of the process.
  void postpone_exits(std::span<rte_mbuf* const> received);
  const PeerTime& time_of_switch(Nanos now);
  void meet(uint32_t slot);
  void meet_first(uint32_t slot);

  const ShmPortConfig config_;
  ShmSlotOwner owner_;
  PortCapabilities capabilities_;
  PortStats stats_;
  ShmStats shm_stats_;
  LightRng rng_{1};
  ShmLink::Payload payload_ = ShmLink::Payload::kCopied;
  std::array<std::unique_ptr<Link>, kShmSlots> links_;
  std::array<ShmPeerClock, kShmSlots> behind_;  // (switch) of the other slots
  uint64_t ready_ = 0;                          // slots whose rings may have frames
  std::atomic<bool> unread_{false};             // there are such slots, or answers
  uint32_t next_ = 0;                           // to be received from first
  std::vector<std::vector<uint8_t>> answers_;   // of ARP and ND, to be received next
  uint64_t published_ = 0;                      // slots that frames were written for since the last publish()
  uint32_t last_slot_ = 0;                      // that was sent to
  uint64_t met_ = 0;                            // slots of which the listener has been told
  std::unique_ptr<ContactListener> contacts_;
  std::unique_ptr<ShmPlacement> placement_;

  struct Exit {
    MacAddress mac;
    bool left_frames;
    Nanos due{0};          // when it is reported; 0: not known yet
    Nanos latest{0};       // that postpone_exits() moves `due` to
    Nanos switch_lost{0};  // PeerTime::lost of the switch when `due` was computed
  };
  std::atomic<Nanos> exits_due_{kNever};  // of the first to be reported
  std::atomic<bool> frames_waiting_{false};
  std::mutex exits_mutex_;
  std::vector<Exit> exits_;
  std::deque<std::vector<uint8_t>> left_frames_;
};

}  // namespace roci
