#include "rdmacm/sockets/protocol.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "wire/headers/checksum.hpp"

namespace roci::rdmacm::sockets {
namespace {

WireArea wire_area(const Area& area) { return {Be64{area.address}, Be32{area.key}, Be32{area.length}}; }
Area area_of(const WireArea& wire) { return {wire.address.get(), wire.key.get(), wire.length.get()}; }

constexpr size_t kIpv4At = 20, kIpv4Source = 32, kIpv4Destination = 36;
constexpr size_t kIpv6Source = 8, kIpv6Destination = 24;
constexpr uint8_t kIpv4WithoutOptions = 0x45;

IpAddress v4_at(std::span<const uint8_t> bytes, size_t at) {
  Be32 address;
  std::memcpy(&address, &bytes[at], sizeof address);
  return IpAddress::from_v4(address.get());
}

IpAddress v6_at(std::span<const uint8_t> bytes, size_t at) {
  IpAddress out;
  std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(at), out.bytes.size(), out.bytes.begin());
  return out;
}

}  // namespace

WireConnectionData to_wire(const ConnectionData& data) {
  WireConnectionData out;
  out.flags = static_cast<uint8_t>(WireConnectionData::kHasMappings |
                                   (data.big_endian ? WireConnectionData::kBigEndian : 0));
  out.credits.set(data.credits);
  out.mappings = scaled(data.mappings);
  out.grants = wire_area(data.grants);
  out.ring = wire_area(data.ring);
  return out;
}

std::optional<ConnectionData> from_wire(std::span<const uint8_t> data) {
  WireConnectionData wire;
  if (data.size() < sizeof wire) return std::nullopt;
  std::memcpy(&wire, data.data(), sizeof wire);
  if (wire.version != WireConnectionData::kVersion || wire.grants.length.get() == 0) return std::nullopt;
  ConnectionData out{.big_endian = (wire.flags & WireConnectionData::kBigEndian) != 0,
                     .credits = wire.credits.get(),
                     .grants = area_of(wire.grants),
                     .ring = area_of(wire.ring)};
  if ((wire.flags & WireConnectionData::kHasMappings) != 0) out.mappings = unscaled(wire.mappings);
  return out;
}

std::optional<Mapping> find_mapping(std::span<uint64_t> table, uint64_t offset) {
  std::array<uint64_t, sizeof(Mapping) / sizeof(uint64_t)> words;
  for (; table.size() >= words.size(); table = table.subspan(words.size())) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = std::atomic_ref<uint64_t>(table[i]).load(std::memory_order_relaxed);
    const auto one = std::bit_cast<Mapping>(words);
    if (offset >= one.offset && offset - one.offset < one.area.length) return one;
  }
  return std::nullopt;
}

std::optional<DatagramRoute> read_datagram_route(std::span<const uint8_t, kNetworkHeader> header, bool v4) {
  const bool like_v6 = header[0] >> 4 == 6;
  // The undefined bytes before an IPv4 header may look like the start of an IPv6 header.
  const bool is_v4 = header[kIpv4At] == kIpv4WithoutOptions &&
                     (!like_v6 || inet_checksum(&header[kIpv4At], header.size() - kIpv4At) == 0);
  if (v4 != is_v4 || (!is_v4 && !like_v6)) return std::nullopt;
  if (v4) return DatagramRoute{v4_at(header, kIpv4Source), v4_at(header, kIpv4Destination)};
  return DatagramRoute{v6_at(header, kIpv6Source), v6_at(header, kIpv6Destination)};
}

size_t datagram_header_length(const DatagramSource& source) {
  return source.address.is_v4() ? kV4DatagramHeader : kV6DatagramHeader;
}

void write_datagram_header(const DatagramSource& source, std::span<uint8_t> out) {
  const bool v4 = source.address.is_v4();
  std::ranges::fill(out, uint8_t{0});
  out[0] = v4 ? 4 : 6;
  out[1] = static_cast<uint8_t>(out.size());
  out[2] = static_cast<uint8_t>(source.port >> 8);
  out[3] = static_cast<uint8_t>(source.port);
  const std::span address(source.address.bytes);
  std::ranges::copy(v4 ? address.last(4) : address, v4 ? out.begin() + 4 : out.begin() + 8);
}

std::optional<DatagramSource> read_datagram_header(std::span<const uint8_t> data) {
  if (data.size() < kV4DatagramHeader) return std::nullopt;
  DatagramSource out;
  out.port = static_cast<uint16_t>(data[2] << 8 | data[3]);
  if (data[0] == 4 && data[1] == kV4DatagramHeader) {
    Be32 address;
    std::memcpy(&address, &data[4], sizeof address);
    out.address = IpAddress::from_v4(address.get());
    return out;
  }
  if (data[0] != 6 || data[1] != kV6DatagramHeader || data.size() < kV6DatagramHeader) return std::nullopt;
  std::copy_n(data.begin() + 8, out.address.bytes.size(), out.address.bytes.begin());
  if (out.address.is_v4()) return std::nullopt;  // an IPv4-mapped address belongs into the short header
  return out;
}

}  // namespace roci::rdmacm::sockets
