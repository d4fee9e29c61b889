// Fixture: address resolution of a host with a sink that records sent frames, driven by the test.
#pragma once

#include <functional>

#include "port/neighbors/neighbors.hpp"
#include "port/packets.hpp"
#include "wire/roce/frame.hpp"

namespace roci {

inline const MacAddress kMac = *MacAddress::parse("02:00:00:00:00:01");
inline const MacAddress kPeerMac = *MacAddress::parse("02:00:00:00:00:02");
inline const MacAddress kOtherMac = *MacAddress::parse("02:00:00:00:00:66");
inline const IpAddress kIp = *IpAddress::parse("10.0.0.1");
inline const IpAddress kPeer = *IpAddress::parse("10.0.0.2");
inline const IpAddress kIp6 = *IpAddress::parse("fd00::1");
inline const IpAddress kPeer6 = *IpAddress::parse("fd00::2");

class CollectingSink final : public FrameSink {
 public:
  explicit CollectingSink(std::shared_ptr<MbufPool> pool) : pool_(std::move(pool)) {}
  ~CollectingSink() override { clear(); }
  rte_mbuf* allocate() override { return dry ? nullptr : rte_pktmbuf_alloc(pool_->get()); }
  void send(rte_mbuf* frame) override { frames.push_back(frame); }
  void clear() {
    for (rte_mbuf* frame : frames) rte_pktmbuf_free(frame);
    frames.clear();
  }

  std::vector<rte_mbuf*> frames;
  bool dry = false;

 private:
  std::shared_ptr<MbufPool> pool_;
};

inline FrameView view_of(const rte_mbuf* frame) {
  return parse_frame(rte_pktmbuf_mtod(frame, const uint8_t*), frame->data_len, frame->pkt_len);
}
inline std::span<const uint8_t> body_of(const rte_mbuf* frame) {
  const FrameView view = view_of(frame);
  const auto* data = rte_pktmbuf_mtod(frame, const uint8_t*);
  const uint32_t offset = view.kind == FrameKind::kArp ? view.l3_offset : view.l4_offset;
  return {data + offset, frame->data_len - offset};
}

class NeighborsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pool_ = make_pool(500);
    sink_ = std::make_unique<CollectingSink>(pool_);
    config_.mac = kMac;
    config_.addresses = {*IpNetwork::parse("10.0.0.1/24"), *IpNetwork::parse("fd00::1/64")};
  }
  void TearDown() override {
    neighbors_.reset();
    sink_.reset();
    EXPECT_EQ(pool_->in_use(), 0U) << "a frame was lost";
  }

  Neighbors& host() {
    if (!neighbors_) {
      auto made = Neighbors::create(config_, *sink_);
      EXPECT_TRUE(made) << made.error().message;
      neighbors_ = std::move(*made);
    }
    return *neighbors_;
  }
  std::string creation_error() {
    const auto made = Neighbors::create(config_, *sink_);
    return made ? "it was made" : made.error().message;
  }

  // Receives a frame that `build` writes.
  bool receive(const std::function<uint32_t(std::span<uint8_t>)>& build, Nanos now) {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_->get());
    auto* data = rte_pktmbuf_mtod(frame, uint8_t*);
    const uint32_t length = build({data, 2048});
    rte_pktmbuf_append(frame, static_cast<uint16_t>(length));
    const bool handled = host().handle(view_of(frame), frame, now);
    rte_pktmbuf_free(frame);
    return handled;
  }
  bool receive_arp(const ArpMessage& arp, Nanos now, const MacAddress& to = MacAddress::broadcast(),
                   uint16_t vlan = 0) {
    return receive(
        [&](std::span<uint8_t> out) {
          return build_arp({to, arp.sender_mac, vlan}, arp, out);
        },
        now);
  }
  bool receive_nd(const NeighborMessage& nd, Nanos now, const MacAddress& to = kMac) {
    return receive([&](std::span<uint8_t> out) { return build_nd({to, kPeerMac, 0}, nd, out); }, now);
  }
  void arp_reply(Nanos now, const MacAddress& mac = kPeerMac) {
    receive_arp({ArpOperation::kReply, mac, kPeer, kMac, kIp}, now, kMac);
  }
  static NeighborMessage advertisement(std::optional<MacAddress> mac, bool solicited, bool override_cache) {
    NeighborMessage nd;
    nd.advertisement = true;
    nd.source = nd.target = kPeer6;
    nd.destination = kIp6;
    nd.link_layer = mac;
    nd.solicited = solicited;
    nd.override_cache = override_cache;
    return nd;
  }

  // The frames sent since the last call, as ARP.
  std::vector<std::pair<LinkHeader, ArpMessage>> sent_arp() {
    std::vector<std::pair<LinkHeader, ArpMessage>> all;
    for (rte_mbuf* frame : sink_->frames) {
      const FrameView view = view_of(frame);
      const auto arp = parse_arp(body_of(frame));
      EXPECT_TRUE(view.kind == FrameKind::kArp && arp);
      if (arp) all.push_back({{view.ethernet().destination, view.ethernet().source, view.vlan_id()}, *arp});
    }
    sink_->clear();
    return all;
  }
  std::vector<std::pair<MacAddress, NeighborMessage>> sent_nd() {
    std::vector<std::pair<MacAddress, NeighborMessage>> all;
    for (rte_mbuf* frame : sink_->frames) {
      const FrameView view = view_of(frame);
      const auto nd = parse_nd(view, body_of(frame));
      EXPECT_TRUE(nd);
      if (nd) all.push_back({view.ethernet().destination, *nd});
    }
    sink_->clear();
    return all;
  }

  // Polls at each deadline up to `until`, like a virtual runner. Returns the times at which frames were sent.
  std::vector<Nanos> run_until(Nanos until) {
    std::vector<Nanos> times;
    while (host().next_deadline() <= until) {
      const Nanos now = host().next_deadline();
      const size_t before = sink_->frames.size();
      host().poll(now);
      EXPECT_GT(host().next_deadline(), now) << "a poll leaves work behind for the same time";
      if (sink_->frames.size() > before) times.push_back(now);
    }
    return times;
  }

  std::shared_ptr<MbufPool> pool_;
  std::unique_ptr<CollectingSink> sink_;
  NeighborConfig config_;
  std::unique_ptr<Neighbors> neighbors_;
};

}  // namespace roci
