// Work requests as packets. SENDs and WRITEs are cut alike on reliable and on unreliable connections (IBTA 9.7.3.2, 9.8.1).
#pragma once

#include <cstdint>

#include "memory/memory_table.hpp"
#include "transport/work_queue.hpp"
#include "wire/roce_writer.hpp"

namespace roci {

// One packet of a message.
struct MessagePacket {
  Opcode opcode;
  uint64_t offset = 0;  // of its payload in the message
  uint32_t length = 0;  // of its payload
  bool last = false;
  bool solicited = false;  // only where the peer's receive queue gets a completion (IBTA 9.2.3)
};

// Packet number `packet`, from 0 on, of a message on a connection of `service`, which is kRc, kUc or kXrc.
MessagePacket cut_message(const SendWqe& wqe, TransportClass service, uint32_t packet, uint32_t path_mtu);

// The payload of a packet: so many bytes of the request's message from `offset` on, which are inline or in its memory. False
// when that memory is not there (any more).
bool fill_payload(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe, uint64_t offset,
                  uint32_t length, RoceWriter::Open& open);

// Names the shared receive queue that the request is for, in a packet of XRC.
void put_xrc_eth(const SendWqe& wqe, RoceWriter::Open& open);

// Puts in the extended headers and the payload. False when the request's memory is not there any more.
bool fill_message_packet(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe,
                         const MessagePacket& packet, RoceWriter::Open& open);

// Whether all of the request's memory may be accessed, before anything of it leaves. Inline data needs no leave.
bool has_memory(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe);

}  // namespace roci
