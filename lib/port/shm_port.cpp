#include "port/shm_port.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>

#include "base/rng.hpp"
#include "base/scheduling.hpp"
#include "port/realtime_runner.hpp"
#include "wire/rewrite.hpp"
#include "wire/telemetry_edit.hpp"

namespace roci {
namespace {

// A poll within this time of the last one counts as running all the time in between: more than the longest sleep of a runner.
constexpr Nanos kTurn{5'000'000};
// A peer that has not polled for so long is not scheduled, or has stopped.
constexpr Nanos kAway{2'000'000};
// A peer whose process reads nothing for so long is silent, whatever the reason.
constexpr Nanos kLongestExcuse = 60s;
constexpr Nanos kStoppedCheck{20'000'000};

// Acknowledgements wake the receiver anyway when so many bytes of them wait.
constexpr uint64_t kQuietAcks = 64 * 1024;

constexpr uint32_t kMostHopBytes = kMaxIntHopWords * 4;

constexpr uint32_t kLongestQuestion = 128;  // ARP, or a neighbor solicitation

static_assert(kShmSlots <= 64);

// A positive acknowledgement of a reliable connection, and nothing else. Frames with a VLAN tag count as others.
bool is_plain_acknowledge(std::span<const uint8_t> frame) {
  constexpr size_t kLongest = 512;  // with extensions
  constexpr uint8_t kRcAcknowledge = 0x11;
  if (frame.size() > kLongest || frame.size() < sizeof(EthernetHeader) + 1) return false;
  const uint16_t type = reinterpret_cast<const EthernetHeader*>(frame.data())->ether_type.get();
  size_t udp = sizeof(EthernetHeader);
  if (type == kEtherTypeIpv4) {
    udp += 20;
  } else if (type == kEtherTypeIpv6) {
    udp += 40;
  } else {
    return false;
  }
  if (frame.size() < udp + 8 + 12 + 4) return false;
  const uint16_t port = static_cast<uint16_t>(frame[udp + 2] << 8 | frame[udp + 3]);
  return port == kRoceUdpPort && frame[udp + 8] == kRcAcknowledge && frame[udp + 8 + 12] >> 5 == 0;
}

thread_local bool holds_wakes = false;

bool is_armed(const ShmSlot& slot) {
  return std::ranges::any_of(slot.wakeups, [](const WakeupWord& word) {
    return (word.value.load(std::memory_order_relaxed) & WakeupWord::kArmed) != 0;
  });
}

uint64_t bit(uint32_t slot) { return uint64_t{1} << slot; }

void futex_wait(const std::atomic<uint32_t>& word, uint32_t seen, Nanos limit) {
  timespec time{};
  if (limit != kNever) {
    const int64_t nanos = std::max<int64_t>(limit.count(), 0);
    time = {nanos / 1'000'000'000, nanos % 1'000'000'000};
  }
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, limit == kNever ? nullptr : &time, nullptr, 0);
}

void futex_wake_all(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

struct ShmPort::Link {
  Link(ShmSegment& segment, uint32_t own, uint32_t other)
      : out(segment.control(own, other), segment.ring(own, other), kShmRingBytes),
        in(segment.control(other, own), segment.ring(other, own), kShmRingBytes) {}

  ShmRingWriter out;
  ShmRingReader in;
  uint64_t malformed = 0;         // of `in` and `out`, as last counted
  uint64_t full_at = UINT64_MAX;  // the reader's position when the ring was first found full
  Nanos full_since{0};
  uint64_t tx_bytes = 0;  // for telemetry
  // Of PeerPresence.
  uint64_t incarnation = 0;
  PeerTime time;
  int64_t behind = 0;  // by which the peer's engine time was behind the clock when last read
  Nanos read_at{0};
  uint64_t freed = UINT64_MAX;  // how far the peer had read then, and since when
  Nanos freed_at{0};
  Nanos stopped_checked{0};
  bool stopped = false;
};

ShmPort::ShmPort(std::shared_ptr<ShmSegment> segment, ShmPortConfig config)
    : segment_(std::move(segment)), config_(std::move(config)), own_(segment_->slot(config_.slot)) {
  capabilities_.mtu = config_.mtu;
  capabilities_.tx_multi_segment = true;
}

Result<std::unique_ptr<ShmPort>> ShmPort::open(std::shared_ptr<ShmSegment> segment, ShmPortConfig config) {
  const uint32_t most_mtu = kShmMostFrame - kShmLeastFrame - 2 * sizeof(VlanHeader);
  if (config.slot >= config.slots.size() || config.slots.size() > kShmSlots)
    return fail("port " + config.name + ": slot " + std::to_string(config.slot) + " of " +
                std::to_string(config.slots.size()) + "; a network has at most " + std::to_string(kShmSlots));
  if (config.mtu > most_mtu)
    return fail("port " + config.name + ": mtu " + std::to_string(config.mtu) + " exceeds " +
                std::to_string(most_mtu));
  std::unique_ptr<ShmPort> port(new ShmPort(std::move(segment), std::move(config)));
  // What was written for the slot's last owner is not for this one.
  for (uint32_t other = 0; other < port->config_.slots.size(); ++other) {
    if (other != port->config_.slot) port->link(other);
  }
  ShmSlot& own = port->own_;
  own.asleep.store(0);
  own.woken.store(0);
  own.ran.store(0);
  own.polled.store(0);
  own.pid.store(static_cast<uint32_t>(getpid()));
  own.incarnation.store(os_random() | 1, std::memory_order_release);
  return port;
}

ShmPort::~ShmPort() {
  contacts_.reset();
  own_.incarnation.store(0, std::memory_order_release);
}

ShmPort::Link& ShmPort::link(uint32_t slot) {
  auto& link = links_[slot];
  if (link == nullptr) link = std::make_unique<Link>(*segment_, config_.slot, slot);
  return *link;
}

std::optional<uint32_t> ShmPort::slot_of(const MacAddress& mac) {
  if (config_.slots[last_slot_].mac == mac) return last_slot_;
  const auto found = std::ranges::find(config_.slots, mac, &SlotAddresses::mac);
  if (found == config_.slots.end()) return std::nullopt;
  last_slot_ = static_cast<uint32_t>(found - config_.slots.begin());
  return last_slot_;
}

void ShmPort::meet(uint32_t slot) {
  if ((met_ & bit(slot)) != 0) return;
  met_ |= bit(slot);
  if (contacts_ != nullptr) contacts_->on_contact(slot);
}

// ------------------------------------------------------------------------------------------------ receiving

// Adds what has passed since the last poll to the time in which this engine ran, or had nothing to run for.
void ShmPort::note_poll(Nanos now) {
  const Nanos gap = now - last_poll_;
  Nanos slept{0};
  if (slept_.load(std::memory_order_relaxed) != 0)
    slept = Nanos{slept_.exchange(0, std::memory_order_relaxed)};
  const bool asleep = own_.asleep.load(std::memory_order_relaxed) != 0;
  if (last_poll_ != Nanos{0} && gap > Nanos{0}) ran_ += (asleep ? gap : std::min(gap, slept + kTurn)).count();
  last_poll_ = now;
  own_.ran.store(ran_, std::memory_order_relaxed);
  own_.polled.store(now.count(), std::memory_order_relaxed);
}

rte_mbuf* ShmPort::copy_in(std::span<const uint8_t> bytes) {
  rte_mbuf* const frame = rte_pktmbuf_alloc(config_.pool->get());
  if (frame == nullptr) return nullptr;
  void* const to = rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size()));
  if (to == nullptr) {
    rte_pktmbuf_free(frame);
    return nullptr;
  }
  std::memcpy(to, bytes.data(), bytes.size());
  return frame;
}

