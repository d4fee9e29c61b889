// Simulated link with a port at each end: rate, delay, a bounded transmit queue, and seeded faults. The same seed and
// the same calls produce the same frames at the same nanosecond.
//
//   port a  tx_burst -> [ transmit queue ]--rate-->( faults )--delay--> rx_burst  port b
//   port b  tx_burst -> [ transmit queue ]--rate-->( faults )--delay--> rx_burst  port a
//
// Frames are moved, not copied, with two exceptions. tx_burst() copies a frame whose memory is shared
// (a reference count above one, a clone, external memory), because its owner may modify the memory as
// soon as a NIC would have read it. Duplicates are copies. All frames in flight are therefore
// private, and may be modified by faults and by the receiver.
//
// Threads: each direction has a sending and a receiving thread, which may be the same. The sending thread
// uses the port, the waker and the settings of the direction; the receiving thread uses the port at the
// other end. Two threads must never be further apart in virtual time than the delay. Then every frame
// arrives after the receiver's current time, and the result does not depend on the threads' speed. listen(),
// set_up() and poll() require that both threads are stopped.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/containers/growing_ring.hpp"
#include "base/rng.hpp"
#include "base/time/line_clock.hpp"
#include "base/types.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/port.hpp"
#include "roci/poller.hpp"

namespace roci {

// Random faults, each with its own probability in [0, 1] and independent of the others.
struct SimFaults {
  double loss = 0;
  double duplication = 0;  // a second copy arrives directly after the first
  double reordering = 0;   // arrives 1 ns to reordering_delay late, while later frames overtake it
  double corruption = 0;   // 1 to corruption_bits different bits after the Ethernet header are flipped
  double marking = 0;      // ECN-capable packets get CE; the IPv4 header checksum stays correct
  Nanos reordering_delay = 20us;
  unsigned corruption_bits = 4;  // at most kMaxBitErrors (bit_errors.hpp)
};

// Actions of a test script for one frame, in addition to the random faults.
struct SimVerdict {
  bool drop = false;
  bool mark = false;
  unsigned duplicates = 0;
  Nanos extra_delay{0};
  // Counted from the start of the frame; bit 0 is the lowest bit of byte 0.
  std::vector<uint32_t> flip_bits{};
};

// Called for each frame of its direction as it was sent, with its number from 0.
using SimScript = std::function<SimVerdict(const rte_mbuf& frame, uint64_t index)>;

struct SimDirectionConfig {
  BitsPerSec rate{0};  // 0: infinite. A frame occupies its bytes and kEthernetLineOverhead
  Nanos delay{0};
  // Bytes of frames that are not completely sent; an empty queue always accepts one frame.
  Bytes queue = 1_MiB;
  SimFaults faults{};
};

struct SimLinkConfig {
  std::string name = "link";  // the ports are name:a and name:b
  uint64_t seed = 1;
  uint16_t mtu = 4200;
  std::array<uint16_t, 2> queues{1, 1};  // of port a and port b; received frames are distributed by flow
  SimDirectionConfig a_to_b{};
  SimDirectionConfig b_to_a{};
  std::array<MacAddress, 2> macs{};  // all zero: derived from the seed
};

// Invariant: accepted + duplicated == delivered + lost + no_buffer + in_flight().
struct SimDirectionStats {
  std::atomic<uint64_t> accepted{0};    // frames accepted by tx_burst(), except those that exceed the MTU
  std::atomic<uint64_t> delivered{0};   // frames returned by rx_burst()
  std::atomic<uint64_t> lost{0};        // at random, by script, or while the link was down
  std::atomic<uint64_t> duplicated{0};  // extra copies
  std::atomic<uint64_t> reordered{0};   // delayed
  std::atomic<uint64_t> corrupted{0};
  std::atomic<uint64_t> marked{0};
  std::atomic<uint64_t> no_buffer{0};   // copies that were not made because the pool was empty
  std::atomic<uint64_t> peak_queue{0};  // bytes

  [[nodiscard]] uint64_t in_flight() const { return accepted + duplicated - delivered - lost - no_buffer; }
};

// Callback of the sending thread, with the arrival time of each frame.
class ArrivalListener {
 public:
  ArrivalListener() = default;
  ArrivalListener(const ArrivalListener&) = delete;
  ArrivalListener& operator=(const ArrivalListener&) = delete;
  virtual ~ArrivalListener() = default;
  virtual void arriving(Nanos when) = 0;
};

// Simulated link. As a poller it only wakes senders: after a port has refused a frame, next_deadline() is the time at
// which its queue has space again. poll() then returns true, so that a virtual-time runner polls the sender again. A
// real-time runner need not poll it.
class SimLink : public Poller {
 public:
  enum Direction : unsigned { kAToB = 0, kBToA = 1 };

  // `copies` provides the buffers for private copies.
  SimLink(const SimLinkConfig& config, std::shared_ptr<MbufPool> copies);
  ~SimLink() override;  // frees the frames in flight

  [[nodiscard]] Port& a();
  [[nodiscard]] Port& b();
  [[nodiscard]] const SimDirectionStats& stats(Direction direction) const;

  // Applies from the next frame on.
  void set_faults(Direction direction, const SimFaults& faults);
  void set_script(Direction direction, SimScript script);
  void set_rate(Direction direction, BitsPerSec rate);
  // Unplugs or plugs in the cable. While it is unplugged, link_up() of both ports is false, and the frames that they
  // send are lost. Frames in flight still arrive.
  void set_up(bool up) { up_ = up; }

  // Sets the listener for arrivals of this direction; it must outlive the link.
  void listen(Direction direction, ArrivalListener& listener);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }
  // The part of the poller that the sending thread of a direction calls.
  [[nodiscard]] Poller& waker(Direction direction);

 private:
  class Channel;
  class End;
  class Waker;

  std::string name_;
  std::shared_ptr<MbufPool> copies_;
  std::atomic<bool> up_{true};
  std::array<std::unique_ptr<Channel>, 2> channels_;
  std::array<std::unique_ptr<End>, 2> ends_;
  std::array<std::unique_ptr<Waker>, 2> wakers_;
};

}  // namespace roci
