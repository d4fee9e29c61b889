// A simulated cable with a port at each end: rate, delay, a bounded transmit queue, and seeded faults. The
// same seed and the same calls give the same frames at the same nanoseconds.
//
//   port a  tx_burst -> [ transmit queue ]--rate-->( faults )--delay--> rx_burst  port b
//   port b  tx_burst -> [ transmit queue ]--rate-->( faults )--delay--> rx_burst  port a
//
// Frames are moved, not copied, except where the link could not keep a frame to itself: what tx_burst() takes
// is copied when its memory is shared (a reference count above one, a clone, external memory), since its
// owner may change it as soon as a NIC would have read it; duplicates are copies. So everything in flight is
// private, faults may change it, and whoever receives it may too.
//
// Threads: each direction has a sender, which has the port there, its waker and what changes the direction, and a receiver,
// which has the port at the other end. All may be one thread. Two may be two threads that are never further apart in time than
// the delay: then what is sent meanwhile arrives later than anything the receiver does meanwhile, and who is how quick makes
// no difference. listen(), set_up() and the link as a poller are for whoever has stopped both.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/growing_ring.hpp"
#include "base/line_clock.hpp"
#include "base/poller.hpp"
#include "base/rng.hpp"
#include "port/eal.hpp"
#include "port/port.hpp"

namespace roci {

// What happens to frames at random, each with its own probability in [0, 1] and independent of the others.
struct SimFaults {
  double loss = 0;
  double duplication = 0;  // a second copy arrives right behind the first
  double reordering = 0;   // arrives late by 1 ns to reordering_delay, while others overtake it
  double corruption = 0;   // 1 to corruption_bits different bits behind the Ethernet header are flipped
  double marking = 0;      // ECN-capable packets get CE, the IPv4 header checksum stays right
  Nanos reordering_delay = 20us;
  unsigned corruption_bits = 4;  // at most kMostBitErrors (bit_errors.hpp)
};

// What a test's script wants done to one frame, on top of the random faults.
struct SimVerdict {
  bool drop = false;
  bool mark = false;
  unsigned duplicates = 0;
  Nanos extra_delay{0};
  std::vector<uint32_t> flip_bits{};  // counted from the start of the frame; bit 0 is the lowest of byte 0
};

// Sees each frame of its direction as it was sent, with its number from 0.
using SimScript = std::function<SimVerdict(const rte_mbuf& frame, uint64_t index)>;

struct SimDirectionConfig {
  BitsPerSec rate{0};  // 0: infinite. A frame occupies its bytes and kEthernetLineOverhead.
  Nanos delay{0};
  Bytes queue =
      1_MiB;  // bytes of frames not yet completely sent; one frame is always taken by an empty queue
  SimFaults faults{};
};

struct SimLinkConfig {
  std::string name = "link";  // the ports are name:a and name:b
  uint64_t seed = 1;
  uint16_t mtu = 4200;
  std::array<uint16_t, 2> queues{1, 1};  // of port a and port b; what arrives is spread by flow
  SimDirectionConfig a_to_b{};
  SimDirectionConfig b_to_a{};
  std::array<MacAddress, 2> macs{};  // all zero: made from the seed
};

// Always: accepted + duplicated == delivered + lost + no_buffer + in_flight().
struct SimDirectionStats {
  std::atomic<uint64_t> accepted{0};    // frames taken by tx_burst(), without the too long ones
  std::atomic<uint64_t> delivered{0};   // frames given out by rx_burst()
  std::atomic<uint64_t> lost{0};        // by chance or by script
  std::atomic<uint64_t> duplicated{0};  // extra copies
  std::atomic<uint64_t> reordered{0};   // delayed
  std::atomic<uint64_t> corrupted{0};
  std::atomic<uint64_t> marked{0};
  std::atomic<uint64_t> no_buffer{0};   // copies the pool had no buffer for
  std::atomic<uint64_t> peak_queue{0};  // bytes

  [[nodiscard]] uint64_t in_flight() const { return accepted + duplicated - delivered - lost - no_buffer; }
};

// Is told of each frame, by the thread that sends it, when it will arrive.
class ArrivalListener {
 public:
  ArrivalListener() = default;
  ArrivalListener(const ArrivalListener&) = delete;
  ArrivalListener& operator=(const ArrivalListener&) = delete;
  virtual ~ArrivalListener() = default;
  virtual void arriving(Nanos when) = 0;
};

// As a poller it only wakes senders: after a port has refused a frame, the link is due when its queue has
// room again and then claims to have worked, so that a virtual runner polls the sender once more. Under a
// real runner it need not be polled.
class SimLink : public Poller {
 public:
  enum Direction : unsigned { kAToB = 0, kBToA = 1 };

  // `copies` gives the buffers for private copies.
  SimLink(const SimLinkConfig& config, std::shared_ptr<MbufPool> copies);
  ~SimLink() override;  // frees what is in flight

  [[nodiscard]] Port& a();
  [[nodiscard]] Port& b();
  [[nodiscard]] const SimDirectionStats& stats(Direction direction) const;

  // From the next frame on.
  void set_faults(Direction direction, const SimFaults& faults);
  void set_script(Direction direction, SimScript script);
  void set_rate(Direction direction, BitsPerSec rate);
  // The cable is pulled or plugged in: both ports say so, and while it is out what they send is lost. What is on its way
  // arrives.
  void set_up(bool up) { up_ = up; }

  // Of what arrives by this direction; it must outlive the link.
  void listen(Direction direction, ArrivalListener& listener);

  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  [[nodiscard]] std::string_view name() const override { return name_; }
  // The half of this that belongs to the sender of a direction.
  [[nodiscard]] Poller& waker(Direction direction);

 private:
  class Way;
  class End;
  class Waker;

  std::string name_;
  std::shared_ptr<MbufPool> copies_;
  std::atomic<bool> up_{true};
  std::array<std::unique_ptr<Way>, 2> ways_;
  std::array<std::unique_ptr<End>, 2> ends_;
  std::array<std::unique_ptr<Waker>, 2> wakers_;
};

}  // namespace roci