uint16_t ShmPort::receive_from(uint32_t slot, std::span<rte_mbuf*> out) {
  Link& from = link(slot);
  uint16_t count = 0;
  uint64_t bytes = 0;
  // Bounded by what is dropped too: a sender that writes as fast as frames are dropped cannot keep the thread here.
  for (size_t dropped = 0; count + dropped < out.size();) {
    const auto record = from.in.front();
    if (record.empty()) {
      ready_ &= ~bit(slot);
      break;
    }
    const uint32_t most = uint32_t{config_.mtu} + sizeof(EthernetHeader) + 2 * sizeof(VlanHeader);
    // Without a buffer it is lost, as on a NIC: what is behind it may be what frees the buffers that queue pairs keep.
    rte_mbuf* const frame = record.size() <= most ? copy_in(record) : nullptr;
    from.in.pop();
    if (frame == nullptr || exceeds_mtu(*frame, config_.mtu)) {
      rte_pktmbuf_free(frame);
      bump(stats_.rx_dropped);
      ++dropped;
      continue;
    }
    bytes += record.size();
    out[count++] = frame;
  }
  from.in.release();
  if (const uint64_t malformed = from.in.malformed() + from.out.refused(); malformed != from.malformed)
      [[unlikely]]
    bump(shm_stats_.malformed, malformed - std::exchange(from.malformed, malformed));
  if (count == 0) return 0;
  meet(slot);
  bump(stats_.rx_packets, count);
  bump(stats_.rx_bytes, bytes);
  return count;
}

