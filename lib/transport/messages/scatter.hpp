// Copying between packets and the memory of scatter/gather lists. Every access is checked against its memory region.
#pragma once

#include <infiniband/verbs.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/os/guarded_access.hpp"
#include "base/os/guarded_copy.hpp"
#include "memory/memory_table.hpp"

namespace roci {

// Calls visit(pointer, length) for each contiguous piece of a frame, `length` bytes in total from `offset` on.
template <class F>
void for_each_piece(const rte_mbuf* frame, uint32_t offset, uint32_t length, F&& visit) {
  for (; frame != nullptr && length > 0; frame = frame->next) {
    const uint32_t here = rte_pktmbuf_data_len(frame);
    if (offset >= here) {
      offset -= here;
      continue;
    }
    const uint32_t take = here - offset < length ? here - offset : length;
    visit(rte_pktmbuf_mtod_offset(frame, const uint8_t*, offset), take);
    offset = 0;
    length -= take;
  }
}

// Copies the last piece of a message such that its final byte (the final 8, when they are aligned) becomes visible
// after all others: applications poll the end of a WRITE.
inline void copy_ending(uint8_t* to, const uint8_t* from, uint32_t length) {
  if (length == 0) return;
  if (length >= 8 && (reinterpret_cast<uintptr_t>(to) + length) % 8 == 0) {
    guarded_copy(to, from, length - 8);
    uint64_t word = 0;
    std::memcpy(&word, from + length - 8, 8);
    guarded_store_release(to + length - 8, word);
    return;
  }
  guarded_copy(to, from, length - 1);
  guarded_store_release(to + length - 1, from[length - 1]);
}

// What a null region contains.
inline constexpr std::array<uint8_t, 4096> kNullMemory{};

// Calls move() for `length` bytes of a null region, which are at `at` in the scatter list.
template <class F>
void move_zeros(uint32_t at, uint32_t length, F& move) {
  for (uint32_t done = 0; done < length;) {
    const uint32_t take = std::min(length - done, static_cast<uint32_t>(kNullMemory.size()));
    move(const_cast<uint8_t*>(kNullMemory.data()), at + done, take);  // only read
    done += take;
  }
}

// Iterates over `length` bytes of a scatter list from `offset` on. Calls move(host_pointer, list_offset, length) for
// each piece that its region permits. In a null region there are pieces for reading only. Returns false at the first
// piece that is not permitted (earlier ones have been moved), or when the list is too short.
template <class F>
bool for_each_sge(const MemoryTable& memory, PdNumber pd, std::span<const ibv_sge> list, uint64_t offset,
                  uint32_t length, Access access, F&& move) {
  uint32_t moved = 0;
  for (const ibv_sge& sge : list) {
    if (moved == length) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const auto here = static_cast<uint32_t>(sge.length - offset);
    const uint32_t take = here < length - moved ? here : length - moved;
    uint8_t* host = nullptr;
    const AccessOutcome outcome =
        memory.check(MemoryKey{sge.lkey}, pd, sge.addr + offset, take, access, &host);
    if (outcome == AccessOutcome::kAllowed) [[likely]] {
      move(host, moved, take);
    } else if (outcome != AccessOutcome::kNull) {
      return false;
    } else if (access == Access::kLocalRead) {
      move_zeros(moved, take, move);
    }
    moved += take;
    offset = 0;
  }
  return moved == length;
}

// Address of `length` bytes of a scatter list from `offset` on; null when they are not contiguous or not writable.
inline uint8_t* one_piece(const MemoryTable& memory, PdNumber pd, std::span<const ibv_sge> list,
                          uint64_t offset, uint32_t length) {
  uint8_t* place = nullptr;
  bool whole = false;
  for_each_sge(memory, pd, list, offset, length, Access::kLocalWrite,
               [&](uint8_t* host, uint32_t, uint32_t n) {
                 place = host;
                 whole = n == length;
               });
  return whole ? place : nullptr;
}

// Copies from a packet into memory. False also after a memory fault (base/os/guarded_access.hpp). The same applies to
// write_payload(). Either may then have written a part.
inline bool scatter(const MemoryTable& memory, PdNumber pd, std::span<const ibv_sge> list, uint64_t offset,
                    const rte_mbuf* frame, uint32_t frame_offset, uint32_t length) {
  const bool allowed = for_each_sge(
      memory, pd, list, offset, length, Access::kLocalWrite, [&](uint8_t* host, uint32_t at, uint32_t n) {
        uint32_t done = 0;
        for_each_piece(frame, frame_offset + at, n, [&](const uint8_t* from, uint32_t piece) {
          guarded_copy(host + done, from, piece);
          done += piece;
        });
      });
  return !take_memory_fault() && allowed;
}

// Copies all of `bytes` into memory, from the start of the list on.
[[gnu::noinline]] bool scatter_bytes(const MemoryTable& memory, PdNumber pd, std::span<const ibv_sge> list,
                                     std::span<const uint8_t> bytes);

// Copies the payload of a WRITE into memory that has been checked. `ending`: it contains the end of the message.
inline bool write_payload(uint8_t* where, const rte_mbuf* frame, uint32_t frame_offset, uint32_t length,
                          bool ending) {
  uint32_t done = 0;
  for_each_piece(frame, frame_offset, length, [&](const uint8_t* from, uint32_t piece) {
    if (ending && done + piece == length) {
      copy_ending(where + done, from, piece);
    } else {
      guarded_copy(where + done, from, piece);
    }
    done += piece;
  });
  return !take_memory_fault();
}

}  // namespace roci
