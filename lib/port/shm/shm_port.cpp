#include "port/shm/shm_port.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <utility>

#include "base/os/scheduling.hpp"
#include "base/rng.hpp"
#include "port/realtime_runner.hpp"
#include "wire/int/telemetry_edit.hpp"
#include "wire/net/rewrite.hpp"

namespace roci {
namespace {

constexpr uint32_t kMaxHopBytes = kMaxIntHopWords * 4;

constexpr uint32_t kMaxRequestBytes = 128;  // ARP, or a neighbor solicitation

}  // namespace

struct ShmPort::Link : ShmLink {
  using ShmLink::ShmLink;

  uint64_t full_at = UINT64_MAX;  // reader position when the ring was first found full
  Nanos full_since{0};
  uint64_t tx_bytes = 0;  // for in-band telemetry
  ShmPeerClock clock;
};

[[gnu::noinline]] ShmPort::Link& ShmPort::make_link(uint32_t slot) {
  links_[slot] = std::make_unique<Link>(owner_.segment(), config_.slot, slot);
  return *links_[slot];
}

inline ShmPort::Link& ShmPort::link(uint32_t slot) {
  return links_[slot] != nullptr ? *links_[slot] : make_link(slot);
}

ShmPort::ShmPort(std::shared_ptr<ShmSegment> segment, ShmPortConfig config)
    : config_(std::move(config)),
      owner_(std::move(segment), config_.slot,
             config_.via_switch ? slot_bit(kShmSwitchSlot)
                                : slot_bit(static_cast<uint32_t>(config_.slots.size())) - 1,
             [this] { return next_arrival() == Nanos{0}; }) {
  capabilities_.mtu = config_.mtu;
  capabilities_.tx_multi_segment = true;
  capabilities_.rx_multi_segment = true;
  capabilities_.direct_buffers = true;
  capabilities_.needs_icrc = config_.needs_icrc;
}

Result<std::unique_ptr<ShmPort>> ShmPort::open(std::shared_ptr<ShmSegment> segment, ShmPortConfig config) {
  const uint32_t most = config.via_switch ? kShmSwitchSlot : kShmSlots;
  if (config.slot >= config.slots.size() || config.slots.size() > most)
    return fail("port " + config.name + ": slot " + std::to_string(config.slot) + " of " +
                std::to_string(config.slots.size()) + "; a network has at most " + std::to_string(most));
  if (config.mtu > kShmMostMtu)
    return fail("port " + config.name + ": mtu " + std::to_string(config.mtu) + " exceeds " +
                std::to_string(kShmMostMtu));
  std::unique_ptr<ShmPort> port(new ShmPort(std::move(segment), std::move(config)));
  // Creates the rings, which skips frames for the slot's previous owner.
  if (port->config_.via_switch) port->link(kShmSwitchSlot);
  for (uint32_t other = 0; !port->config_.via_switch && other < port->config_.slots.size(); ++other) {
    if (other != port->config_.slot) port->link(other);
  }
  if (port->config_.sender_placement && !port->config_.via_switch) {
    port->placement_ =
        std::make_unique<ShmPlacement>(port->owner_.shared_segment(), port->config_.slot,
                                       [of = port.get()](const MacAddress& mac) { return of->slot_of(mac); });
  }
  port->owner_.join();
  return port;
}

ShmPort::~ShmPort() { contacts_.reset(); }

inline std::optional<uint32_t> ShmPort::slot_of(const MacAddress& mac) {
  return config_.slots[last_slot_].mac == mac ? std::optional{last_slot_} : find_slot(mac);
}

[[gnu::noinline]] std::optional<uint32_t> ShmPort::find_slot(const MacAddress& mac) {
  const auto found = std::ranges::find(config_.slots, mac, &SlotAddresses::mac);
  if (found == config_.slots.end()) return std::nullopt;
  last_slot_ = static_cast<uint32_t>(found - config_.slots.begin());
  return last_slot_;
}

// The slot to whose ring the frame is written.
std::optional<uint32_t> ShmPort::next_slot(const MacAddress& to) {
  if (!config_.via_switch) return slot_of(to);
  if (const auto peer = slot_of(to)) report_contact(*peer);
  return kShmSwitchSlot;
}

inline void ShmPort::report_contact(uint32_t slot) {
  if ((reported_contacts_ & slot_bit(slot)) == 0) [[unlikely]]
    report_first_contact(slot);
}

[[gnu::noinline]] void ShmPort::report_first_contact(uint32_t slot) {
  // Frames of a process whose exit is known are not a contact with the next owner.
  const Owner owner = owner_of(slot);
  if (owner.incarnation == 0) return;
  reported_contacts_ |= slot_bit(slot);
  if (contacts_ != nullptr) contacts_->on_contact(slot, owner);
}

// ------------------------------------------------------------------------------------------------ receiving

uint16_t ShmPort::receive_from(uint32_t slot, std::span<rte_mbuf*> out) {
  Link& from = link(slot);
  const auto received = from.receive(out, *config_.pool, config_.mtu, payload_, stats_);
  if (received.all) ready_ &= ~slot_bit(slot);
  if (const uint64_t malformed = from.take_malformed(); malformed != 0) [[unlikely]]
    bump(shm_stats_.malformed, malformed);
  if (received.frames != 0) report_contact(slot);
  return received.frames;
}

uint16_t ShmPort::receive_left_frames(std::span<rte_mbuf*> out) {
  const std::scoped_lock guard(exits_mutex_);
  uint16_t count = 0;
  while (count < out.size() && !left_frames_.empty()) {
    if (rte_mbuf* const frame = copy_in(*config_.pool, left_frames_.front()); frame != nullptr)
      out[count++] = frame;
    left_frames_.pop_front();
  }
  frames_waiting_.store(!left_frames_.empty(), std::memory_order_relaxed);
  bump(stats_.rx_packets, count);
  return count;
}

uint16_t ShmPort::receive_answers(std::span<rte_mbuf*> out) {
  uint16_t count = 0;
  while (count < out.size() && !answers_.empty()) {
    if (rte_mbuf* const frame = copy_in(*config_.pool, answers_.back()); frame != nullptr)
      out[count++] = frame;
    answers_.pop_back();
  }
  bump(stats_.rx_packets, count);
  return count;
}

uint16_t ShmPort::rx_burst(std::span<rte_mbuf*> out, Nanos now) {
  owner_.note_poll(now);
  const uint16_t count = receive(out);
  if (config_.via_switch && exits_due_.load(std::memory_order_relaxed) != kNever) [[unlikely]]
    postpone_exits(out.first(count));
  unread_.store(ready_ != 0 || !answers_.empty(), std::memory_order_relaxed);
  return count;
}

uint16_t ShmPort::receive(std::span<rte_mbuf*> out) {
  ready_ |= owner_.take_pending();
  // Before the rings are read: frames that a process wrote before its exit are received before its crash notification.
  const bool left_frames = frames_waiting_.load(std::memory_order_acquire);
  if (left_frames) [[unlikely]]
    ready_ |= owner_.take_pending();
  if (!answers_.empty()) [[unlikely]]
    return receive_answers(out);
  if (ready_ == 0) return left_frames ? receive_left_frames(out) : uint16_t{0};
  uint16_t count = 0;
  // Round robin, because one slot may fill the burst: starts after the slot with which the last poll started.
  const uint32_t begin = next_;
  bool first = true;
  for (uint64_t left = std::rotr(ready_, static_cast<int>(begin)); left != 0 && count < out.size();
       left &= left - 1) {
    const uint32_t slot = (static_cast<uint32_t>(std::countr_zero(left)) + begin) % 64;
    if (std::exchange(first, false)) next_ = (slot + 1) % 64;
    count = static_cast<uint16_t>(count + receive_from(slot, out.subspan(count)));
  }
  if (left_frames && ready_ == 0) [[unlikely]]
    count = static_cast<uint16_t>(count + receive_left_frames(out.subspan(count)));
  return count;
}

Nanos ShmPort::next_arrival() const {
  return unread_.load(std::memory_order_relaxed) || owner_.has_pending() ||
                 frames_waiting_.load(std::memory_order_relaxed)
             ? Nanos{0}
             : exits_due_.load(std::memory_order_relaxed);
}

// ------------------------------------------------------------------------------------------------ sending

// Whether the reader of a full ring has freed no space for kFullTimeout (kSwitchFullTimeout for the switch).
bool ShmPort::is_stuck(uint32_t slot, Link& link, Nanos now) {
  if (link.must_wake_reader(now)) owner_.notify(slot, true, now);
  if (link.full_at != link.out.freed()) {
    link.full_at = link.out.freed();
    link.full_since = now;
  }
  return now - link.full_since >= (config_.via_switch ? kSwitchFullTimeout : kFullTimeout);
}

// Adds a telemetry hop. The frame belongs to this process, so it is modified in place.
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

// `alone`: the frame has no other receiver.
ShmPort::Sent ShmPort::send_to(uint32_t slot, rte_mbuf& frame, bool alone, Nanos now) {
  if (slot == config_.slot || !owner_.is_taken(slot)) {
    drop(shm_stats_.no_receiver);
    return Sent::kDropped;
  }
  Link& to = link(slot);
  const bool gets_hop = config_.telemetry_port != 0 && alone;
  // Checked before the frame is modified: the caller offers a refused frame again, and it must not get a second hop.
  if (!to.out.has_space(std::min(frame.pkt_len + (gets_hop ? kMaxHopBytes : 0), kShmMostFrame))) {
    if (alone && !is_stuck(slot, to, now)) return Sent::kBackpressure;
    drop(shm_stats_.ring_full);
    return Sent::kDropped;
  }
  if (gets_hop) add_hop(frame, to.out.used(), now);
  note_written(to, slot, to.write(frame));
  return Sent::kYes;
}

// Marks the frame and updates counters, before the receiver sees the frame.
inline void ShmPort::note_written(Link& to, uint32_t slot, const ShmLink::Written& frame) {
  report_contact(slot);
  to.tx_bytes += frame.bytes.size();
  if (config_.marks && to.out.used_up_to(frame.end) > config_.kmin) {
    to.out.refresh();
    const uint64_t used = to.out.used_up_to(frame.end);
    const double span = static_cast<double>(config_.kmax - config_.kmin);
    const bool marked =
        used >= config_.kmax ||
        (used > config_.kmin && rng_.chance(static_cast<double>(used - config_.kmin) / span * config_.pmax));
    if (marked && mark_congestion(frame.bytes.data(), static_cast<uint32_t>(frame.bytes.size())))
      bump(shm_stats_.marked);
  }
  published_ |= slot_bit(slot);
}

PortQueue::DirectBuffer ShmPort::take_direct(const MacAddress& to, uint32_t bytes, Nanos now) {
  using enum DirectBuffer::Outcome;
  // Frames to this port itself are looped back by the caller; a switch would not return them.
  if (config_.via_switch && to == mac()) [[unlikely]]
    return {};
  const auto slot = next_slot(to);
  if (!slot || *slot == config_.slot || !owner_.is_taken(*slot) || bytes < kShmLeastFrame ||
      bytes > uint32_t{config_.mtu} + sizeof(EthernetHeader) + sizeof(VlanHeader))
    return {};
  Link& ring = link(*slot);
  if (rte_mbuf* const frame = ring.begin(bytes, *config_.pool); frame != nullptr) {
    frame->port = static_cast<uint16_t>(*slot);
    return {kTaken, frame};
  }
  if (is_stuck(*slot, ring, now)) return {};
  bump(stats_.tx_refused);
  return {kFull};
}

// Completes a frame of take_direct().
void ShmPort::commit(rte_mbuf& frame) {
  const uint32_t slot = frame.port;
  Link& to = link(slot);
  note_written(to, slot, to.commit(frame));
}

// Returns true if the frame is an address request and needs no transmission.
bool ShmPort::resolve(const rte_mbuf& frame) {
  const auto* const bytes = rte_pktmbuf_mtod(&frame, const uint8_t*);
  const uint16_t type = reinterpret_cast<const EthernetHeader*>(bytes)->ether_type.get();
  if (type == kEtherTypeIpv4) return false;  // nearly all frames
  ResolutionAnswer answer = answer_resolution({bytes, frame.data_len}, config_.slots);
  if (!answer.is_request) return false;
  const bool present =
      answer.slot != UINT32_MAX && answer.slot != config_.slot && owner_.is_taken(answer.slot);
  if (present && answers_.size() < kMaxAnswers) {
    answers_.push_back(std::move(answer.frame));
    unread_.store(true, std::memory_order_relaxed);
  }
  return present || !config_.via_switch;  // the address may exist beyond the switch
}

void ShmPort::send_to_all(rte_mbuf& frame, Nanos now) {
  for (uint32_t slot = 0; slot < config_.slots.size(); ++slot) {
    if (slot != config_.slot && owner_.is_taken(slot)) send_to(slot, frame, false, now);
  }
}

void ShmPort::publish(Nanos now) {
  for (; published_ != 0; published_ &= published_ - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(published_));
    Link& to = link(slot);
    to.publish();
    if (to.out.used() > shm_stats_.ring_peak.load(std::memory_order_relaxed)) {
      to.out.refresh();
      const uint64_t used = to.out.used();
      if (used > shm_stats_.ring_peak.load(std::memory_order_relaxed))
        shm_stats_.ring_peak.store(used, std::memory_order_relaxed);
    }
    owner_.notify(slot, to.take_urgent(), now);
  }
}

