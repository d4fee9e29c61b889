// A header within the bytes of a frame.
#pragma once

#include <cstdint>
#include <span>

namespace roci {

// The header at `offset`; the caller has checked that `bytes` contains it. Header structs have alignment 1.
template <class Header>
const Header& header_in(std::span<const uint8_t> bytes, uint32_t offset) {
  return *reinterpret_cast<const Header*>(bytes.data() + offset);
}

}  // namespace roci
