// Builds a pcapng file in memory: a section header, one description per interface, enhanced packet blocks
// with nanosecond stamps and direction, statistics at the end (draft-ietf-opsawg-pcapng). DPDK's
// librte_pcapng stamps with the processor's counter and wants DPDK's port numbers; captures of a virtual
// clock have neither.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"

namespace roci {

class PcapngBuffer {
 public:
  enum class Direction : uint8_t { kInbound = 1, kOutbound = 2 };  // as in epb_flags

  // Never grows beyond `capacity` bytes, which are reserved at once and touched as they fill.
  explicit PcapngBuffer(size_t capacity);

  // Interfaces come before the packets that name them; the first is 0.
  uint32_t add_interface(std::string_view name);
  // Appends one frame of at most `snap_length` captured bytes; false, and nothing changes, when there is no
  // room.
  bool add_packet(uint32_t interface, const rte_mbuf& frame, Direction direction, Nanos time,
                  uint32_t snap_length);
  // The same for a frame in one piece.
  bool add_packet(uint32_t interface, std::span<const uint8_t> frame, Direction direction, Nanos time,
                  uint32_t snap_length);
  void add_statistics(uint32_t interface, Nanos time, uint64_t received, uint64_t dropped);

  [[nodiscard]] size_t size() const { return bytes_.size(); }
  // Forgets what was added since size() was `size`.
  void truncate(size_t size) { bytes_.resize(size); }

  // Writes everything to the file, from its start.
  [[nodiscard]] Status write_to(int descriptor) const;

 private:
  void put(const void* data, size_t size);
  void put32(uint32_t value) { put(&value, sizeof value); }
  void put_option(uint16_t code, const void* data, size_t size);
  void put_time(Nanos time);
  template <class Copy>
  bool add_packet(uint32_t interface, uint32_t length, Direction direction, Nanos time, uint32_t snap_length,
                  Copy&& copy);
  size_t begin_block(uint32_t type);
  void end_block(size_t begin);

  size_t capacity_;
  uint32_t interfaces_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace roci
