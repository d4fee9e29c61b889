// Fields of a packet by name, in wire order, with their offsets in the frame. Packet comparison, reports of differences
// and display of captures use this list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wire/roce/packet.hpp"

namespace roci {

struct PacketField {
  enum class Form : uint8_t {
    kNumber,  // shown in decimal
    kHex,     // shown in hexadecimal, `digits` wide
    kFlag,    // 0 or 1
    kText,    // an address, in `text`
    kBytes,   // hexadecimal, in `text`
  };

  std::string name;     // "bth.psn"; the part before the dot is the header
  uint32_t offset = 0;  // of the first byte that contains a part of the field
  uint32_t length = 0;  // in bytes; flags and other bit fields share bytes
  Form form = Form::kNumber;
  uint8_t digits = 0;
  uint64_t number = 0;
  std::string text{};

  [[nodiscard]] std::string value() const;  // as displayed to users
  [[nodiscard]] bool has_number() const { return form != Form::kText && form != Form::kBytes; }
};

std::vector<PacketField> packet_fields(const Packet& packet);

// Returns a line for each field that differs, such as "bth.psn: 5 and 6", in wire order. A field that only one packet
// has is reported with "absent".
std::vector<std::string> packet_differences(const Packet& first, const Packet& second);

// Returns the name of the field with the byte at `offset` of the encoded packet, or the names of all fields that share
// the byte. Returns "beyond the frame" for an offset after its end.
std::string field_names_at(const Packet& packet, uint32_t offset);

std::string hex_text(std::span<const uint8_t> bytes);

}  // namespace roci
