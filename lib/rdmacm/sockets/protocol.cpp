#include "rdmacm/sockets/protocol.hpp"

#include <algorithm>
#include <cstring>

namespace roci::rdmacm::sockets {
namespace {

WireArea wire_area(const Area& area) { return {Be64{area.address}, Be32{area.key}, Be32{area.length}}; }
Area area_of(const WireArea& wire) { return {wire.address.get(), wire.key.get(), wire.length.get()}; }

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
