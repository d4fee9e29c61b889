#include "port/shm_link.hpp"

#include <cstring>
#include <utility>

#include "wire/roce_glance.hpp"

namespace roci {
namespace {

// Acknowledgements wake the receiver anyway when so many bytes of them wait.
constexpr uint64_t kQuietAcks = 64 * 1024;

constexpr uint32_t kLongestAcknowledgment = 512;  // with extensions

bool is_acknowledgment(const rte_mbuf& frame) {
  return frame.pkt_len <= kLongestAcknowledgment &&
         is_rc_acknowledgment({rte_pktmbuf_mtod(&frame, const uint8_t*), frame.data_len}, frame.pkt_len);
}

}  // namespace

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

ShmLink::Received ShmLink::receive(std::span<rte_mbuf*> frames, const MbufPool& pool, uint16_t mtu,
                                   PortStats& stats) {
  Received received;
  uint64_t bytes = 0;
  const uint32_t most = uint32_t{mtu} + sizeof(EthernetHeader) + 2 * sizeof(VlanHeader);
  // Bounded by what is dropped too: a sender that writes as fast as frames are dropped cannot keep the thread here.
  for (size_t dropped = 0; received.frames + dropped < frames.size();) {
    const auto record = in.front();
    if (record.empty()) {
      received.all = true;
      break;
    }
    rte_mbuf* const frame = record.size() <= most ? copy_in(pool, record) : nullptr;
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
  in.release();
  if (received.frames != 0) {
    bump(stats.rx_packets, received.frames);
    bump(stats.rx_bytes, bytes);
  }
  return received;
}

std::span<uint8_t> ShmLink::write(const rte_mbuf& frame) {
  uint8_t* const room = out.reserve(frame.pkt_len);
  uint8_t* at = room;
  for (const rte_mbuf* segment = &frame; segment != nullptr; segment = segment->next) {
    std::memcpy(at, rte_pktmbuf_mtod(segment, const void*), segment->data_len);
    at += segment->data_len;
  }
  urgent_ = urgent_ || out.used() > kQuietAcks || !is_acknowledgment(frame);
  return {room, frame.pkt_len};
}

bool ShmLink::take_urgent() { return std::exchange(urgent_, false); }

uint64_t ShmLink::take_malformed() {
  const uint64_t all = in.malformed() + out.refused();
  return all - std::exchange(malformed_, all);
}

}  // namespace roci
