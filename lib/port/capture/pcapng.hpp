// Builder of a pcapng file in memory (draft-ietf-opsawg-pcapng): a section header, one description per interface,
// enhanced packet blocks with direction and nanosecond timestamps, and statistics at the end. DPDK's librte_pcapng
// takes timestamps from the TSC and requires DPDK port numbers; a capture in virtual time has neither.
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

  // Never grows beyond `capacity` bytes, except for headers and statistics.
  // The memory is reserved at once and touched as it fills.
  explicit PcapngBuffer(size_t capacity);

  // An interface must be added before the packets that refer to it. The first has number 0.
  uint32_t add_interface(std::string_view name);
  // Appends one frame with at most `snap_length` captured bytes.
  // Returns false, and changes nothing, if the buffer is full.
  bool add_packet(uint32_t interface, const rte_mbuf& frame, Direction direction, Nanos time,
                  uint32_t snap_length);
  // The same for a contiguous frame.
  bool add_packet(uint32_t interface, std::span<const uint8_t> frame, Direction direction, Nanos time,
                  uint32_t snap_length);
  void add_statistics(uint32_t interface, Nanos time, uint64_t received, uint64_t dropped);

  [[nodiscard]] size_t size() const { return bytes_.size(); }
  // Removes everything that was appended since size() returned `size`.
  void truncate(size_t size) { bytes_.resize(size); }

  // Writes the whole buffer to the start of the file and truncates the file to that length.
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
