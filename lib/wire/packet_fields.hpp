// The fields of a packet by name, in wire order, with their places in the frame. One list from which packets
// are compared, differences are named, and captures are shown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wire/packet.hpp"

namespace roci {

struct PacketField {
  enum class Form : uint8_t {
    kNumber,  // shown in decimal
    kHex,     // shown in hexadecimal, `digits` wide
    kFlag,    // 0 or 1
    kText,    // an address, in `text`
    kBytes,   // `text` is their hexadecimal form
  };

  std::string name;     // "bth.psn"; the part before the dot is the header
  uint32_t offset = 0;  // of the first byte that holds a part of the field
  uint32_t length = 0;  // in bytes; flags and the like share theirs
  Form form = Form::kNumber;
  uint8_t digits = 0;
  uint64_t number = 0;
  std::string text{};

  [[nodiscard]] std::string value() const;  // for people
  [[nodiscard]] bool has_number() const { return form != Form::kText && form != Form::kBytes; }
};

std::vector<PacketField> packet_fields(const Packet& packet);

// One line for each field in which the packets differ, "bth.psn: 5 and 6", in wire order; a field that only
// one of them has is named with "absent".
std::vector<std::string> packet_differences(const Packet& first, const Packet& second);

// The name of the field that holds the byte at `offset` of the encoded packet; with several in one byte, all
// of their names. "beyond the frame" for an offset behind it.
std::string field_names_at(const Packet& packet, uint32_t offset);

std::string hex_text(std::span<const uint8_t> bytes);

}  // namespace roci
