#include "net/device_identity.hpp"

#include <string>

#include "base/units.hpp"

namespace roci {
namespace {

constexpr int64_t kMaxVendor = 0xffffff;
constexpr int64_t kMaxPart = INT32_MAX;

}  // namespace

Result<DeviceIdentity> parse_identity(std::string_view text) {
  if (text.empty()) return DeviceIdentity{};
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return fail("'" + std::string(text) + "' is not VENDOR:PART, like 0x2c9:4119");
  const auto vendor = parse_integer(text.substr(0, colon), 0, kMaxVendor);
  if (!vendor) return fail(vendor.error().within("vendor"));
  const auto part = parse_integer(text.substr(colon + 1), 0, kMaxPart);
  if (!part) return fail(part.error().within("part"));
  return DeviceIdentity{static_cast<uint32_t>(*vendor), static_cast<uint32_t>(*part)};
}

}  // namespace roci
