// A header within the bytes of a frame.
#pragma once

#include <cstdint>
#include <span>

namespace roci {

// The header at `offset`; the caller has checked that the frame contains it. Header structs have alignment 1.
template <class Header>
const Header& header_at(std::span<const uint8_t> frame, uint32_t offset) {
  return *reinterpret_cast<const Header*>(frame.data() + offset);
}
template <class Header>
Header& header_at(uint8_t* frame, uint32_t offset) {
  return *reinterpret_cast<Header*>(frame + offset);
}

}  // namespace roci
