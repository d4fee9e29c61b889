// Front of a frame for in-place edits. Headers are inserted or removed near the beginning, and the bytes before them
// move. No payload is copied and nothing is allocated. The caller is the only owner of the first segment and provides
// the headroom. An edit without sufficient headroom fails and changes nothing.
#pragma once

#include <rte_mbuf.h>

#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>

namespace roci {

struct FrameFront {
  uint8_t* data = nullptr;   // first byte of the Ethernet header
  uint32_t length = 0;       // of the complete frame
  uint32_t head_length = 0;  // contiguous bytes from `data` on: the first segment
  uint32_t headroom = 0;     // free bytes before `data`

  static FrameFront of(rte_mbuf& frame) {
    return {rte_pktmbuf_mtod(&frame, uint8_t*), frame.pkt_len, frame.data_len, frame.data_off};
  }
  // Updates the mbuf after edits.
  void store(rte_mbuf& frame) const {
    frame.data_off = static_cast<uint16_t>(headroom);
    frame.data_len = static_cast<uint16_t>(head_length);
    frame.pkt_len = length;
  }

  [[nodiscard]] std::span<const uint8_t> head() const { return {data, head_length}; }

  // Inserts `bytes` bytes with undefined content at offset `at`, which is within the head. Returns false, without a
  // change, if the headroom is too small.
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
  // Removes `bytes` bytes at offset `at`; both are within the head.
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
