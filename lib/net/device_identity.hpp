// Vendor and part number that the device reports. The device has no registered numbers. By default it reports those of
// Linux's soft-RoCE (0xffffff, part 0): programs treat vendor 0 as an error, and know no NIC with these numbers. Programs
// that evaluate the numbers (perftest for inline data, and the calls ibv_wr_*) can be given those of a NIC.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace roci {

inline constexpr const char* kIdentityVariable = "ROCI_IDENTITY";

// vendor_id (24 bits) and vendor_part_id (31 bits, as in the kernel) of ibv_device_attr.
struct DeviceIdentity {
  uint32_t vendor = 0xffffff, part = 0;
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

// "VENDOR:PART", each decimal or, after 0x, hexadecimal; empty is the default.
Result<DeviceIdentity> parse_identity(std::string_view text);

}  // namespace roci
