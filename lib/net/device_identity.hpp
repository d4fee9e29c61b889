// As which NIC's the device's numbers of vendor and part are shown. There is none that they could be the true ones of; programs
// that look at them, perftest for inline data and the calls ibv_wr_*, take a device with another's numbers for that.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace roci {

inline constexpr const char* kIdentityVariable = "ROCI_IDENTITY";

// ibv_device_attr's vendor_id (24 bits) and vendor_part_id (31 bits, which the kernel's are too).
struct DeviceIdentity {
  uint32_t vendor = 0, part = 0;
  friend bool operator==(const DeviceIdentity&, const DeviceIdentity&) = default;
};

// "VENDOR:PART", each decimal or behind 0x hexadecimal; empty is 0:0.
Result<DeviceIdentity> parse_identity(std::string_view text);

}  // namespace roci
