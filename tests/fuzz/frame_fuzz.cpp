// Fuzz target: random bytes as a frame. The parser reads nothing beyond them. An accepted frame is encoded to the
// same bytes again.
#include <cstdint>
#include <cstring>
#include <memory>

#include "fuzz/fuzz_target.hpp"
#include "wire/headers/checksum.hpp"
#include "wire/icrc/icrc.hpp"
#include "wire/net/steering_key.hpp"
#include "wire/roce/packet_fields.hpp"

namespace {

using namespace roci;
using test::require;

void check_frame(const uint8_t* data, uint32_t size) {
  const FrameView view = parse_frame(data, size, size, OpcodeRange::kWithPrivate);
  (void)frame_kind_name(view.kind);
  const auto packet = decode_packet({data, size});
  require(packet.has_value() == (view.kind == FrameKind::kRoce));
  if (!packet) return;
  require(view.payload_offset + view.payload_length + view.pad == view.icrc_offset);
  require(view.icrc_offset + kIcrcBytes <= size);
  (void)compute_icrc(view);
  (void)compute_udp_checksum(view);
  (void)check_payload(*view.opcode, view.payload_length, view.pad, 1024);
  const ByteVector again = encode_packet(*packet);
  require(again.size() == size && std::memcmp(again.data(), data, size) == 0);
  const auto fields = packet_fields(*packet);
  require(fields.back().offset + fields.back().length == size);
}

// The same with only the first `head` bytes accessible, as in the first segment of a chain.
void check_head(const uint8_t* data, uint32_t size, uint32_t head) {
  const auto part = std::make_unique<uint8_t[]>(head);
  std::memcpy(part.get(), data, head);
  const FrameView view = parse_frame(part.get(), head, size);
  if (view.kind == FrameKind::kRoce) require(view.payload_offset <= head);
}

rte_mbuf segment_of(uint8_t* bytes, uint32_t length) {
  rte_mbuf segment{};
  segment.buf_addr = bytes;
  segment.data_len = static_cast<uint16_t>(length);
  segment.pkt_len = length;
  segment.nb_segs = 1;
  return segment;
}

// The fields for flow rules do not depend on the segments of the frame.
void check_steering(const uint8_t* data, uint32_t size, uint32_t head) {
  const auto whole = std::make_unique<uint8_t[]>(size);
  const auto first = std::make_unique<uint8_t[]>(head);
  const auto second = std::make_unique<uint8_t[]>(size - head);
  std::memcpy(whole.get(), data, size);
  std::memcpy(first.get(), data, head);
  std::memcpy(second.get(), data + head, size - head);
  const rte_mbuf one = segment_of(whole.get(), size);
  rte_mbuf rest = segment_of(second.get(), size - head);
  rte_mbuf chain = segment_of(first.get(), head);
  chain.pkt_len = size;
  chain.nb_segs = 2;
  chain.next = &rest;
  const SteeringKey key = read_steering_key(one);
  require(read_steering_key(chain) == key);
  require(matches(key, key, SteeringKey{}) == (key == SteeringKey{}));
}

// Corrects the IPv4 checksum, which almost every change to the header breaks.
void repair_checksum(uint8_t* data, uint32_t size) {
  const FrameView view = parse_frame(data, size, size);
  if (view.kind != FrameKind::kBadIp || view.ipv6) return;
  const uint32_t header = (view.ipv4().version_ihl & 0xfU) * 4;
  if (header < sizeof(Ipv4Header) || view.l3_offset + header > size) return;
  uint8_t* checksum = data + view.l3_offset + 10;
  checksum[0] = checksum[1] = 0;
  const uint16_t sum = inet_checksum(data + view.l3_offset, header);
  std::memcpy(checksum, &sum, sizeof sum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0xffff) return 0;
  const auto length = static_cast<uint32_t>(size);
  check_frame(data, length);
  if (size == 0) return 0;
  ByteVector repaired(data, data + size);
  repair_checksum(repaired.data(), length);
  check_frame(repaired.data(), length);
  check_head(repaired.data(), length, data[size - 1] % (length + 1));
  check_steering(data, length, data[size - 1] % (length + 1));
  return 0;
}
