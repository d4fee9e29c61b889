// The front of a frame that is edited in place: headers are put in or taken out near the beginning, and what moves is
// what stands in front of them. No payload is copied and nothing is allocated. The caller owns the first segment alone
// and has made sure of the headroom; without enough of it an edit changes nothing and says so.
#pragma once

#include <rte_mbuf.h>

#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>

namespace roci {

struct FrameFront {
  uint8_t* data = nullptr;   // first byte of the Ethernet header
  uint32_t length = 0;       // of the whole frame
  uint32_t head_length = 0;  // of what lies in one piece from `data` on: the first segment
  uint32_t headroom = 0;     // free bytes in front of `data`

  static FrameFront of(rte_mbuf& frame) {
    return {rte_pktmbuf_mtod(&frame, uint8_t*), frame.pkt_len, frame.data_len, frame.data_off};
  }
  // Tells the mbuf what the edits have made of it.
  void store(rte_mbuf& frame) const {
    frame.data_off = static_cast<uint16_t>(headroom);
    frame.data_len = static_cast<uint16_t>(head_length);
    frame.pkt_len = length;
  }

  [[nodiscard]] std::span<const uint8_t> head() const { return {data, head_length}; }

  // Makes room for `bytes` at the offset `at`, which is within the head. Their content is undefined. False, and nothing
  // changed, when the headroom is too small.
  [[nodiscard]] bool open_gap(uint32_t at, uint32_t bytes) {
    assert(at <= head_length);
    if (headroom < bytes) return false;
    std::memmove(data - bytes, data, at);
    data -= bytes;
    headroom -= bytes;
    head_length += bytes;
    length += bytes;
    return true;
  }
  // Takes `bytes` out at the offset `at`; both are within the head.
  void close_gap(uint32_t at, uint32_t bytes) {
    assert(at + bytes <= head_length);
    std::memmove(data + bytes, data, at);
    data += bytes;
    headroom += bytes;
    head_length -= bytes;
    length -= bytes;
  }
};

}  // namespace roci