uint16_t ShmPort::receive_left_frames(std::span<rte_mbuf*> out) {
  const std::scoped_lock guard(exits_mutex_);
  uint16_t count = 0;
  while (count < out.size() && !left_frames_.empty()) {
    if (rte_mbuf* const frame = copy_in(left_frames_.front()); frame != nullptr) out[count++] = frame;
    left_frames_.pop_front();
  }
  frames_waiting_.store(!left_frames_.empty(), std::memory_order_relaxed);
  bump(stats_.rx_packets, count);
  return count;
}

uint16_t ShmPort::receive_answers(std::span<rte_mbuf*> out) {
  uint16_t count = 0;
  while (count < out.size() && !answers_.empty()) {
    if (rte_mbuf* const frame = copy_in(answers_.back()); frame != nullptr) out[count++] = frame;
    answers_.pop_back();
  }
  bump(stats_.rx_packets, count);
  return count;
}

uint16_t ShmPort::rx_burst(std::span<rte_mbuf*> out, Nanos now) {
  note_poll(now);
  const uint16_t count = receive(out);
  unread_.store(ready_ != 0 || !answers_.empty(), std::memory_order_relaxed);
  return count;
}

uint16_t ShmPort::receive(std::span<rte_mbuf*> out) {
  if (own_.pending.load(std::memory_order_relaxed) != 0)
    ready_ |= own_.pending.exchange(0, std::memory_order_seq_cst);
  // Before the rings are read: what a process wrote before it exited is received before the frames that it has left.
  const bool left_frames = frames_waiting_.load(std::memory_order_acquire);
  if (left_frames && own_.pending.load(std::memory_order_relaxed) != 0) [[unlikely]]
    ready_ |= own_.pending.exchange(0, std::memory_order_seq_cst);
  if (!answers_.empty()) [[unlikely]]
    return receive_answers(out);
  ready_ &= bit(static_cast<uint32_t>(config_.slots.size())) - 1;
  ready_ &= ~bit(config_.slot);
  if (ready_ == 0) return left_frames ? receive_left_frames(out) : uint16_t{0};
  uint16_t count = 0;
  // In turn, from another one each time.
  for (uint64_t left = std::rotr(ready_, static_cast<int>(next_)); left != 0 && count < out.size();
       left &= left - 1) {
    const uint32_t slot = (static_cast<uint32_t>(std::countr_zero(left)) + next_) % 64;
    count = static_cast<uint16_t>(count + receive_from(slot, out.subspan(count)));
  }
  next_ = (next_ + 1) % 64;
  if (left_frames && ready_ == 0) [[unlikely]]
    count = static_cast<uint16_t>(count + receive_left_frames(out.subspan(count)));
  return count;
}

