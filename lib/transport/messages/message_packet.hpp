// Segmentation of work requests into packets. RC and UC segment SENDs and WRITEs in the same way (IBTA 9.7.3.2, 9.8.1).
#pragma once

#include <cstdint>

#include "memory/memory_table.hpp"
#include "transport/queues/work_queue.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci {

// One packet of a message.
struct MessagePacket {
  Opcode opcode;
  uint64_t offset = 0;  // of its payload in the message
  uint32_t length = 0;  // of its payload
  bool last = false;
  bool solicited = false;  // only if the peer's receive queue gets a completion (IBTA 9.2.3)
};

// Packet number `packet`, starting at 0, of a message. `service` is kRc, kUc or kXrc.
MessagePacket cut_message(const SendWqe& wqe, TransportClass service, uint32_t packet, uint32_t path_mtu);

// Writes the payload of a packet: `length` bytes of the request's message from `offset` on, inline data or registered
// memory. False when that memory is not accessible (any more), or after a memory fault (base/os/guarded_access.hpp).
bool fill_payload(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe, uint64_t offset,
                  uint32_t length, RoceWriter::Open& open);

// Writes the XRCETH, which contains the peer's shared receive queue.
void put_xrc_eth(const SendWqe& wqe, RoceWriter::Open& open);

// Writes the extended headers and the payload. False when the request's memory is not accessible any more.
bool fill_message_packet(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe,
                         const MessagePacket& packet, RoceWriter::Open& open);

// Whether all of the request's memory is accessible, before its first packet is sent. Inline data needs no check.
bool has_memory(const MemoryTable& memory, PdNumber pd, const SendWqe& wqe);

}  // namespace roci
