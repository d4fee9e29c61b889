// memif 2.0: memory layout and socket messages of a client. Its server (DPDK's net_memif with role=server) receives
// frames from the client's memory and writes frames into it. The client owns that memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace roci::bench {

inline constexpr uint32_t kMemifCookie = 0x3E31F20;
inline constexpr uint16_t kMemifVersion = 2 << 8;
inline constexpr uint16_t kRingWithoutInterrupts = 1;   // ring flag: the reader polls
inline constexpr uint16_t kRingOfClientsFrames = 1;     // flag of MemifAddRing: client to server
inline constexpr uint16_t kDescriptorContinues = 1;     // descriptor flag: continued in the next buffer
inline constexpr std::size_t kMemifMessageBytes = 128;  // size of every message

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

// Message bodies, which follow the type.
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
struct [[gnu::packed]] MemifAddRegion {  // sent with the file descriptor of the memory
  uint16_t index;
  uint64_t size;
};
struct [[gnu::packed]] MemifAddRing {  // sent with an eventfd
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
  uint32_t length;  // of the frame; in a buffer for the server, its capacity
  uint32_t offset;  // of the buffer in its region
  uint32_t metadata;
};
static_assert(sizeof(MemifDescriptor) == 16);

// Followed by descriptors. The client writes `head`, the server `tail`; both are running counts modulo 65536.
struct MemifRing {
  alignas(64) uint32_t cookie;
  uint16_t flags;
  uint16_t head;
  alignas(64) uint16_t tail;
};
static_assert(sizeof(MemifRing) == 128 && offsetof(MemifRing, head) == 6 && offsetof(MemifRing, tail) == 64);

}  // namespace roci::bench
