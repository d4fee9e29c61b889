// Whatever bytes arrive, parse_frame() stays inside them, and what it calls RoCEv2 has its parts in order, inside the
// frame, with an ICRC that can be computed.
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "wire/frame.hpp"
#include "wire/icrc.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0xffff) return 0;
  // The sanitizer sees a read beyond an allocation of exactly this size.
  const auto frame = std::make_unique<uint8_t[]>(size);
  for (size_t i = 0; i < size; ++i) frame[i] = data[i];
  const auto length = static_cast<uint32_t>(size);

  const roci::FrameView view = roci::parse_frame(frame.get(), length, length);
  require(!roci::frame_kind_name(view.kind).empty());
  if (view.kind != roci::FrameKind::kRoce) return 0;
  require(view.opcode != nullptr);
  require(view.l3_offset < view.l4_offset && view.l4_offset < view.bth_offset);
  require(view.bth_offset + view.opcode->header_bytes == view.payload_offset);
  require(view.payload_offset + view.payload_length + view.pad == view.icrc_offset);
  require(view.icrc_offset + roci::kIcrcBytes <= length);
  require(view.pad < 4);
  // Reading the last byte of each extended header is the bounds check; the sum only keeps the reads.
  uint32_t sum = roci::compute_icrc(view) ^ roci::stored_icrc(view);
  for (uint32_t at = view.bth_offset; at < view.payload_offset; ++at) sum += frame[at];
  volatile uint32_t sink = sum;
  static_cast<void>(sink);
  return 0;
}