Nanos ShmPort::next_arrival() const {
  return unread_.load(std::memory_order_relaxed) || own_.pending.load(std::memory_order_relaxed) != 0 ||
                 frames_waiting_.load(std::memory_order_relaxed)
             ? Nanos{0}
             : exits_due_.load(std::memory_order_relaxed);
}

// ------------------------------------------------------------------------------------------------ sending

// Whether the reader of a full ring has freed nothing for kPatience.
bool ShmPort::is_stuck(Link& link, Nanos now) {
  if (link.full_at != link.out.freed()) {
    link.full_at = link.out.freed();
    link.full_since = now;
  }
  return now - link.full_since >= kPatience;
}

// A frame of our own, so it may be changed in place.
void ShmPort::add_hop(rte_mbuf& frame, uint64_t queue, Nanos now) {
  const IntView view = parse_int({rte_pktmbuf_mtod(&frame, const uint8_t*), frame.data_len}, frame.pkt_len,
                                 config_.telemetry_port);
  if (!view.accepted()) return;
  const HopReport report{.switch_id = 1,
                         .ingress_port = static_cast<uint16_t>(config_.slot),
                         .egress_port = static_cast<uint16_t>(last_slot_),
                         .queue = 0,
                         .ingress_time = static_cast<uint64_t>(now.count()),
                         .egress_time = static_cast<uint64_t>(now.count()),
                         .tx_bytes = link(last_slot_).tx_bytes,
                         .queue_bytes = queue,
                         .rate = config_.rate.value() != 0 ? config_.rate : BitsPerSec{100'000'000'000}};
  FrameFront front = FrameFront::of(frame);
  if (push_int_hop(front, view, report, config_.telemetry_domain, config_.mtu) == IntEdit::kDone)
    front.store(frame);
}

void ShmPort::drop(std::atomic<uint64_t>& reason) {
  bump(reason);
  bump(stats_.tx_dropped);
}

// `alone`: the frame goes to nobody else.
ShmPort::Sent ShmPort::send_to(uint32_t slot, rte_mbuf& frame, bool alone, Nanos now) {
  if (slot == config_.slot || segment_->slot(slot).incarnation.load(std::memory_order_acquire) == 0) {
    drop(shm_stats_.no_receiver);
    return Sent::kDropped;
  }
  Link& to = link(slot);
  const bool gets_hop = config_.telemetry_port != 0 && alone;
  // Before the frame is changed: the caller offers one that is refused again, and it must not get a second hop.
  if (!to.out.has_room(std::min(frame.pkt_len + (gets_hop ? kMostHopBytes : 0), kShmMostFrame))) {
    if (alone && !is_stuck(to, now)) return Sent::kNoRoom;
    drop(shm_stats_.ring_full);
    return Sent::kDropped;
  }
  if (gets_hop) add_hop(frame, to.out.used(), now);
  uint8_t* const room = to.out.reserve(frame.pkt_len);
  meet(slot);
  uint8_t* at = room;
  for (const rte_mbuf* segment = &frame; segment != nullptr; segment = segment->next) {
    std::memcpy(at, rte_pktmbuf_mtod(segment, const void*), segment->data_len);
    at += segment->data_len;
  }
  to.tx_bytes += frame.pkt_len;
  if (config_.marks && to.out.used() > config_.kmin) {
    to.out.refresh();
    const uint64_t used = to.out.used();
    const double span = static_cast<double>(config_.kmax - config_.kmin);
    const bool marked =
        used >= config_.kmax ||
        (used > config_.kmin && rng_.chance(static_cast<double>(used - config_.kmin) / span * config_.pmax));
    if (marked && mark_congestion(room, frame.pkt_len)) bump(shm_stats_.marked);
  }
  published_ |= bit(slot);
  if (to.out.used() > kQuietAcks || !is_plain_acknowledge({room, frame.pkt_len})) urgent_ |= bit(slot);
  return Sent::kYes;
}

// Whether the frame asks for an address, and has been dealt with.
bool ShmPort::resolve(const rte_mbuf& frame) {
  const auto* const bytes = rte_pktmbuf_mtod(&frame, const uint8_t*);
  const uint16_t type = reinterpret_cast<const EthernetHeader*>(bytes)->ether_type.get();
  if (type == kEtherTypeIpv4) return false;  // nearly all that is sent
  ResolutionAnswer answer = answer_resolution({bytes, frame.data_len}, config_.slots);
  if (!answer.asks) return false;
  const bool present = answer.slot != UINT32_MAX && answer.slot != config_.slot &&
                       segment_->slot(answer.slot).incarnation.load(std::memory_order_acquire) != 0;
  if (present && answers_.size() < kMostAnswers) {
    answers_.push_back(std::move(answer.frame));
    unread_.store(true, std::memory_order_relaxed);
  }
  return true;
}

void ShmPort::send_to_all(rte_mbuf& frame, Nanos now) {
  for (uint32_t slot = 0; slot < config_.slots.size(); ++slot) {
    if (slot != config_.slot && segment_->slot(slot).incarnation.load(std::memory_order_acquire) != 0)
      send_to(slot, frame, false, now);
  }
}

void ShmPort::publish(Nanos now) {
  for (; published_ != 0; published_ &= published_ - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(published_));
    ShmSlot& to = segment_->slot(slot);
    link(slot).out.publish();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((to.pending.load(std::memory_order_relaxed) & bit(config_.slot)) == 0)
      to.pending.fetch_or(bit(config_.slot), std::memory_order_seq_cst);
    const bool urgent = (urgent_ & bit(slot)) != 0;
    if (holds_wakes) {
      held_wakes_.fetch_or(bit(slot), std::memory_order_relaxed);
      if (urgent) held_urgent_.fetch_or(bit(slot), std::memory_order_relaxed);
    } else {
      wake_owner(slot, urgent ? WakeFor::kMoreThanAcks : WakeFor::kAnything, now);
    }
  }
  urgent_ = 0;
}

void ShmPort::wake_owner(uint32_t slot, WakeFor published, Nanos now) {
  ShmSlot& to = segment_->slot(slot);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (WakeupWord& word : to.wakeups) {
    if (!word.claim(published)) continue;
    to.woken.store(now.count(), std::memory_order_relaxed);
    shm_stats_.wakes.fetch_add(1, std::memory_order_relaxed);
    futex_wake_all(word.value);
    return;
  }
}

uint16_t ShmPort::tx_burst(std::span<rte_mbuf*> frames, Nanos now) {
  uint16_t count = 0;
  uint64_t sent = 0, bytes = 0;
  bool full = false;
  for (rte_mbuf* const frame : frames) {
    if (exceeds_mtu(*frame, config_.mtu) || frame->data_len < kShmLeastFrame) {
      bump(stats_.tx_dropped);
      ++count;
      continue;
    }
    const MacAddress& to = rte_pktmbuf_mtod(frame, const EthernetHeader*)->destination;
    if (frame->data_len < kLongestQuestion && resolve(*frame)) {
      ++sent;
      bytes += frame->pkt_len;
    } else if (to.is_multicast()) {
      send_to_all(*frame, now);
      ++sent;
      bytes += frame->pkt_len;
    } else if (const auto slot = slot_of(to)) {
      const Sent outcome = send_to(*slot, *frame, true, now);
      full = outcome == Sent::kNoRoom;
      if (full) break;
      if (outcome == Sent::kYes) {
        ++sent;
        bytes += frame->pkt_len;
      }
    } else {
      drop(shm_stats_.no_receiver);
    }
    ++count;
  }
  publish(now);
  bump(stats_.tx_packets, sent);
  bump(stats_.tx_bytes, bytes);
  if (full) bump(stats_.tx_refused, frames.size() - count);
  rte_pktmbuf_free_bulk(frames.data(), count);
  return count;
}

// ------------------------------------------------------------------------------------------------ waiting

uint32_t ShmPort::Wakeup::value(Waiter waiter) const {
  return word(waiter).value.load(std::memory_order_seq_cst);
}
uint32_t ShmPort::Wakeup::arm(Waiter waiter, WakeFor what) { return word(waiter).arm(what); }
void ShmPort::Wakeup::disarm(Waiter waiter) { word(waiter).disarm(); }

// Looks at the rings themselves too: a faulty process may have cleared the bits of others.
bool ShmPort::Wakeup::has_frames() {
  if (port_.next_arrival() == Nanos{0}) return true;
  for (uint32_t slot = 0; slot < port_.config_.slots.size(); ++slot) {
    if (slot == port_.config_.slot) continue;
    const ShmRingControl& ring = port_.segment_->control(slot, port_.config_.slot);
    if (ring.tail.load(std::memory_order_acquire) == ring.head.load(std::memory_order_relaxed)) continue;
    port_.own_.pending.fetch_or(bit(slot), std::memory_order_seq_cst);
    return true;
  }
  return false;
}

void ShmPort::Wakeup::wait(Waiter waiter, uint32_t seen, Nanos limit) {
  ShmSlot& own = port_.own_;
  const Nanos from = monotonic_now();
  const bool armed = (seen & WakeupWord::kArmed) != 0;
  if (armed) own.asleep.fetch_add(1, std::memory_order_relaxed);
  futex_wait(word(waiter).value, seen, limit);
  if (!armed) return;
  // From the wake on the thread was runnable, and may have had no processor.
  const Nanos woken{own.woken.load(std::memory_order_relaxed)}, now = monotonic_now();
  port_.slept_.fetch_add(((woken > from && woken < now ? woken : now) - from).count(),
                         std::memory_order_relaxed);
  own.asleep.fetch_sub(1, std::memory_order_relaxed);
}

void ShmPort::Wakeup::hold_wakes() { holds_wakes = true; }

void ShmPort::Wakeup::release_wakes() {
  holds_wakes = false;
  uint64_t held = port_.held_wakes_.load(std::memory_order_relaxed);
  if (held == 0) return;
  held = port_.held_wakes_.exchange(0, std::memory_order_relaxed);
  const uint64_t urgent = port_.held_urgent_.exchange(0, std::memory_order_relaxed);
  for (const Nanos now = monotonic_now(); held != 0; held &= held - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(held));
    port_.wake_owner(slot, (urgent & bit(slot)) != 0 ? WakeFor::kMoreThanAcks : WakeFor::kAnything, now);
  }
}

