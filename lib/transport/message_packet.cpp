#include "transport/message_packet.hpp"

#include <algorithm>
#include <cstring>

#include "transport/scatter.hpp"

namespace roci {
namespace {

Opcode reliable_opcode(const SendWqe& wqe, bool first, bool last) {
  const bool imm = wqe.opcode == IBV_WR_SEND_WITH_IMM || wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool write = wqe.opcode == IBV_WR_RDMA_WRITE || wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (write) {
    if (first) return !last ? Opcode::kRcWriteFirst : imm ? Opcode::kRcWriteOnlyImm : Opcode::kRcWriteOnly;
    return !last ? Opcode::kRcWriteMiddle : imm ? Opcode::kRcWriteLastImm : Opcode::kRcWriteLast;
  }
  if (last && wqe.opcode == IBV_WR_SEND_WITH_INV)
    return first ? Opcode::kRcSendOnlyInv : Opcode::kRcSendLastInv;
  if (first) return !last ? Opcode::kRcSendFirst : imm ? Opcode::kRcSendOnlyImm : Opcode::kRcSendOnly;
  return !last ? Opcode::kRcSendMiddle : imm ? Opcode::kRcSendLastImm : Opcode::kRcSendLast;
}

// Services number the operations that they share alike; the top three bits are the service (IBTA table 35).
Opcode of_service(Opcode reliable, TransportClass service) {
  return static_cast<Opcode>(static_cast<unsigned>(service) << 5 | static_cast<unsigned>(reliable));
}
static_assert(static_cast<unsigned>(TransportClass::kRc) == 0);
static_assert((static_cast<unsigned>(TransportClass::kUc) << 5 |
               static_cast<unsigned>(Opcode::kRcWriteOnlyImm)) ==
              static_cast<unsigned>(Opcode::kUcWriteOnlyImm));

}  // namespace

MessagePacket cut_message(const SendWqe& wqe, TransportClass service, uint32_t packet, uint32_t path_mtu) {
  const uint64_t offset = static_cast<uint64_t>(packet) * path_mtu;
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(path_mtu, wqe.length - offset));
  const bool last = offset + length == wqe.length;
  return {.opcode = of_service(reliable_opcode(wqe, packet == 0, last), service),
          .offset = offset,
          .length = length,
          .last = last,
          .solicited = last && (wqe.send_flags & IBV_SEND_SOLICITED) != 0 && wqe.opcode != IBV_WR_RDMA_WRITE};
}

bool fill_payload(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe, uint64_t offset,
                  uint32_t length, RoceWriter::Open& open) {
  if (!wqe.is_inline()) return gather(memory, pd, wqe.pieces(), offset, length, open);
  std::memcpy(open.payload, wqe.inline_data() + offset, length);
  return true;
}

bool fill_message_packet(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe,
                         const MessagePacket& packet, RoceWriter::Open& open) {
  const OpcodeInfo& info = *open.view.opcode;
  if (info.has(Header::kReth)) {
    auto& reth = open.header<Reth>(Header::kReth);
    reth.va.set(wqe.remote_address);
    reth.rkey.set(wqe.rkey);
    reth.length.set(wqe.length);
  }
  if (info.has(Header::kImmDt)) open.header<ImmDt>(Header::kImmDt).data.set(__builtin_bswap32(wqe.immediate));
  if (info.has(Header::kIeth)) open.header<Ieth>(Header::kIeth).rkey.set(wqe.immediate);
  return fill_payload(memory, pd, wqe, packet.offset, packet.length, open);
}

bool has_memory(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe) {
  return wqe.is_inline() || for_each_sge(memory, pd, wqe.pieces(), 0, wqe.length,
                                         wqe.needs_response() ? Access::kLocalWrite : Access::kLocalRead,
                                         [](uint8_t*, uint32_t, uint32_t) {});
}

}  // namespace roci
