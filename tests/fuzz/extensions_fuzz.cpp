// Any bytes as an extension block, alone and in a packet: nothing outside them is read, and what is accepted can be
// read in full and is written to the same bytes again.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "wire/extension_auth.hpp"
#include "wire/icrc.hpp"
#include "wire/packet_fields.hpp"

namespace {

using namespace roci;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_block(std::span<const uint8_t> bytes, Behind behind, uint16_t allowed) {
  const ExtensionView view = parse_extensions(bytes, behind, allowed);
  (void)extension_outcome_name(view.outcome);
  if (!view.accepted()) return;
  require(view.bytes <= bytes.size() && view.bytes <= max_extension_bytes());
  require((view.types & ~allowed) == 0);
  const ExtensionBlock block = read_extensions(view);
  require(block.types() == view.types && block.bytes() == view.bytes);
  ByteVector again(view.bytes);
  require(write_extensions(block, again) == view.bytes);
  require(std::memcmp(again.data(), bytes.data(), view.bytes) == 0);
}

// The bytes behind the BTH of a packet with this opcode.
void check_packet(std::span<const uint8_t> bytes, const OpcodeInfo& info, bool ipv6) {
  Packet packet;
  packet.bth.opcode = info.opcode;
  packet.bth.reserved7 = Bth::kExtensions;
  if (ipv6) packet.ip = Ipv6Values{};
  packet.payload.assign(bytes.begin(), bytes.end());
  packet.finish();
  const ByteVector frame = encode_packet(packet);
  const auto length = static_cast<uint32_t>(frame.size());
  const FrameView view = parse_frame(frame.data(), length, length, OpcodeRange::kWithPrivate);
  if (view.kind != FrameKind::kRoce) return;
  const ExtendedPayload split = split_payload(view, length, known_extensions());
  require(split.payload_offset + split.payload_length + view.pad + kIcrcBytes == length);
  if (split.block.accepted() && split.block.has(ExtensionType::kAuth)) {
    AuthReceiver receiver(SipKey{});
    (void)receiver.check(view, split.block);
  }
  const auto decoded = decode_packet(frame);
  require(decoded && encode_packet(*decoded) == frame);
  const auto fields = packet_fields(*decoded);
  require(fields.back().offset + fields.back().length == length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1 || size > 2000) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  check_block(bytes, Behind::kNothing, known_extensions());
  check_block(bytes, Behind::kPayload, static_cast<uint16_t>(0x8000 | data[0]));
  const auto table = opcode_table();
  check_packet(bytes, table[data[0] % table.size()], data[0] >= 0x80);
  return 0;
}