void ShmPort::Wakeup::wake(Waiter waiter) {
  std::atomic<uint32_t>& value = word(waiter).value;
  value.fetch_add(WakeupWord::kOne, std::memory_order_seq_cst);
  futex_wake_all(value);
}

// ------------------------------------------------------------------------------------------------ peers

// What a peer's slot says of its engine, in ranges that can be computed with.
struct ShmPort::EngineTime {
  EngineTime(const ShmSlot& slot, Nanos now)
      : ran(std::clamp<int64_t>(slot.ran.load(std::memory_order_relaxed), 0, now.count())),
        since_poll(now.count() -
                   std::clamp<int64_t>(slot.polled.load(std::memory_order_relaxed), 0, now.count())),
        waits(slot.asleep.load(std::memory_order_relaxed) != 0 && is_armed(slot)) {}

  int64_t ran;
  Nanos since_poll;
  bool waits;  // for a wake that it has not got: it is ready
};

PeerTime ShmPort::time_of(const MacAddress& peer, Nanos now) {
  const auto slot = slot_of(peer);
  if (!slot || *slot == config_.slot) return {};
  Link& to = link(*slot);
  const ShmSlot& other = segment_->slot(*slot);
  const EngineTime engine(other, now);
  // By how much its engine's time would be behind the clock if it polled now.
  const int64_t behind = now.count() - engine.ran -
                         (engine.waits ? engine.since_poll : std::min(engine.since_poll, kTurn)).count();
  const uint64_t incarnation = other.incarnation.load(std::memory_order_relaxed);
  const bool unread = !to.out.drained();
  if (to.incarnation == incarnation && now > to.read_at) {
    if (now - to.stopped_checked >= kStoppedCheck) {
      to.stopped_checked = now;
      to.stopped = engine.since_poll > kAway &&
                   is_stopped(static_cast<pid_t>(other.pid.load(std::memory_order_relaxed)));
    }
    const Nanos window = now - to.read_at;
    if (to.freed != to.out.freed()) {
      to.freed = to.out.freed();
      to.freed_at = now;
    }
    const bool reads = now - to.freed_at < kLongestExcuse;
    const Nanos lost = unread && reads ? window : std::clamp(Nanos{behind - to.behind}, Nanos{0}, window);
    if (lost > Nanos{0} && !to.stopped && engine.since_poll < kLongestExcuse) {
      to.time.lost += lost;
      to.time.lost_at = now;
    }
  }
  to.incarnation = incarnation;
  to.behind = behind;
  to.read_at = now;
  return to.time;
}

