#include "rdmacm/sockets/protocol.hpp"

#include <cstring>

namespace roci::rdmacm::sockets {
namespace {

WireArea wire_area(const Area& area) { return {Be64{area.address}, Be32{area.key}, Be32{area.length}}; }
Area area_of(const WireArea& wire) { return {wire.address.get(), wire.key.get(), wire.length.get()}; }

}  // namespace

WireTerms to_wire(const Terms& terms) {
  WireTerms out;
  out.flags = static_cast<uint8_t>(WireTerms::kHasMappings | (terms.big_endian ? WireTerms::kBigEndian : 0));
  out.credits.set(terms.credits);
  out.mappings = scaled(terms.mappings);
  out.grants = wire_area(terms.grants);
  out.ring = wire_area(terms.ring);
  return out;
}

std::optional<Terms> from_wire(std::span<const uint8_t> data) {
  WireTerms wire;
  if (data.size() < sizeof wire) return std::nullopt;
  std::memcpy(&wire, data.data(), sizeof wire);
  if (wire.version != WireTerms::kVersion || wire.grants.length.get() == 0) return std::nullopt;
  Terms out{.big_endian = (wire.flags & WireTerms::kBigEndian) != 0,
            .credits = wire.credits.get(),
            .grants = area_of(wire.grants),
            .ring = area_of(wire.ring)};
  if ((wire.flags & WireTerms::kHasMappings) != 0) out.mappings = unscaled(wire.mappings);
  return out;
}

}  // namespace roci::rdmacm::sockets
