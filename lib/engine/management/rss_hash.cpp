#include "engine/management/rss_hash.hpp"

#include <rte_byteorder.h>
#include <rte_thash.h>

#include <cstring>
#include <span>

#include "wire/headers/headers.hpp"

namespace roci {
namespace {

// Input of the hash: at most two IPv6 addresses and both ports.
class Input {
 public:
  void add(std::span<const uint8_t> field) {
    std::memcpy(bytes_.data() + length_, field.data(), field.size());
    length_ += field.size();
  }
  // Bytes after the last field do not change the hash if they are 0.
  [[nodiscard]] uint32_t hash(const RssKey& key) const {
    std::array<uint32_t, sizeof(bytes_) / 4> words;
    std::memcpy(words.data(), bytes_.data(), bytes_.size());
    for (uint32_t& word : words) word = rte_be_to_cpu_32(word);
    alignas(uint32_t) const RssKey aligned = key;
    return rte_softrss(words.data(), static_cast<uint32_t>((length_ + 3) / 4), aligned.data());
  }

 private:
  std::array<uint8_t, 36> bytes_{};
  size_t length_ = 0;
};

struct PortFields {
  uint64_t source, destination;
};

PortFields port_fields(uint8_t protocol) {
  if (protocol == kProtocolTcp) return {IBV_RX_HASH_SRC_PORT_TCP, IBV_RX_HASH_DST_PORT_TCP};
  if (protocol == kProtocolUdp) return {IBV_RX_HASH_SRC_PORT_UDP, IBV_RX_HASH_DST_PORT_UDP};
  return {0, 0};
}

}  // namespace

uint32_t rss_hash(const SteeringKey& frame, uint64_t fields, const RssKey& key) {
  Input input;
  const auto add_addresses = [&](uint64_t source, uint64_t destination, size_t length) {
    if ((fields & source) != 0) input.add(std::span(frame.source_ip).first(length));
    if ((fields & destination) != 0) input.add(std::span(frame.destination_ip).first(length));
  };
  if (frame.ip_version == 4) add_addresses(IBV_RX_HASH_SRC_IPV4, IBV_RX_HASH_DST_IPV4, 4);
  if (frame.ip_version == 6) add_addresses(IBV_RX_HASH_SRC_IPV6, IBV_RX_HASH_DST_IPV6, 16);
  const PortFields ports = port_fields(frame.ports_of);
  if ((fields & ports.source) != 0) input.add(frame.source_port);
  if ((fields & ports.destination) != 0) input.add(frame.destination_port);
  return input.hash(key);
}

}  // namespace roci
