// Protocol of rsockets, compatible with librdmacm of rdma-core (docs/rsocket there), which peers may use. For streams:
// the connection data that both peers exchange, and the immediate data that specifies the type of an RDMA WRITE.
//
//   sender                                        receiver
//   send ring             ── data, "n bytes" ──►  half a ring at a time, which the receiver has granted
//   list of two grants    ◄── grant, "credits" ─  when half of its ring is free again, or half of its receives are used
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/headers/address.hpp"
#include "wire/headers/endian.hpp"

namespace roci::rdmacm::sockets {

// Formats in memory that the peer writes, in the byte order of the memory's owner.
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

inline constexpr uint32_t kGrants = 2;  // entries of the list that a peer writes; the mappings follow it

enum class Operation : uint8_t { kData = 0, kCredits = 4, kMapping = 6, kControl = 7 };
enum class Control : uint32_t { kDisconnect = 0, kKeepAlive = 1, kShutdown = 2 };

inline constexpr uint32_t kOperandBits = 29;
inline constexpr uint32_t kMaxOperand = (1U << kOperandBits) - 1;

constexpr uint32_t word(Operation operation, uint32_t operand) {
  return static_cast<uint32_t>(operation) << kOperandBits | (operand & kMaxOperand);
}
constexpr Operation operation_of(uint32_t word) { return static_cast<Operation>(word >> kOperandBits); }
constexpr uint32_t operand_of(uint32_t word) { return word & kMaxOperand; }

// Parameters of one peer: private data of REQ and REP.
struct ConnectionData {
  bool big_endian = false;
  uint16_t credits = 0;   // posted receives
  uint16_t mappings = 0;  // entries for mappings of the peer
  Area grants;            // the list; its length is the number of entries
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

// The number of mappings is rounded to fit a byte: above 128 in units of 256.
constexpr uint8_t scaled(uint32_t count) {
  return static_cast<uint8_t>(count <= 128 ? count : 128 | (count >> 8));
}
constexpr uint16_t unscaled(uint8_t code) {
  return static_cast<uint16_t>(code <= 128 ? code : (code & 127) << 8);
}

WireConnectionData to_wire(const ConnectionData& data);
// Returns null for another protocol.
std::optional<ConnectionData> from_wire(std::span<const uint8_t> data);

// Returns the mapping with this offset from a table in memory that the peer writes at any time, or null. The result is a
// copy that was checked after it was read.
std::optional<Mapping> find_mapping(std::span<uint64_t> table, uint64_t offset);

// Values written into the memory of a peer with the other byte order.
constexpr Area swapped(const Area& area) {
  return {__builtin_bswap64(area.address), __builtin_bswap32(area.key), __builtin_bswap32(area.length)};
}
constexpr Mapping swapped(const Mapping& mapping) {
  return {__builtin_bswap64(mapping.offset), swapped(mapping.area)};
}

// Source of a datagram: the address and port in the header of each datagram.
struct DatagramSource {
  IpAddress address;
  uint16_t port = 0;

  friend auto operator<=>(const DatagramSource&, const DatagramSource&) = default;
};
inline constexpr size_t kV4DatagramHeader = 8, kV6DatagramHeader = 24;
inline constexpr size_t kDatagramBuffer = 2048;  // buffer of each receiver, including the header

// Addresses in the network header of a received datagram, which the receiver of its packet has validated.
struct DatagramRoute {
  IpAddress source, destination;
};
inline constexpr size_t kNetworkHeader = 40;
// Reads the bytes before the datagram: an IPv6 header, or an IPv4 header in the last 20 bytes with the first 20 undefined
// (IBTA A17.4.5.1). Returns null for a header of the other IP version.
std::optional<DatagramRoute> read_datagram_route(std::span<const uint8_t, kNetworkHeader> header, bool v4);

size_t datagram_header_length(const DatagramSource& source);
void write_datagram_header(const DatagramSource& source, std::span<uint8_t> out);
// Returns null without a valid header.
std::optional<DatagramSource> read_datagram_header(std::span<const uint8_t> data);

}  // namespace roci::rdmacm::sockets
