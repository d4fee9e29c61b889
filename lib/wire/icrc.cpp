#include "wire/icrc.hpp"

#include <isa-l/crc.h>

#include <cstring>

namespace roci {
namespace {

uint32_t load_le32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 |
         static_cast<uint32_t>(p[3]) << 24;
}

// crc32 of eight 0xff bytes, in the inverted-at-both-ends form that crc32_gzip_refl takes and gives.
constexpr uint32_t kSeed = 0x2144df1c;

}  // namespace

uint32_t icrc_continue(uint32_t state, const uint8_t* data, size_t length) {
  return crc32_gzip_refl(state, data, length);
}

uint32_t icrc_headers(const FrameView& view) {
  uint8_t masked[60 + sizeof(UdpHeader) + sizeof(Bth)];  // an IPv4 header with all options, or IPv6
  const uint32_t length = view.bth_offset - view.l3_offset + static_cast<uint32_t>(sizeof(Bth));
  std::memcpy(masked, view.frame + view.l3_offset, length);
  if (view.ipv6) {
    masked[0] |= 0x0f;
    masked[1] = masked[2] = masked[3] = 0xff;
    masked[7] = 0xff;
  } else {
    masked[1] = 0xff;
    masked[8] = 0xff;
    masked[10] = masked[11] = 0xff;
  }
  uint8_t* udp = masked + (view.l4_offset - view.l3_offset);
  udp[6] = udp[7] = 0xff;
  udp[sizeof(UdpHeader) + 4] = 0xff;
  return icrc_continue(kSeed, masked, length);
}

uint32_t compute_icrc(const FrameView& view) {
  const uint32_t begin = view.bth_offset + static_cast<uint32_t>(sizeof(Bth));
  return icrc_finish(icrc_continue(icrc_headers(view), view.frame + begin, view.icrc_offset - begin));
}

uint32_t compute_icrc(const FrameView& view, const rte_mbuf* chain) {
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
