#include "port/shm/shm_link.hpp"

#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "wire/roce/roce_peek.hpp"

namespace roci {
namespace {

// Unread bytes of the ring above which acknowledgments also wake the receiver.
constexpr uint64_t kQuietAcks = 64 * 1024;

constexpr uint32_t kMaxAcknowledgment = 512;  // including extension blocks

// The copied start of a frame that is received in place: all headers of
// a packet with payload, and an extension block without hops.
constexpr uint32_t kHeadBytes = 256;
constexpr uint32_t kInPlaceBytes = 1024;  // shorter frames are copied

bool is_acknowledgment(const rte_mbuf& frame) {
  return frame.pkt_len <= kMaxAcknowledgment &&
         is_rc_acknowledgment({rte_pktmbuf_mtod(&frame, const uint8_t*), frame.data_len}, frame.pkt_len);
}

}  // namespace

// State of an mbuf whose data is in the ring. Stored in the mbuf's own data room, which is unused meanwhile.
struct ShmLink::DirectFrame {
  rte_mbuf_ext_shared_info shared;
  ShmLink* link;
  uint8_t* space;
  uint32_t bytes;
  uint32_t number;  // index into started_
  uint64_t end;     // writer position after the frame

  static DirectFrame& of(const rte_mbuf& frame) {
    return *reinterpret_cast<DirectFrame*>(rte_mbuf_buf_addr(const_cast<rte_mbuf*>(&frame), frame.pool));
  }
  // Called by DPDK when the frame is freed.
  static void on_free(void* /*buffer*/, void* frame) {
    const auto& direct = *static_cast<DirectFrame*>(frame);
    if (direct.link != nullptr) direct.link->cancel(direct);
  }
};

struct ShmLink::InPlaceFrame {
  rte_mbuf_ext_shared_info shared;

  static void on_free(void* /*bytes*/, void* link) {
    ShmLink& from = *static_cast<ShmLink*>(link);
    if (--from.in_place_ == 0) from.in.release();
  }
};

rte_mbuf* copy_in(const MbufPool& pool, std::span<const uint8_t> bytes) {
  rte_mbuf* const frame = rte_pktmbuf_alloc(pool.get());
  if (frame == nullptr) return nullptr;
  void* const to = rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size()));
  if (to == nullptr) {
    rte_pktmbuf_free(frame);
    return nullptr;
  }
  std::memcpy(to, bytes.data(), bytes.size());
  return frame;
}

ShmLink::~ShmLink() {
  skip_ended();
  assert(in_place_ == 0 && first_started_ == next_started_);
  for (uint32_t i = 0; i < spares_; ++i) rte_pktmbuf_free(spare_[i]);
}

// ------------------------------------------------------------------------------------------------ receiving

// Returns null if the frame must be copied.
rte_mbuf* ShmLink::refer_to(std::span<const uint8_t> record, const MbufPool& pool) {
  rte_mbuf* const head = copy_in(pool, record.first(kHeadBytes));
  if (head == nullptr) return nullptr;
  rte_mbuf* const rest = has_roce_headers({rte_pktmbuf_mtod(head, const uint8_t*), kHeadBytes},
                                          static_cast<uint32_t>(record.size()))
                             ? rte_pktmbuf_alloc(pool.get())
                             : nullptr;
  if (rest == nullptr) {
    rte_pktmbuf_free(head);
    return nullptr;
  }
  auto& frame = *new (rte_mbuf_buf_addr(rest, rest->pool)) InPlaceFrame{};
  frame.shared.free_cb = InPlaceFrame::on_free;
  frame.shared.fcb_opaque = this;
  rte_mbuf_ext_refcnt_set(&frame.shared, 1);
  const std::span<const uint8_t> bytes = record.subspan(kHeadBytes);
  auto* const start = const_cast<uint8_t*>(bytes.data());
  rte_pktmbuf_attach_extbuf(rest, start, reinterpret_cast<rte_iova_t>(start),
                            static_cast<uint16_t>(bytes.size()), &frame.shared);
  rest->data_len = static_cast<uint16_t>(bytes.size());
  head->next = rest;
  head->nb_segs = 2;
  head->pkt_len = static_cast<uint32_t>(record.size());
  ++in_place_;
  return head;
}

