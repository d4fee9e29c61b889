#include "wire/icrc/icrc.hpp"

#ifndef ROCI_PORTABLE
#include <isa-l/crc.h>
#endif

#include <array>
#include <cstring>

#include "base/os/guarded_copy.hpp"
#include "wire/icrc/copy_crc.hpp"
#include "wire/icrc/crc32.hpp"
#include "wire/icrc/crc_sum.hpp"
#include "wire/icrc/icrc_pieces.hpp"

namespace roci {
namespace {

uint32_t load_le32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
}

using icrc_pieces::kIpv4Mask, icrc_pieces::kIpv6Mask;

// Bytes before the IP header, which in frames contain MAC addresses.
constexpr size_t kBefore = icrc_pieces::kBefore;
constexpr size_t kMaxIpHeader = 60;  // IPv4 with all options
constexpr size_t kMaxMasked = kBefore + kMaxIpHeader + sizeof(UdpHeader) + sizeof(Bth);

// One OR over the complete array. The CRC loads 16 bytes at a time and would stall on a byte that was just stored
// separately.
template <size_t kBytes>
void copy_masked(uint8_t* to, const uint8_t* from, const std::array<uint8_t, kBytes>& mask) {
  for (size_t i = 0; i < kBytes; ++i) to[i] = from[i] | mask[i];
}

// Copies the first bytes of the CRC input to `to`, which has kMaxMasked bytes. Returns their number.
uint32_t copy_masked_headers(const FrameView& view, uint8_t* to) {
  const uint8_t* from = view.frame + view.l3_offset - kBefore;
  if (view.ipv6) {
    copy_masked(to, from, kIpv6Mask);
    return kIpv6Mask.size();
  }
  copy_masked(to, from, kIpv4Mask);
  const uint32_t options = view.l4_offset - view.l3_offset - static_cast<uint32_t>(sizeof(Ipv4Header));
  if (options != 0) [[unlikely]] {
    constexpr size_t kFixed = kBefore + sizeof(Ipv4Header);
    std::memcpy(to + kFixed, from + kFixed, options);
    for (size_t i = kFixed; i < kIpv4Mask.size(); ++i) to[options + i] = from[options + i] | kIpv4Mask[i];
  }
  return static_cast<uint32_t>(kIpv4Mask.size()) + options;
}

const bool kSums = has_carryless_product();
#if defined(__x86_64__) && !defined(ROCI_PORTABLE)
const bool kWideRegisters = __builtin_cpu_supports("avx") != 0;
#endif

bool has_options(const FrameView& view) {
  return !view.ipv6 && view.l4_offset - view.l3_offset != sizeof(Ipv4Header);
}

ROCI_CARRYLESS Vector16 sum_headers(const FrameView& view, uint32_t behind) {
  const uint8_t* from = view.frame + view.l3_offset - kBefore;
  return view.ipv6 ? icrc_pieces::sum(icrc_pieces::load_ipv6(from), behind)
                   : icrc_pieces::sum(icrc_pieces::load_ipv4(from), behind);
}

ROCI_CARRYLESS uint32_t state_behind_headers(const FrameView& view) {
  return crc_of_sum(sum_headers(view, 0));
}

ROCI_CARRYLESS uint32_t sum_short(const FrameView& view, uint32_t begin, uint32_t length) {
  const Vector16 headers = sum_headers(view, length);
  return icrc_finish(crc_of_sum(crc_pieces(headers, view.frame + begin, length, 0)));
}

}  // namespace

uint32_t icrc_continue(uint32_t state, const uint8_t* data, size_t length) {
#ifdef ROCI_PORTABLE  // Debian has no static library of ISA-L
  return crc32_continue(state, data, length);
#else
  state = crc32_gzip_refl(state, data, length);
  // ISA-L 2.30 leaves the upper halves of wide registers in use. SSE instructions after it, as in this code, then take
  // two to three times as long.
#if defined(__x86_64__)
  if (kWideRegisters) asm volatile("vzeroupper");
#endif
  return state;
#endif
}

uint32_t icrc_headers(const FrameView& view) {
  alignas(16) uint8_t masked[kMaxMasked];
  const uint32_t length = copy_masked_headers(view, masked);
  return icrc_continue(0, masked, length);
}

uint32_t compute_icrc(const FrameView& view) {
  const uint32_t begin = view.bth_offset + static_cast<uint32_t>(sizeof(Bth));
  const uint32_t length = view.icrc_offset - begin;
  if (kSums && length <= icrc_pieces::kMaxBehind && !has_options(view)) return sum_short(view, begin, length);
  return compute_icrc_in_order(view);
}

uint32_t compute_icrc_in_order(const FrameView& view) {
  const uint32_t begin = view.bth_offset + static_cast<uint32_t>(sizeof(Bth));
  return icrc_finish(icrc_continue(icrc_headers(view), view.frame + begin, view.icrc_offset - begin));
}

uint32_t compute_icrc_copying(const FrameView& view, uint8_t* to) {
  const uint32_t begin = view.bth_offset + static_cast<uint32_t>(sizeof(Bth));
  const uint8_t* payload = view.frame + view.payload_offset;
  uint32_t state = kSums && !has_options(view) ? state_behind_headers(view) : icrc_headers(view);
  if (view.payload_offset != begin)
    state = icrc_continue(state, view.frame + begin, view.payload_offset - begin);
  if (copies_in_one_pass()) {
    state = copy_crc(state, to, payload, view.payload_length);
  } else {  // as copy_crc(), but without reading the copy, which may be unmapped
    guarded_copy(to, payload, view.payload_length);
    state = icrc_continue(state, payload, view.payload_length);
  }
  if (view.pad != 0) state = icrc_continue(state, payload + view.payload_length, view.pad);
  return icrc_finish(state);
}

uint32_t compute_icrc(const FrameView& view, const rte_mbuf* chain) {
  if (chain->nb_segs == 1) return compute_icrc(view);
  uint32_t state = icrc_headers(view);
  uint32_t skip = view.bth_offset + static_cast<uint32_t>(sizeof(Bth));
  uint32_t left = view.icrc_offset - skip;
  for (const rte_mbuf* seg = chain; seg != nullptr && left > 0; seg = seg->next) {
    const uint32_t here = rte_pktmbuf_data_len(seg);
    if (skip >= here) {
      skip -= here;
      continue;
    }
    const uint32_t take = here - skip < left ? here - skip : left;
    state = icrc_continue(state, rte_pktmbuf_mtod_offset(seg, const uint8_t*, skip), take);
    left -= take;
    skip = 0;
  }
  return icrc_finish(state);
}

uint32_t stored_icrc(const FrameView& view) { return load_le32(view.frame + view.icrc_offset); }

uint32_t stored_icrc(const FrameView& view, const rte_mbuf* chain) {
  uint8_t copy[kIcrcBytes];
  const void* at = rte_pktmbuf_read(chain, view.icrc_offset, kIcrcBytes, copy);
  return load_le32(static_cast<const uint8_t*>(at));
}

}  // namespace roci