uint16_t ShmPort::tx_burst(std::span<rte_mbuf*> frames, Nanos now) {
  uint16_t count = 0;
  uint64_t sent = 0, bytes = 0;
  bool full = false;
  for (rte_mbuf*& frame : frames) {
    if (ShmLink::is_direct(*frame)) {
      ++sent;
      bytes += frame->pkt_len;
      commit(*std::exchange(frame, nullptr));
      ++count;
      continue;
    }
    if (exceeds_mtu(*frame, config_.mtu) || frame->data_len < kShmLeastFrame) {
      bump(stats_.tx_dropped);
      ++count;
      continue;
    }
    const MacAddress& to = rte_pktmbuf_mtod(frame, const EthernetHeader*)->destination;
    if (frame->data_len < kMaxRequestBytes && resolve(*frame)) {
      ++sent;
      bytes += frame->pkt_len;
    } else if (to.is_multicast() && !config_.via_switch) {
      send_to_all(*frame, now);
      ++sent;
      bytes += frame->pkt_len;
    } else if (const auto slot = next_slot(to)) {
      const Sent outcome = send_to(*slot, *frame, true, now);
      full = outcome == Sent::kBackpressure;
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

std::vector<Port::Detail> ShmPort::details() const {
  uint64_t fullest = 0;
  for (uint32_t slot = 0; slot < kShmSlots; ++slot) {
    const ShmRingControl& ring = owner_.segment().control(config_.slot, slot);
    const uint64_t head = ring.head.load(std::memory_order_acquire);
    const uint64_t used = ring.tail.load(std::memory_order_acquire) - head;
    if (used <= kShmRingBytes)
      fullest = std::max(fullest, used);  // otherwise another process has overwritten a position
  }
  return {{"marked", shm_stats_.marked},
          {"no_receiver", shm_stats_.no_receiver},
          {"ring_full", shm_stats_.ring_full},
          {"malformed", shm_stats_.malformed},
          {"wakes", wakes()},
          {"ring_bytes", fullest},
          {"ring_peak_bytes", shm_stats_.ring_peak},
          {"ring_size", kShmRingBytes}};
}

// ------------------------------------------------------------------------------------------------ peers

ShmPeerClock::Ring ShmPort::ring_to(uint32_t slot) {
  ShmRingWriter& out = link(slot).out;
  out.refresh();
  return {out.published(), out.freed()};
}

// The ring from the switch to the slot, in a network with a switch.
ShmPeerClock::Ring ShmPort::ring_behind_switch(uint32_t slot) const {
  const ShmRingControl& ring = owner_.segment().control(kShmSwitchSlot, slot);
  const uint64_t freed = ring.head.load(std::memory_order_acquire);
  return {ring.tail.load(std::memory_order_acquire), freed};
}

PeerTime ShmPort::time_of(const MacAddress& peer, Nanos now) {
  const auto slot = slot_of(peer);
  if (!config_.via_switch) {
    if (!slot || *slot == config_.slot) return {};
    return link(*slot).clock.read(owner_.segment().slot(*slot), ring_to(*slot), now);
  }
  // Frames pass the switch; the peer may be beyond an uplink.
  const PeerTime on_the_way = time_of_switch(now);
  if (!slot || *slot == config_.slot) return on_the_way;
  const PeerTime there = behind_[*slot].read(owner_.segment().slot(*slot), ring_behind_switch(*slot), now);
  return {.lost = on_the_way.lost + there.lost,
          .lost_at = std::max(on_the_way.lost_at, there.lost_at),
          .away = on_the_way.away + there.away,
          .away_at = std::max(on_the_way.away_at, there.away_at),
          .read_until = std::min(on_the_way.read_until, there.read_until)};
}

const PeerTime& ShmPort::time_of_switch(Nanos now) {
  return link(kShmSwitchSlot).clock.read(owner_.segment().slot(kShmSwitchSlot), ring_to(kShmSwitchSlot), now);
}

bool ShmPort::is_busy(const MacAddress& peer, Nanos now) {
  const auto slot = slot_of(peer);
  const auto busy = [&](uint32_t at, const ShmPeerClock& clock, bool unread) {
    return clock.is_busy(owner_.segment().slot(at), unread, now);
  };
  const bool is_member = slot && *slot != config_.slot;
  if (!config_.via_switch) return is_member && busy(*slot, link(*slot).clock, ring_to(*slot).unread());
  return busy(kShmSwitchSlot, link(kShmSwitchSlot).clock, ring_to(kShmSwitchSlot).unread()) ||
         (is_member && busy(*slot, behind_[*slot], ring_behind_switch(*slot).unread()));
}

uint16_t ShmPort::process_of(const MacAddress& peer) {
  const auto slot = slot_of(peer);
  return slot ? static_cast<uint16_t>(owner_.incarnation_of(*slot)) : uint16_t{0};
}

bool ShmPort::is_absent(const MacAddress& peer) {
  if (config_.via_switch) return false;
  const auto slot = slot_of(peer);
  return slot && *slot != config_.slot && exits_due_.load(std::memory_order_acquire) == kNever &&
         !owner_.is_taken(*slot);
}

std::optional<MacAddress> ShmPort::take_exit() {
  const Nanos now = owner_.last_poll();
  if (now < exits_due_.load(std::memory_order_acquire)) return std::nullopt;
  const std::scoped_lock guard(exits_mutex_);
  const Nanos switch_lost = config_.via_switch ? time_of_switch(now).lost : Nanos{0};
  for (Exit& exit : exits_) {
    if (exit.due == Nanos{0}) {
      exit.due = now + (exit.left_frames || config_.via_switch ? kExitDelay : Nanos{0});
      exit.latest = now + kMaxExitDelay;
    } else {
      exit.due += switch_lost - exit.switch_lost;
      exit.latest += switch_lost - exit.switch_lost;
    }
    exit.switch_lost = switch_lost;
  }
  std::ranges::sort(exits_, std::ranges::greater{}, &Exit::due);
  std::optional<MacAddress> exited;
  if (!exits_.empty() && exits_.back().due <= now) {
    exited = exits_.back().mac;
    exits_.pop_back();
    // The next owner is a new contact.
    if (const auto slot = slot_of(*exited)) reported_contacts_ &= ~slot_bit(*slot);
  }
  exits_due_.store(exits_.empty() ? kNever : exits_.back().due, std::memory_order_release);
  return exited;
}

void ShmPort::postpone_exits(std::span<rte_mbuf* const> received) {
  const std::scoped_lock guard(exits_mutex_);
  for (Exit& exit : exits_) {
    const auto is_from_it = [&](const rte_mbuf* frame) {
      return rte_pktmbuf_mtod(frame, const EthernetHeader*)->source == exit.mac;
    };
    if (exit.due != Nanos{0} && std::ranges::any_of(received, is_from_it))
      exit.due = std::min(owner_.last_poll() + kExitDelay, exit.latest);
  }
}

void ShmPort::note_exit(uint32_t slot, uint64_t incarnation, std::vector<std::vector<uint8_t>> left_frames) {
  owner_.release(slot, incarnation);
  // The process may have been killed after it published a frame and before it set the pending bit.
  owner_.set_pending(slot);
  {
    const std::scoped_lock guard(exits_mutex_);
    if (slot < config_.slots.size())  // the switch has no address
      exits_.push_back({.mac = config_.slots[slot].mac, .left_frames = !left_frames.empty()});
    std::ranges::move(left_frames, std::back_inserter(left_frames_));
    frames_waiting_.store(!left_frames_.empty(), std::memory_order_release);
    exits_due_.store(Nanos{0}, std::memory_order_release);
  }
  owner_.wake_all();
}

ShmPort::Owner ShmPort::owner_of(uint32_t slot) const {
  const ShmSlot& of = owner_.segment().slot(slot);
  return {of.incarnation.load(std::memory_order_acquire),
          static_cast<pid_t>(of.pid.load(std::memory_order_relaxed))};
}

}  // namespace roci
