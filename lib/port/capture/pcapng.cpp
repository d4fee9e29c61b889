#include "port/capture/pcapng.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace roci {
namespace {

constexpr uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint32_t kInterfaceStatistics = 5;
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr uint16_t kLinkTypeEthernet = 1;
constexpr uint16_t kEndOfOptions = 0;

// Block type, two copies of the length; interface, time, two lengths; flags option, end of options.
constexpr size_t kPacketOverhead = 12 + 20 + 12;

constexpr size_t padded(size_t size) { return (size + 3) & ~size_t{3}; }

}  // namespace

PcapngBuffer::PcapngBuffer(size_t capacity) : capacity_(capacity) {
  bytes_.reserve(capacity + 1024);  // headers and statistics are always written
  const size_t block = begin_block(kSectionHeader);
  put32(kByteOrderMagic);
  put32(1);  // version 1.0
  const int64_t unknown_length = -1;
  put(&unknown_length, sizeof unknown_length);
  put_option(4, "Rocinante", 9);  // shb_userappl
  put_option(kEndOfOptions, nullptr, 0);
  end_block(block);
}

uint32_t PcapngBuffer::add_interface(std::string_view name) {
  const size_t block = begin_block(kInterfaceDescription);
  const uint16_t link[2] = {kLinkTypeEthernet, 0};
  put(link, sizeof link);
  put32(0);  // no snap length
  const uint8_t nanoseconds = 9;
  put_option(2, name.data(), name.size());  // if_name
  put_option(9, &nanoseconds, 1);           // if_tsresol
  put_option(kEndOfOptions, nullptr, 0);
  end_block(block);
  return interfaces_++;
}

bool PcapngBuffer::add_packet(uint32_t interface, const rte_mbuf& frame, Direction direction, Nanos time,
                              uint32_t snap_length) {
  return add_packet(interface, frame.pkt_len, direction, time, snap_length, [&](uint32_t left) {
    for (const rte_mbuf* segment = &frame; segment != nullptr && left > 0; segment = segment->next) {
      const uint32_t bytes = std::min<uint32_t>(left, segment->data_len);
      put(rte_pktmbuf_mtod(segment, const uint8_t*), bytes);
      left -= bytes;
    }
  });
}

bool PcapngBuffer::add_packet(uint32_t interface, std::span<const uint8_t> frame, Direction direction,
                              Nanos time, uint32_t snap_length) {
  return add_packet(interface, static_cast<uint32_t>(frame.size()), direction, time, snap_length,
                    [&](uint32_t captured) { put(frame.data(), captured); });
}

// copy(captured) appends `captured` bytes of the frame.
template <class Copy>
bool PcapngBuffer::add_packet(uint32_t interface, uint32_t length, Direction direction, Nanos time,
                              uint32_t snap_length, Copy&& copy) {
  const uint32_t captured = std::min(length, snap_length);
  if (bytes_.size() + padded(captured) + kPacketOverhead > capacity_) return false;
  const size_t block = begin_block(kEnhancedPacket);
  put32(interface);
  put_time(time);
  put32(captured);
  put32(length);
  copy(captured);
  bytes_.resize(bytes_.size() + padded(captured) - captured);
  const uint32_t flags = static_cast<uint32_t>(direction);
  put_option(2, &flags, sizeof flags);  // epb_flags
  put_option(kEndOfOptions, nullptr, 0);
  end_block(block);
  return true;
}

void PcapngBuffer::add_statistics(uint32_t interface, Nanos time, uint64_t received, uint64_t dropped) {
  const size_t block = begin_block(kInterfaceStatistics);
  put32(interface);
  put_time(time);
  put_option(4, &received, sizeof received);  // isb_ifrecv
  put_option(5, &dropped, sizeof dropped);    // isb_ifdrop
  put_option(kEndOfOptions, nullptr, 0);
  end_block(block);
}

Status PcapngBuffer::write_to(int descriptor) const {
  size_t done = 0;
  while (done < bytes_.size()) {
    const ssize_t written =
        pwrite(descriptor, bytes_.data() + done, bytes_.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(std::strerror(errno), errno);
    done += static_cast<size_t>(written);
  }
  if (ftruncate(descriptor, static_cast<off_t>(done)) != 0) return fail(std::strerror(errno), errno);
  return {};
}

void PcapngBuffer::put(const void* data, size_t size) {
  const size_t at = bytes_.size();
  bytes_.resize(at + size);
  if (size > 0) std::memcpy(bytes_.data() + at, data, size);
}

void PcapngBuffer::put_option(uint16_t code, const void* data, size_t size) {
  const uint16_t head[2] = {code, static_cast<uint16_t>(size)};
  put(head, sizeof head);
  put(data, size);
  bytes_.resize(bytes_.size() + padded(size) - size);
}

void PcapngBuffer::put_time(Nanos time) {
  const auto stamp = static_cast<uint64_t>(time.count());
  put32(static_cast<uint32_t>(stamp >> 32));
  put32(static_cast<uint32_t>(stamp));
}

size_t PcapngBuffer::begin_block(uint32_t type) {
  const size_t begin = bytes_.size();
  put32(type);
  put32(0);  // length; end_block() sets it
  return begin;
}

void PcapngBuffer::end_block(size_t begin) {
  const auto length = static_cast<uint32_t>(bytes_.size() - begin + 4);
  put32(length);
  std::memcpy(bytes_.data() + begin + 4, &length, sizeof length);
}

}  // namespace roci
