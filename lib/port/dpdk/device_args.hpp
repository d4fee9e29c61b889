// The text that specifies a DPDK device: "driver-and-number,key=value,key=value". Validates the options before the
// driver reads them, because drivers return only an error number, and adds the buffer sizes that follow from the MTU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace roci {

struct DeviceArgs {
  std::string name;  // "net_memif0" or "0000:01:00.0"
  std::vector<std::pair<std::string, std::string>> options;

  static Result<DeviceArgs> parse(const std::string& text);
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] std::optional<std::string> find(std::string_view key) const;
  void add(std::string key, std::string value) { options.emplace_back(std::move(key), std::move(value)); }

  [[nodiscard]] bool is_memif() const { return name.starts_with("net_memif"); }
  [[nodiscard]] bool is_af_packet() const { return name.starts_with("net_af_packet"); }
  [[nodiscard]] bool is_pci() const;
};

// The frame slot size that net_af_packet needs for this MTU, and how many bytes of a slot a received frame can occupy.
uint32_t af_packet_frame_size(uint16_t mtu);
uint32_t af_packet_data_bytes(uint32_t frame_size);

// Returns the options with the missing ones added, or an error if the options
// are invalid. Checks what can be checked without the driver.
Result<DeviceArgs> complete(DeviceArgs args, uint16_t mtu);

}  // namespace roci
