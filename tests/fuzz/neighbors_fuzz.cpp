// Fuzz target for address resolution: frames, lookups and passing time. The host must keep its own addresses and
// static entries, limit its table, and lose no buffer.
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/mbuf_pool.hpp"
#include "port/neighbors/neighbors.hpp"
#include "wire/roce/frame.hpp"

namespace roci::test {
namespace {

class Sink final : public FrameSink {
 public:
  explicit Sink(rte_mempool* pool) : pool_(pool) {}
  rte_mbuf* allocate() override { return rte_pktmbuf_alloc(pool_); }
  void send(rte_mbuf* frame) override {
    // The host's own frames must be well-formed.
    const FrameView view =
        parse_frame(rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len, frame->pkt_len);
    require(view.kind == FrameKind::kArp || view.kind == FrameKind::kIpv4 || view.kind == FrameKind::kIpv6,
            "a host sends well-formed frames");
    rte_pktmbuf_free(frame);
  }

 private:
  rte_mempool* pool_;
};

// One of few addresses, so that requests and replies match.
IpAddress some_address(uint8_t n) {
  if ((n & 1) != 0) return IpAddress::from_v4(0x0a000000U + (n >> 1));
  IpAddress address = require(IpAddress::parse("fd00::"));
  address.bytes[15] = n >> 1;
  return address;
}

void deliver(Neighbors& host, rte_mempool* pool, std::span<const uint8_t> bytes, size_t split, Nanos now) {
  rte_mbuf* frame = rte_pktmbuf_alloc(pool);
  require(frame != nullptr, "no buffer is lost");
  split = std::min(split, bytes.size());
  std::memcpy(rte_pktmbuf_append(frame, static_cast<uint16_t>(split)), bytes.data(), split);
  if (split < bytes.size()) {
    rte_mbuf* second = rte_pktmbuf_alloc(pool);
    require(second != nullptr, "no buffer is lost");
    std::memcpy(rte_pktmbuf_append(second, static_cast<uint16_t>(bytes.size() - split)), &bytes[split],
                bytes.size() - split);
    rte_pktmbuf_chain(frame, second);
  }
  const FrameView view =
      parse_frame(rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len, frame->pkt_len);
  host.handle(view, frame, now);
  rte_pktmbuf_free(frame);
}

void run(Input input) {
  static const std::shared_ptr<MbufPool> pool = [] {
    EalConfig config;
    config.memory_mib = 64;
    require(start_eal(config));
    return require(MbufPool::create("fuzz", 64, 2048));
  }();
  Sink sink(pool->get());
  const MacAddress mac = MacAddress::local(1);
  const StaticNeighbor fixed{some_address(0x21), MacAddress::local(0x21)};
  NeighborConfig config;
  config.mac = mac;
  config.addresses = {require(IpNetwork::parse("10.0.0.1/24")), require(IpNetwork::parse("fd00::1/64"))};
  config.static_entries = {fixed};
  config.capacity = 8;
  const auto host = require(Neighbors::create(config, sink));
  std::vector<NeighborRef> held;
  Nanos now{0};
  while (!input.empty()) {
    switch (input.byte() & 7) {
      case 0:
        now += 100ms * input.byte();
        host->poll(now);
        require(host->next_deadline() > now, "a poll does all that is due");
        break;
      case 1: {
        const Lookup lookup = host->resolve(some_address(input.byte()), now);
        if (lookup.entry != nullptr && held.size() < 6) held.push_back(host->hold(*lookup.entry));
        break;
      }
      case 2:
        if (!held.empty()) held.erase(held.begin() + input.byte() % static_cast<std::ptrdiff_t>(held.size()));
        break;
      case 3:
        if (!held.empty()) host->use(*held.back(), now);
        break;
      case 4: {  // a well-formed ARP message with fields from the input
        const uint8_t flags = input.byte();
        const ArpMessage arp{(flags & 1) != 0 ? ArpOperation::kReply : ArpOperation::kRequest,
                             MacAddress::local(input.byte()), some_address(input.byte() | 1U), mac,
                             some_address(input.byte() | 1U)};
        uint8_t bytes[64];
        const uint32_t length = build_arp({mac, arp.sender_mac, 0}, arp, bytes);
        deliver(*host, pool->get(), {bytes, length}, length, now);
        break;
      }
      case 5: {  // the same for ND
        NeighborMessage nd;
        const uint8_t flags = input.byte();
        nd.advertisement = (flags & 1) != 0;
        nd.solicited = (flags & 2) != 0;
        nd.override_cache = (flags & 4) != 0;
        if ((flags & 8) != 0) nd.link_layer = MacAddress::local(input.byte());
        nd.source = some_address(input.byte() & 0xfeU);
        nd.destination = some_address(2);
        nd.target = some_address(input.byte() & 0xfeU);
        uint8_t bytes[128];
        const uint32_t length = build_nd({mac, MacAddress::local(9), 0}, nd, bytes);
        deliver(*host, pool->get(), {bytes, length}, length, now);
        break;
      }
      default: {
        const size_t length = input.byte() * 4U;
        const size_t split = input.byte() * 4U;
        deliver(*host, pool->get(), input.take(length), split, now);
      }
    }
    require(host->table().size() <= host->table().capacity(), "the table is bounded");
  }
  require(host->resolve(some_address(3), now).entry->mac == mac, "our own address is ours");
  require(host->resolve(fixed.address, now).entry->mac == fixed.mac, "static entries stay");
  held.clear();
  require(pool->in_use() == 0, "no buffer is lost");
}

}  // namespace
}  // namespace roci::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  roci::test::run({data, size});
  return 0;
}