ShmLink::Received ShmLink::receive(std::span<rte_mbuf*> frames, const MbufPool& pool, uint16_t mtu,
                                   Payload payload, PortStats& stats) {
  Received received;
  uint64_t bytes = 0;
  const uint32_t most = uint32_t{mtu} + sizeof(EthernetHeader) + 2 * sizeof(VlanHeader);
  // The limit includes dropped frames: a sender that writes as fast as frames are dropped cannot block this thread.
  for (size_t dropped = 0; received.frames + dropped < frames.size();) {
    const auto record = in.front();
    if (record.empty()) {
      received.all = true;
      break;
    }
    rte_mbuf* frame = nullptr;
    if (record.size() <= most) {
      if (payload == Payload::kInPlace && record.size() >= kInPlaceBytes) frame = refer_to(record, pool);
      if (frame == nullptr) frame = copy_in(pool, record);
    }
    in.pop();
    if (frame == nullptr || exceeds_mtu(*frame, mtu)) {
      rte_pktmbuf_free(frame);
      bump(stats.rx_dropped);
      ++dropped;
      continue;
    }
    bytes += frame->pkt_len;
    frames[received.frames++] = frame;
  }
  if (in_place_ == 0) in.release();
  if (received.frames != 0) {
    bump(stats.rx_packets, received.frames);
    bump(stats.rx_bytes, bytes);
  }
  return received;
}

// ------------------------------------------------------------------------------------------------ sending

void ShmLink::note_written(const rte_mbuf& frame, uint64_t end) {
  urgent_ = urgent_ || out.used_up_to(end) > kQuietAcks || !is_acknowledgment(frame);
}

ShmLink::Written ShmLink::write(const rte_mbuf& frame) {
  uint8_t* const space = out.reserve(frame.pkt_len);
  uint8_t* at = space;
  for (const rte_mbuf* segment = &frame; segment != nullptr; segment = segment->next) {
    std::memcpy(at, rte_pktmbuf_mtod(segment, const void*), segment->data_len);
    at += segment->data_len;
  }
  note_written(frame, out.position());
  return {{space, frame.pkt_len}, out.position()};
}

rte_mbuf* ShmLink::begin(uint32_t frame_bytes, const MbufPool& pool) {
  if (next_started_ - first_started_ == kMaxUnfinished) return nullptr;
  rte_mbuf* const frame = spares_ != 0 ? spare_[spares_ - 1] : rte_pktmbuf_alloc(pool.get());
  if (frame == nullptr) return nullptr;
  const uint64_t position = out.position();
  uint8_t* const space = out.reserve(frame_bytes);
  if (space == nullptr) {
    if (spares_ == 0) rte_pktmbuf_free(frame);
    return nullptr;
  }
  DirectFrame* direct = &DirectFrame::of(*frame);
  if (spares_ != 0) {
    --spares_;
    frame->buf_addr = space;
    frame->buf_len = static_cast<uint16_t>(frame_bytes);
    frame->data_len = 0;
    frame->pkt_len = 0;
  } else {
    direct = new (direct) DirectFrame{};
    direct->shared.free_cb = DirectFrame::on_free;
    direct->shared.fcb_opaque = direct;
    rte_mbuf_ext_refcnt_set(&direct->shared, 1);
    rte_pktmbuf_attach_extbuf(frame, space, reinterpret_cast<rte_iova_t>(space),
                              static_cast<uint16_t>(frame_bytes), &direct->shared);
  }
  direct->link = this;
  direct->space = space;
  direct->bytes = frame_bytes;
  direct->number = next_started_;
  direct->end = out.position();
  started(next_started_++) = {position, false};
  return frame;
}

bool ShmLink::is_direct(const rte_mbuf& frame) {
  return RTE_MBUF_HAS_EXTBUF(&frame) && frame.shinfo->free_cb == DirectFrame::on_free;
}

ShmLink::Written ShmLink::commit(rte_mbuf& frame) {
  DirectFrame& direct = DirectFrame::of(frame);
  assert(direct.link == this && frame.pkt_len == direct.bytes && frame.nb_segs == 1);
  note_written(frame, direct.end);
  started(direct.number).ended = true;
  const Written written{{direct.space, direct.bytes}, direct.end};
  direct.link = nullptr;
  if (spares_ < kMaxSpare) {
    spare_[spares_++] = &frame;
  } else {
    rte_pktmbuf_free(&frame);
  }
  return written;
}

void ShmLink::cancel(const DirectFrame& frame) {
  if (frame.end == out.position()) {
    --next_started_;
    out.take_back(started(frame.number).position);
  } else {
    ShmRingWriter::cancel(frame.space, frame.bytes);
    started(frame.number).ended = true;
  }
}

void ShmLink::skip_ended() {
  while (first_started_ != next_started_ && started(first_started_).ended) ++first_started_;
}

void ShmLink::publish() {
  skip_ended();
  out.publish(first_started_ == next_started_ ? out.position() : started(first_started_).position);
}

bool ShmLink::take_urgent() { return std::exchange(urgent_, false); }

bool ShmLink::must_wake_reader(Nanos now) {
  if (out.refused() == refused_) return false;
  if (repaired_at_ != Nanos{0} && now - repaired_at_ < kRepairInterval) return false;
  refused_ = out.refused();
  repaired_at_ = now;
  return true;
}

uint64_t ShmLink::take_malformed() {
  const uint64_t all = in.malformed() + out.refused();
  return all - std::exchange(malformed_, all);
}

}  // namespace roci
