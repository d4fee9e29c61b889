// Vendor and part number that the device reports. The device has no numbers of its own. Programs that evaluate them
// (perftest for inline data, and the calls ibv_wr_*) can be given those of another NIC.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace roci {

inline constexpr const char* kIdentityVariable = "ROCI_IDENTITY";

// vendor_id (24 bits) and vendor_part_id (31 bits, as in the kernel) of ibv_device_attr.
struct DeviceIdentity {
  uint32_t vendor = 0, part = 0;
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

// "VENDOR:PART", each decimal or, after 0x, hexadecimal; empty is 0:0.
Result<DeviceIdentity> parse_identity(std::string_view text);

}  // namespace roci
