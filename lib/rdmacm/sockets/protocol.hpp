// The protocol of sockets over RDMA as librdmacm of rdma-core speaks it (its docs/rsocket), so that peers may be either. Of streams:
// what both say of themselves when they connect, and the immediate data that tells what an RDMA WRITE was.
//
//   sender                                        receiver
//   ring of what is sent  ── data, "n bytes" ──►  half a ring at a time, which the receiver has granted
//   list of two grants    ◄── grant, "credits" ─  when half of its ring is free again, or half of its receives are used up
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/address.hpp"
#include "wire/endian.hpp"

namespace roci::rdmacm::sockets {

// Both as they lie in memory that the peer writes, in the byte order of its owner.
struct Area {
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length = 0;
};
static_assert(sizeof(Area) == 16);
struct Mapping {
  uint64_t offset = 0;
  Area area;
};
static_assert(sizeof(Mapping) == 24);

inline constexpr uint32_t kGrants = 2;  // in the list that a peer writes; the mappings lie behind it

enum class Operation : uint8_t { kData = 0, kCredits = 4, kMapping = 6, kControl = 7 };
enum class Control : uint32_t { kDisconnect = 0, kKeepAlive = 1, kShutdown = 2 };

inline constexpr uint32_t kOperandBits = 29;
inline constexpr uint32_t kMostOperand = (1U << kOperandBits) - 1;

constexpr uint32_t word(Operation operation, uint32_t operand) {
  return static_cast<uint32_t>(operation) << kOperandBits | (operand & kMostOperand);
}
constexpr Operation operation_of(uint32_t word) { return static_cast<Operation>(word >> kOperandBits); }
constexpr uint32_t operand_of(uint32_t word) { return word & kMostOperand; }

// What one side says of itself: private data of REQ and REP.
struct ConnectionData {
  bool big_endian = false;
  uint16_t credits = 0;   // receives that are posted
  uint16_t mappings = 0;  // places for them
  Area grants;            // the list; its length counts entries
  Area ring;              // the first grant
};

struct WireArea {
  Be64 address;
  Be32 key;
  Be32 length;
};
struct WireConnectionData {
  static constexpr uint8_t kVersion = 1;
  static constexpr uint8_t kBigEndian = 1, kHasMappings = 2;

  uint8_t version = kVersion;
  uint8_t flags = 0;
  Be16 credits;
  std::array<uint8_t, 3> reserved{};
  uint8_t mappings = 0;
  WireArea grants;
  WireArea ring;
};
static_assert(sizeof(WireConnectionData) == 40);

// Numbers of mappings are rounded to what fits into a byte: above 128 in units of 256.
constexpr uint8_t scaled(uint32_t count) {
  return static_cast<uint8_t>(count <= 128 ? count : 128 | (count >> 8));
}
constexpr uint16_t unscaled(uint8_t code) {
  return static_cast<uint16_t>(code <= 128 ? code : (code & 127) << 8);
}

WireConnectionData to_wire(const ConnectionData& data);
// Null: not this protocol.
std::optional<ConnectionData> from_wire(std::span<const uint8_t> data);

// What goes into the memory of a peer that counts bytes the other way.
constexpr Area swapped(const Area& area) {
  return {__builtin_bswap64(area.address), __builtin_bswap32(area.key), __builtin_bswap32(area.length)};
}
constexpr Mapping swapped(const Mapping& mapping) {
  return {__builtin_bswap64(mapping.offset), swapped(mapping.area)};
}

// Datagrams say in front of their bytes from which address and port of a socket they are.
struct DatagramSource {
  IpAddress address;
  uint16_t port = 0;

  friend auto operator<=>(const DatagramSource&, const DatagramSource&) = default;
};
inline constexpr size_t kV4DatagramHeader = 8, kV6DatagramHeader = 24;
inline constexpr size_t kDatagramBuffer = 2048;  // what every receiver takes, header included

size_t datagram_header_length(const DatagramSource& source);
void write_datagram_header(const DatagramSource& source, std::span<uint8_t> out);
// Null: none.
std::optional<DatagramSource> read_datagram_header(std::span<const uint8_t> data);

}  // namespace roci::rdmacm::sockets
