#include "port/sim/bit_errors.hpp"

#include <algorithm>
#include <array>

#include "wire/headers/headers.hpp"

namespace roci {

bool is_private(const rte_mbuf* frame) {
  for (; frame != nullptr; frame = frame->next) {
    if (!RTE_MBUF_DIRECT(frame) || rte_mbuf_refcnt_read(frame) != 1) return false;
  }
  return true;
}

rte_mbuf* own_frame(rte_mbuf* frame, rte_mempool* copies) {
  if (is_private(frame)) return frame;
  rte_mbuf* copy = copies == nullptr ? nullptr : rte_pktmbuf_copy(frame, copies, 0, UINT32_MAX);
  rte_pktmbuf_free(frame);
  return copy;
}

void flip_bit(rte_mbuf* frame, uint32_t bit) {
  uint32_t byte = bit / 8;
  while (frame != nullptr && byte >= frame->data_len) {
    byte -= frame->data_len;
    frame = frame->next;
  }
  if (frame != nullptr)
    *rte_pktmbuf_mtod_offset(frame, uint8_t*, byte) ^= static_cast<uint8_t>(1U << bit % 8);
}

bool flip_random_bits(rte_mbuf* frame, unsigned most, Rng& rng) {
  constexpr uint32_t kSpared = sizeof(EthernetHeader) * 8;
  const uint32_t bits = frame->pkt_len * 8;
  if (bits <= kSpared || most == 0) return false;
  const uint64_t space = std::min<uint64_t>({most, kMaxBitErrors, bits - kSpared});
  const auto count = static_cast<unsigned>(rng.between(1, space));
  std::array<uint32_t, kMaxBitErrors> chosen;
  for (unsigned n = 0; n < count;) {
    const auto bit = static_cast<uint32_t>(rng.between(kSpared, bits - 1));
    const auto end = chosen.begin() + n;
    if (std::find(chosen.begin(), end, bit) != end) continue;  // flipping a bit twice would restore it
    chosen[n++] = bit;
    flip_bit(frame, bit);
  }
  return true;
}

}  // namespace roci