bool ShmPort::is_busy(const MacAddress& peer, Nanos now) {
  const auto slot = slot_of(peer);
  if (!slot || *slot == config_.slot) return false;
  Link& to = link(*slot);
  if (to.stopped) return false;
  if (!to.out.drained()) return true;
  const EngineTime engine(segment_->slot(*slot), now);
  return engine.since_poll > kAway && engine.since_poll < kLongestExcuse && !engine.waits;
}

bool ShmPort::is_absent(const MacAddress& peer) {
  const auto slot = slot_of(peer);
  return slot && *slot != config_.slot && exits_due_.load(std::memory_order_acquire) == kNever &&
         segment_->slot(*slot).incarnation.load(std::memory_order_acquire) == 0;
}

std::optional<MacAddress> ShmPort::take_exit() {
  if (last_poll_ < exits_due_.load(std::memory_order_acquire)) return std::nullopt;
  const std::scoped_lock guard(exits_mutex_);
  for (Exit& exit : exits_) {
    if (exit.due == Nanos{0}) exit.due = last_poll_ + (exit.left_frames ? kFarewell : Nanos{0});
  }
  std::ranges::sort(exits_, std::ranges::greater{}, &Exit::due);
  std::optional<MacAddress> gone;
  if (!exits_.empty() && exits_.back().due <= last_poll_) {
    gone = exits_.back().mac;
    exits_.pop_back();
    // Its successor is met anew.
    if (const auto slot = slot_of(*gone)) met_ &= ~bit(*slot);
  }
  exits_due_.store(exits_.empty() ? kNever : exits_.back().due, std::memory_order_release);
  return gone;
}

void ShmPort::note_exit(uint32_t slot, uint64_t incarnation, std::vector<std::vector<uint8_t>> left_frames) {
  // Not of a successor.
  segment_->slot(slot).incarnation.compare_exchange_strong(incarnation, 0);
  // It may have been killed between publishing a frame and this.
  own_.pending.fetch_or(bit(slot), std::memory_order_seq_cst);
  {
    const std::scoped_lock guard(exits_mutex_);
    exits_.push_back({config_.slots[slot].mac, !left_frames.empty(), Nanos{0}});
    std::ranges::move(left_frames, std::back_inserter(left_frames_));
    frames_waiting_.store(!left_frames_.empty(), std::memory_order_release);
    exits_due_.store(Nanos{0}, std::memory_order_release);
  }
  wakeup_.wake(Waiter::kApplication);
  wakeup_.wake(Waiter::kHelper);
}

ShmPort::Owner ShmPort::owner_of(uint32_t slot) const {
  const ShmSlot& of = segment_->slot(slot);
  return {of.incarnation.load(std::memory_order_acquire),
          static_cast<pid_t>(of.pid.load(std::memory_order_relaxed))};
}

}  // namespace roci
