// Direct buffers: frames that the sender writes into the receiver's ring and that are received in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/rng.hpp"
#include "port/shm/shm_network.hpp"
#include "support/sanitizer.hpp"

namespace roci {
namespace {

using Outcome = PortQueue::DirectBuffer::Outcome;

class ShmDirectTest : public test::ShmNetworkTest {
 protected:
  void SetUp() override {
    ShmNetworkTest::SetUp();
    open_ports(3, 3);
    ports_[1]->receive_in_place();
  }

  Bytes roce(uint32_t payload, uint32_t number) const {
    rte_mbuf* const frame = roce_to(0, mac(1), payload, number);
    Bytes bytes = bytes_of(frame);
    rte_pktmbuf_free(frame);
    return bytes;
  }
  // A direct buffer of port 0 for `to` with these bytes.
  rte_mbuf* direct(const Bytes& bytes, uint32_t to = 1) const {
    const auto buffer = ports_[0]->take_direct(mac(to), static_cast<uint32_t>(bytes.size()), now_);
    EXPECT_EQ(buffer.outcome, Outcome::kTaken);
    if (buffer.frame == nullptr) return nullptr;
    fill(*buffer.frame, bytes);
    return buffer.frame;
  }
  static void fill(rte_mbuf& frame, const Bytes& bytes) {
    char* const room = rte_pktmbuf_append(&frame, static_cast<uint16_t>(bytes.size()));
    ASSERT_NE(room, nullptr);
    std::memcpy(room, bytes.data(), bytes.size());
  }
  void send_all(std::vector<rte_mbuf*> frames) const {
    ASSERT_EQ(ports_[0]->tx_burst(frames, now_), frames.size());
  }
  uint64_t unread() const {
    const ShmRingControl& ring = segment_->control(0, 1);
    return ring.tail.load() - ring.head.load();
  }

