#include "transport/messages/message_packet.hpp"

#include <algorithm>
#include <array>

#include "base/os/guarded_access.hpp"
#include "transport/messages/scatter.hpp"

namespace roci {
namespace {

// Indexed by the position in the message: only, first, middle, last.
using OpcodesOfMessage = std::array<Opcode, 4>;
constexpr OpcodesOfMessage kSend = {Opcode::kRcSendOnly, Opcode::kRcSendFirst, Opcode::kRcSendMiddle,
                                    Opcode::kRcSendLast};
constexpr OpcodesOfMessage kSendImm = {Opcode::kRcSendOnlyImm, Opcode::kRcSendFirst, Opcode::kRcSendMiddle,
                                       Opcode::kRcSendLastImm};
constexpr OpcodesOfMessage kSendInv = {Opcode::kRcSendOnlyInv, Opcode::kRcSendFirst, Opcode::kRcSendMiddle,
                                       Opcode::kRcSendLastInv};
constexpr OpcodesOfMessage kWrite = {Opcode::kRcWriteOnly, Opcode::kRcWriteFirst, Opcode::kRcWriteMiddle,
                                     Opcode::kRcWriteLast};
constexpr OpcodesOfMessage kWriteImm = {Opcode::kRcWriteOnlyImm, Opcode::kRcWriteFirst,
                                        Opcode::kRcWriteMiddle, Opcode::kRcWriteLastImm};

// One packet each.
constexpr OpcodesOfMessage kAtomicWrite = {Opcode::kRcAtomicWrite};
constexpr OpcodesOfMessage kFlush = {Opcode::kRcFlush};

const OpcodesOfMessage& reliable_opcodes(ibv_wr_opcode request) {
  switch (request) {
    case IBV_WR_RDMA_WRITE:
      return kWrite;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return kWriteImm;
    case IBV_WR_SEND_WITH_IMM:
      return kSendImm;
    case IBV_WR_SEND_WITH_INV:
      return kSendInv;
    case IBV_WR_SEND:
      return kSend;
    default:
      return request == kWrFlush ? kFlush : kAtomicWrite;
  }
}

// Extended headers that most packets of messages lack.
constexpr HeaderSet kSeldom{Header::kXrcEth, Header::kFeth, Header::kImmDt, Header::kIeth};

}  // namespace

MessagePacket cut_message(const SendWqe& wqe, TransportClass service, uint32_t packet, uint32_t path_mtu) {
  const uint64_t offset = static_cast<uint64_t>(packet) * path_mtu;
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(path_mtu, wqe.length - offset));
  const bool last = offset + length == wqe.length;
  const size_t position = packet == 0 ? (last ? 0 : 1) : (last ? 3 : 2);
  return {.opcode = opcode_of(service, reliable_opcodes(wqe.opcode)[position]),
          .offset = offset,
          .length = length,
          .last = last,
          .solicited = last && (wqe.send_flags & IBV_SEND_SOLICITED) != 0 &&
                       wqe.opcode != IBV_WR_RDMA_WRITE && !wqe.is_placement()};
}

bool fill_payload(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe, uint64_t offset,
                  uint32_t length, RoceWriter::Open& open) {
  if (wqe.is_inline()) {
    RoceWriter::copy_payload(open, open.payload, wqe.inline_data() + offset, length);
    return true;
  }
  const bool allowed = for_each_sge(memory, pd, wqe.pieces(), offset, length, Access::kLocalRead,
                                    [&](const uint8_t* host, uint32_t at, uint32_t n) {
                                      RoceWriter::copy_payload(open, open.payload + at, host, n);
                                    });
  return !take_memory_fault() && allowed;
}

void put_xrc_eth(const SendWqe& wqe, RoceWriter::Open& open) {
  auto& header = open.header<XrcEth>(Header::kXrcEth);
  header.reserved = 0;
  header.srq.set(wqe.remote_srq.value());
}

bool fill_message_packet(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe,
                         const MessagePacket& packet, RoceWriter::Open& open) {
  const OpcodeInfo& info = *open.view.opcode;
  if (info.has(Header::kReth))
    RoceWriter::put_reth(open, wqe.remote_address, MemoryKey{wqe.rkey}, wqe.length);
  if (info.headers.has_any_of(kSeldom)) [[unlikely]] {
    if (info.has(Header::kXrcEth)) put_xrc_eth(wqe, open);
    if (info.has(Header::kFeth)) {
      open.header<Feth>(Header::kFeth).value.set(wqe.immediate);
      RoceWriter::put_reth(open, wqe.remote_address, MemoryKey{wqe.rkey},
                           static_cast<uint32_t>(wqe.compare_add));
    }
    if (info.has(Header::kImmDt))
      open.header<ImmDt>(Header::kImmDt).data.set(__builtin_bswap32(wqe.immediate));
    if (info.has(Header::kIeth)) open.header<Ieth>(Header::kIeth).rkey.set(wqe.immediate);
  }
  return fill_payload(memory, pd, wqe, packet.offset, packet.length, open);
}

bool has_memory(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe) {
  return wqe.is_inline() || for_each_sge(memory, pd, wqe.pieces(), 0, wqe.length, Access::kLocalRead,
                                         [](uint8_t*, uint32_t, uint32_t) {});
}

}  // namespace roci
