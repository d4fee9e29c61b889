// Frames for the tests of the port layer.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "port/dpdk/eal.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "wire/headers/headers.hpp"

namespace roci {

inline std::shared_ptr<MbufPool> make_pool(uint32_t count, uint16_t data_room = 2048) {
  if (const Status status = start_eal(); !status) {
    ADD_FAILURE() << status.error().message;
    return nullptr;
  }
  auto pool = MbufPool::create("test", count, data_room);
  if (!pool) ADD_FAILURE() << pool.error().message;
  return pool ? *pool : nullptr;
}

// A frame of `length` bytes with a pattern derived from `tag`, in segments of at most `segment` bytes.
inline rte_mbuf* make_frame(const MbufPool& pool, uint32_t length, uint32_t tag,
                            uint32_t segment = UINT16_MAX) {
  rte_mbuf* head = nullptr;
  for (uint32_t at = 0; at < length; at += segment) {
    rte_mbuf* m = rte_pktmbuf_alloc(pool.get());
    if (m == nullptr) {
      rte_pktmbuf_free(head);
      return nullptr;
    }
    const uint32_t bytes = std::min(segment, length - at);
    char* data = rte_pktmbuf_append(m, static_cast<uint16_t>(bytes));
    for (uint32_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(tag * 7 + at + i);
    if (head == nullptr) {
      head = m;
    } else {
      rte_pktmbuf_chain(head, m);
    }
  }
  // Ensures that the pattern is not parsed as a VLAN tag.
  if (length >= 14) {
    rte_pktmbuf_mtod_offset(head, uint8_t*, 12)[0] = 0x08;
    rte_pktmbuf_mtod_offset(head, uint8_t*, 12)[1] = 0x00;
  }
  return head;
}

inline std::vector<uint8_t> bytes_of(const rte_mbuf* frame) {
  std::vector<uint8_t> bytes;
  for (; frame != nullptr; frame = frame->next) {
    const auto* data = rte_pktmbuf_mtod(frame, const uint8_t*);
    bytes.insert(bytes.end(), data, data + frame->data_len);
  }
  return bytes;
}

inline void free_all(std::span<rte_mbuf*> frames) {
  for (rte_mbuf* frame : frames) rte_pktmbuf_free(frame);
}

}  // namespace roci