  Nanos now_ = 1s;
};

TEST_F(ShmDirectTest, direct_and_copied_frames_arrive_unchanged_and_in_order) {
  std::vector<Bytes> sent;
  for (uint32_t number = 0; number < 30; ++number) {
    sent.push_back(roce(40 + number * 140, number));
    if (number % 3 == 0) {
      send_all({test::to_mbuf(*pool_, sent.back())});
    } else {
      send_all({direct(sent.back())});
    }
  }
  EXPECT_EQ(receive_all(1, now_), sent);
  EXPECT_TRUE(receive_all(2, now_).empty());
  EXPECT_EQ(ports_[0]->stats().tx_packets, 30U);
  EXPECT_EQ(ports_[1]->stats().rx_packets, 30U);
}

TEST_F(ShmDirectTest, staged_buffers_arrive_in_allocation_order) {
  std::vector<Bytes> sent;
  std::vector<rte_mbuf*> staged;
  for (uint32_t number = 0; number < 64; ++number) {
    sent.push_back(roce(1000 + number * 4, number));
    staged.push_back(direct(sent.back()));
  }
  EXPECT_TRUE(receive_all(1, now_).empty()) << "not sent yet";
  send_all(staged);
  EXPECT_EQ(receive_all(1, now_), sent);
}

TEST_F(ShmDirectTest, frame_after_an_unsent_buffer_waits_for_it) {
  const Bytes first = roce(500, 1), second = roce(500, 2);
  rte_mbuf* const staged = direct(first);
  send_all({test::to_mbuf(*pool_, second)});
  EXPECT_TRUE(receive_all(1, now_).empty());
  send_all({staged});
  EXPECT_EQ(receive_all(1, now_), (std::vector<Bytes>{first, second}));
}

TEST_F(ShmDirectTest, freed_buffer_sends_nothing) {
  const Bytes kept = roce(500, 1);
  rte_pktmbuf_free(direct(roce(500, 0)));
  rte_mbuf* const canceled = direct(roce(4000, 0));
  rte_mbuf* const staged = direct(kept);
  rte_pktmbuf_free(canceled);  // a later buffer follows
  send_all({staged});
  EXPECT_EQ(receive_all(1, now_), std::vector<Bytes>{kept});
  EXPECT_EQ(unread(), 0U);
  EXPECT_EQ(ports_[1]->shm_stats().malformed, 0U);
}

TEST_F(ShmDirectTest, frame_after_a_freed_buffer_is_delivered) {
  const Bytes other = roce(500, 1);
  rte_mbuf* const staged = direct(roce(500, 0));
  send_all({test::to_mbuf(*pool_, other)});
  rte_pktmbuf_free(staged);
  send_all({direct(other)});
  EXPECT_EQ(receive_all(1, now_), (std::vector<Bytes>{other, other}));
}

// Fails in builds with assertions (asan): the first buffer ends as a canceled frame, the second is taken back.
TEST_F(ShmDirectTest, port_closes_after_its_buffers_were_freed_in_allocation_order) {
  rte_mbuf* const first = direct(roce(500, 0));
  rte_mbuf* const second = direct(roce(500, 0));
  rte_pktmbuf_free(first);
  rte_pktmbuf_free(second);
  ports_.erase(ports_.begin());
  EXPECT_EQ(receive_all(0, now_), std::vector<Bytes>{});  // of the port that was the second
}

TEST_F(ShmDirectTest, returns_no_buffer_for_an_invalid_destination_or_length) {
  EXPECT_EQ(ports_[0]->take_direct(mac(0), 100, now_).outcome, Outcome::kUnavailable);
  EXPECT_EQ(ports_[0]->take_direct(mac(7), 100, now_).outcome, Outcome::kUnavailable);
  EXPECT_EQ(ports_[0]->take_direct(mac(1), kMtu + 19, now_).outcome, Outcome::kUnavailable);
  EXPECT_EQ(ports_[0]->take_direct(mac(1), kShmLeastFrame - 1, now_).outcome, Outcome::kUnavailable);
  EXPECT_EQ(ports_[0]->take_direct(MacAddress::broadcast(), 100, now_).outcome, Outcome::kUnavailable);
  ports_.pop_back();
  EXPECT_EQ(ports_[0]->take_direct(mac(2), 100, now_).outcome, Outcome::kUnavailable);
}

TEST_F(ShmDirectTest, full_ring_reports_full_then_unavailable_after_the_timeout) {
  const Bytes bytes = roce(4000, 1);
  const auto size = static_cast<uint32_t>(bytes.size());
  uint32_t sent = 0;
  for (auto buffer = ports_[0]->take_direct(mac(1), size, now_); buffer.frame != nullptr;
       buffer = ports_[0]->take_direct(mac(1), size, now_)) {
    fill(*buffer.frame, bytes);
    send_all({buffer.frame});
    ++sent;
  }
  EXPECT_EQ(sent, kShmRingBytes / shm_record_bytes(size));
  EXPECT_EQ(ports_[0]->take_direct(mac(1), size, now_).outcome, Outcome::kFull);
  now_ += ShmPort::kFullTimeout - Nanos{1};
  EXPECT_EQ(ports_[0]->take_direct(mac(1), size, now_).outcome, Outcome::kFull);
  now_ += Nanos{1};
  EXPECT_EQ(ports_[0]->take_direct(mac(1), size, now_).outcome, Outcome::kUnavailable);
  EXPECT_EQ(receive_all(1, now_).size(), sent);
  send_all({direct(bytes)});
  EXPECT_EQ(receive_all(1, now_), std::vector<Bytes>{bytes});
}

TEST_F(ShmDirectTest, payload_of_a_long_packet_is_received_in_place) {
  const Bytes bytes = roce(4000, 1);
  send_all({direct(bytes)});
  std::array<rte_mbuf*, 8> burst{};
  ASSERT_EQ(ports_[1]->rx_burst(burst, now_), 1);
  ASSERT_EQ(burst[0]->nb_segs, 2);
  const auto* const payload = rte_pktmbuf_mtod(burst[0]->next, const std::byte*);
  EXPECT_GE(payload, segment_->ring(0, 1));
  EXPECT_LT(payload, segment_->ring(0, 1) + kShmRingBytes);
  EXPECT_EQ(bytes_of(burst[0]), bytes);
  EXPECT_GT(unread(), 0U) << "its room is in use";
  rte_pktmbuf_free(burst[0]);
  EXPECT_EQ(unread(), 0U);
}

TEST_F(ShmDirectTest, headers_of_an_in_place_packet_are_copied) {
  const Bytes bytes = roce(4000, 1);
  send_all({direct(bytes)});
  std::array<rte_mbuf*, 8> burst{};
  ASSERT_EQ(ports_[1]->rx_burst(burst, now_), 1);
  std::memset(segment_->ring(0, 1), 0xff, kShmRingBytes);
  const Bytes head(rte_pktmbuf_mtod(burst[0], const uint8_t*),
                   rte_pktmbuf_mtod_offset(burst[0], const uint8_t*, burst[0]->data_len));
  EXPECT_GE(head.size(), 128U);
  EXPECT_TRUE(std::equal(head.begin(), head.end(), bytes.begin()));
  rte_pktmbuf_free(burst[0]);
}

TEST_F(ShmDirectTest, held_packet_remains_valid_after_its_ring_space_is_overwritten) {
  const Bytes bytes = roce(4000, 1), brief = roce(64, 2);
  send_all({direct(bytes), direct(brief)});
  std::array<rte_mbuf*, 8> burst{};
  ASSERT_EQ(ports_[1]->rx_burst(burst, now_), 2);
  rte_mbuf* const held = hold(burst[0]);
  rte_mbuf* const held_brief = hold(burst[1]);
  EXPECT_NE(held, burst[0]);
  EXPECT_EQ(held_brief, burst[1]);
  rte_pktmbuf_free_bulk(burst.data(), 2);
  EXPECT_EQ(unread(), 0U);
  std::memset(segment_->ring(0, 1), 0xff, kShmRingBytes);
  EXPECT_EQ(bytes_of(held), bytes);
  EXPECT_EQ(bytes_of(held_brief), brief);
  rte_pktmbuf_free(held);
  rte_pktmbuf_free(held_brief);
}

TEST_F(ShmDirectTest, frames_of_other_protocols_or_with_long_headers_are_copied) {
  Bytes other = roce(4000, 1);
  other[12] = 0x88, other[13] = 0xb5;  // different EtherType
  Bytes port = roce(4000, 1);
  port[36] ^= 1;  // UDP port
  Bytes block = roce(4000, 1);
  block[14 + 20 + 8 + 8] |= 0x40;  // an extension block that ends beyond the copied part
  block[14 + 20 + 8 + 12 + 1] = 200;
  for (const Bytes& bytes : {other, port, block}) {
    send_all({direct(bytes)});
    std::array<rte_mbuf*, 8> burst{};
    ASSERT_EQ(ports_[1]->rx_burst(burst, now_), 1);
    EXPECT_EQ(burst[0]->nb_segs, 1);
    EXPECT_EQ(bytes_of(burst[0]), bytes);
    rte_pktmbuf_free(burst[0]);
  }
}

TEST_F(ShmDirectTest, direct_frames_are_ecn_marked_above_the_threshold) {
  ports_.clear();
  ShmPortConfig marking = config(0, 3);
  marking.marks = true;
  marking.kmin = marking.kmax = 10'000;
  marking.pmax = 1;
  ports_.push_back(open(marking));
  ports_.push_back(open(config(1, 3)));
  for (uint32_t number = 0; number < 8; ++number) {
    rte_mbuf* const frame = roce_to(0, mac(1), 4000, number, static_cast<uint8_t>(Ecn::kEct0));
    send_all({direct(bytes_of(frame))});
    rte_pktmbuf_free(frame);
  }
  uint32_t marked = 0;
  for (const Bytes& frame : receive_all(1, now_)) marked += (frame[15] & 3) == 3 ? 1 : 0;
  EXPECT_EQ(marked, ports_[0]->shm_stats().marked);
  EXPECT_GE(marked, 4U);
  EXPECT_LT(marked, 8U);
}

// Random order of sending, freeing and receiving. All sent frames must arrive once, unchanged and in order.
TEST_F(ShmDirectTest, matches_a_fifo_model_through_many_ring_wraps) {
  Rng rng{11};
  std::deque<Bytes> model;
  std::vector<rte_mbuf*> staged;
  std::deque<Bytes> staged_bytes;
  uint32_t number = 0;
  uint64_t received = 0;
  const auto flush = [&] {
    if (staged.empty()) return;
    send_all(staged);
    std::ranges::move(staged_bytes, std::back_inserter(model));
    staged.clear();
    staged_bytes.clear();
  };
  for (uint32_t round = 0; round < test::repetitions(20'000); ++round) {
    const Bytes bytes = roce(static_cast<uint32_t>(rng.below(4300)), ++number);
    switch (rng.below(8)) {
      case 0:
        flush();
        break;
      case 1: {  // a copied frame
        flush();
        rte_mbuf* frame = test::to_mbuf(*pool_, bytes);
        if (send(0, frame, now_) == 1) model.push_back(bytes);
        break;
      }
      case 2:
      case 3: {
        std::array<rte_mbuf*, 32> burst{};
        const uint16_t got = ports_[1]->rx_burst({burst.data(), 1 + rng.below(32)}, now_);
        for (uint16_t i = 0; i < got; ++i, model.pop_front()) {
          ASSERT_FALSE(model.empty());
          ASSERT_EQ(bytes_of(burst[i]), model.front()) << "round " << round;
        }
        received += got;
        rte_pktmbuf_free_bulk(burst.data(), got);
        break;
      }
      default: {
        if (staged.size() >= 60) flush();
        const auto buffer = ports_[0]->take_direct(mac(1), static_cast<uint32_t>(bytes.size()), now_);
        if (buffer.frame == nullptr) break;
        if (rng.chance(0.1)) {
          rte_pktmbuf_free(buffer.frame);
          break;
        }
        fill(*buffer.frame, bytes);
        staged.push_back(buffer.frame);
        staged_bytes.push_back(bytes);
      }
    }
  }
  flush();
  for (const Bytes& bytes : receive_all(1, now_)) {
    ASSERT_FALSE(model.empty());
    ASSERT_EQ(bytes, model.front());
    model.pop_front();
    ++received;
  }
  EXPECT_TRUE(model.empty());
  EXPECT_GT(received, test::repetitions(8'000));
  EXPECT_EQ(unread(), 0U);
  EXPECT_EQ(ports_[1]->shm_stats().malformed, 0U);
}

}  // namespace
}  // namespace roci
