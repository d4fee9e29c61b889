// memif 2.0 as it lies in memory and goes over its socket: what a client says so that a server (DPDK's net_memif with
// role=server) takes frames from the client's memory and puts others into it. The client owns that memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace roci::bench {

inline constexpr uint32_t kMemifCookie = 0x3E31F20;
inline constexpr uint16_t kMemifVersion = 2 << 8;
inline constexpr uint16_t kRingWithoutInterrupts = 1;  // flag of a ring: its reader polls
inline constexpr uint16_t kRingOfClientsFrames = 1;  // flag of MemifAddRing; the other ring has the server's
inline constexpr uint16_t kDescriptorContinues = 1;  // flag: the frame goes on in the next buffer
inline constexpr std::size_t kMemifMessageBytes = 128;  // of every message, whatever it says

enum class MemifMessageType : uint16_t {
  kAck = 1,
  kHello,
  kInit,
  kAddRegion,
  kAddRing,
  kConnect,
  kConnected,
  kDisconnect,
};

// What goes behind the type in a message.
struct [[gnu::packed]] MemifHello {
  std::array<char, 32> name;
  uint16_t lowest_version, highest_version;
  uint16_t last_region;
  uint16_t last_server_ring, last_client_ring;
  uint8_t most_log2_ring_size;
};
struct [[gnu::packed]] MemifInit {
  uint16_t version = kMemifVersion;
  uint32_t interface = 0;
  uint8_t mode = 0;  // Ethernet
  std::array<char, 24> secret{};
  std::array<char, 32> name{};
};
struct [[gnu::packed]] MemifAddRegion {  // comes with the file of the memory
  uint16_t index;
  uint64_t size;
};
struct [[gnu::packed]] MemifAddRing {  // comes with an eventfd
  uint16_t flags;
  uint16_t index = 0;
  uint16_t region = 0;
  uint32_t offset;
  uint8_t log2_size;
  uint16_t private_header = 0;
};
struct [[gnu::packed]] MemifConnect {
  std::array<char, 32> interface_name{};
};
struct [[gnu::packed]] MemifDisconnect {
  uint32_t code;
  std::array<char, 96> reason;
};
static_assert(sizeof(MemifHello) == 43 && sizeof(MemifInit) == 63 && sizeof(MemifAddRegion) == 10 &&
              sizeof(MemifAddRing) == 13 && sizeof(MemifDisconnect) == 100);

struct MemifDescriptor {
  uint16_t flags;
  uint16_t region;
  uint32_t length;  // of the frame; of a buffer for the server, what it holds
  uint32_t offset;  // of the buffer in its region
  uint32_t metadata;
};
static_assert(sizeof(MemifDescriptor) == 16);

// Descriptors follow. The client writes `head`, the server `tail`; both count on and wrap at 65536.
struct MemifRing {
  alignas(64) uint32_t cookie;
  uint16_t flags;
  uint16_t head;
  alignas(64) uint16_t tail;
};
static_assert(sizeof(MemifRing) == 128 && offsetof(MemifRing, head) == 6 && offsetof(MemifRing, tail) == 64);

}  // namespace roci::bench
