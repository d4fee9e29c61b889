// A process writes random data into the shared memory at any time. The other processes neither crash nor access other
// memory, and exchange frames again after it has stopped.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <memory>
#include <vector>

#include "port/guarded_memory.hpp"
#include "port/shm/shm_network.hpp"
#include "port/shm/shm_port.hpp"
#include "port/shm/shm_switch.hpp"
#include "support/ports/shm_scribbler.hpp"
#include "support/sanitizer.hpp"

namespace roci {
namespace {

using test::scribble_ring;
using test::scribble_slots;
using test::Scribbler;

TEST(ShmHostile, reader_and_writer_stay_within_a_concurrently_modified_ring) {
  constexpr uint32_t kSize = 32 * 1024;
  const test::GuardedMemory memory{kSize};
  const auto control = std::make_unique<ShmRingControl>();
  ShmRingReader reader{*control, memory.data(), kSize};
  ShmRingWriter writer{*control, memory.data(), kSize};
  Rng rng{9};
  uint64_t sum = 0, frames = 0, written = 0;
  {
    const Scribbler hostile{[&](Rng& random) { scribble_ring(random, *control, memory.data(), kSize, 500); }};
    for (uint64_t round = 0; hostile.continues(round, test::repetitions(300'000)); ++round) {
      const auto frame = reader.front();
      if (!frame.empty()) {
        ASSERT_TRUE(memory.contains(frame.data(), frame.size()));
        ASSERT_GE(frame.size(), size_t{kShmLeastFrame});
        ASSERT_LE(frame.size(), size_t{kShmMostFrame});
        for (const uint8_t byte : frame) sum += byte;
        reader.pop();
        ++frames;
      }
      if (rng.chance(0.5)) reader.release();
      static_cast<void>(reader.has_more());
      const auto bytes = static_cast<uint32_t>(rng.between(kShmLeastFrame, kShmMostFrame));
      if (uint8_t* const room = writer.reserve(bytes); room != nullptr) {
        ASSERT_TRUE(memory.contains(room, bytes));
        std::memset(room, 7, bytes);
        ++written;
      }
      ASSERT_LE(writer.used(), uint64_t{kSize});
      if (rng.chance(0.1)) writer.publish();
    }
  }
  EXPECT_GT(reader.malformed(), 0U);
  EXPECT_GT(writer.refused(), 0U);
  EXPECT_GT(frames, 0U) << sum;
  EXPECT_GT(written, 0U);
}

class ShmHostilePort : public test::ShmNetworkTest {
 protected:
  static constexpr uint32_t kMembers = 3;  // two ports and the hostile process

  // Frames of different lengths, one of them broadcast, and direct ones as long as `port` has buffers.
  std::vector<rte_mbuf*> frames_of(uint32_t from, Port& port, Nanos now) {
    std::vector<rte_mbuf*> frames(8);
    for (size_t i = 0; i < frames.size(); ++i) {
      const auto to = i == 7 ? MacAddress::broadcast() : mac(i % kMembers);
      frames[i] = roce_to(from, to, 64 + static_cast<uint32_t>(i) * 500);
      EXPECT_NE(frames[i], nullptr) << "buffers were lost";
    }
    for (uint32_t bytes = 200; bytes < 4400; bytes += 1400) {
      const auto direct = port.take_direct(mac(1 - from % 2), bytes, now);
      if (direct.frame == nullptr) continue;
      std::memset(rte_pktmbuf_append(direct.frame, static_cast<uint16_t>(bytes)), 1, bytes);
      if (bytes == 1600) {
        rte_pktmbuf_free(direct.frame);
      } else {
        frames.push_back(direct.frame);
      }
    }
    return frames;
  }
  // Sends and receives once. Returns the number of received frames.
  static uint16_t use(Port& port, std::span<rte_mbuf*> frames, Nanos now) {
    const uint16_t sent = port.tx_burst(frames, now);
    EXPECT_LE(sent, frames.size());
    rte_pktmbuf_free_bulk(frames.data() + sent, static_cast<unsigned>(frames.size() - sent));
    std::array<rte_mbuf*, 32> burst{};
    const uint16_t got = port.rx_burst(burst, now);
    EXPECT_LE(got, burst.size());
    uint64_t sum = 0;
    for (uint16_t i = 0; i < got; ++i) {
      for (const rte_mbuf* part = burst[i]; part != nullptr; part = part->next) {
        for (uint16_t byte = 0; byte < part->data_len; ++byte)
          sum += *rte_pktmbuf_mtod_offset(part, const uint8_t*, byte);
      }
      EXPECT_LE(burst[i]->pkt_len, kMtu + 22U);
      EXPECT_GE(burst[i]->pkt_len, kShmLeastFrame);
    }
    rte_pktmbuf_free_bulk(burst.data(), got);
    static_cast<void>(port.wakeup()->has_frames());
    static_cast<void>(port.next_arrival());
    asm volatile("" : : "r"(sum));  // ensures that all bytes are read
    return got;
  }
  void ask_about_peers(ShmPort& port, Nanos now) const {
    for (uint32_t peer = 0; peer < kMembers; ++peer) {
      static_cast<void>(port.time_of(mac(peer), now));
      static_cast<void>(port.is_busy(mac(peer), now));
      static_cast<void>(port.is_absent(mac(peer)));
    }
  }
};

TEST_F(ShmHostilePort, ports_tolerate_random_writes_by_another_process) {
  open_ports(2, kMembers);
  ports_[1]->receive_in_place();
  Nanos now = 1s;
  uint64_t received = 0;
  {
    constexpr std::array<uint32_t, kMembers> kSlots{0, 1, 2};
    const Scribbler hostile{[&](Rng& random) { scribble_slots(random, *segment_, kSlots); }};
    for (uint64_t round = 0; hostile.continues(round, test::repetitions(4'000)) && !HasFailure(); ++round) {
      now += Nanos{5'000};
      const uint32_t from = round % 2;
      auto frames = frames_of(from, *ports_[from], now);
      received += use(*ports_[from], frames, now);
      ask_about_peers(*ports_[from], now);
    }
  }
  EXPECT_GT(ports_[0]->shm_stats().malformed + ports_[1]->shm_stats().malformed, 0U);
  EXPECT_GT(received, 0U);
  // Rings of other slots were not accessed: a page that is read or written is allocated.
  struct stat used {};
  ASSERT_EQ(fstat(segment_->fd(), &used), 0);
  EXPECT_LT(used.st_blocks * 512, 20 << 20);

  // After it has stopped, new processes in the slots exchange frames.
  ports_.clear();
  open_ports(2, kMembers);
  // The first poll of each port stores its positions again.
  for (int round = 0; round < 3; ++round) {
    for (uint32_t port = 0; port < 2; ++port) receive_all(port, now);
  }
  const uint64_t malformed = ports_[1]->shm_stats().malformed;
  for (uint32_t number = 1; number < 100; ++number) {
    rte_mbuf* frame = roce_to(0, mac(1), 1000, number);
    const auto sent = bytes_of(frame);
    ASSERT_EQ(ports_[0]->tx_burst({&frame, 1}, now), 1);
    const auto got = receive_all(1, now);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0], sent);
  }
  EXPECT_EQ(ports_[1]->shm_stats().malformed, malformed);
}

TEST_F(ShmHostilePort, switch_and_member_ports_tolerate_random_writes_by_another_process) {
  ShmSwitch hub(segment_);
  std::array<std::unique_ptr<Port>, 2> switch_ports;
  for (uint32_t slot = 0; slot < 2; ++slot)
    switch_ports[slot] = std::move(*hub.open_port({"shm", slot, kMtu, pool_}));
  hub.join();
  auto behind = config(0, kMembers);
  behind.via_switch = true;
  ports_.push_back(open(behind));
  Nanos now = 1s;
  std::array<uint64_t, 2> received{};
  {
    constexpr std::array<uint32_t, 3> kSlots{0, 1, kShmSwitchSlot};
    const Scribbler hostile{[&](Rng& random) { scribble_slots(random, *segment_, kSlots); }};
    for (uint64_t round = 0; hostile.continues(round, test::repetitions(4'000)) && !HasFailure(); ++round) {
      now += Nanos{5'000};
      const bool by_switch = round % 2 == 0;
      auto frames = frames_of(by_switch ? 1 : 0, by_switch ? *switch_ports[0] : *ports_[0], now);
      received[by_switch ? 1 : 0] += use(by_switch ? *switch_ports[0] : *ports_[0], frames, now);
      if (by_switch) use(*switch_ports[1], {}, now);
      ask_about_peers(*ports_[0], now);
    }
  }
  EXPECT_GT(ports_[0]->shm_stats().malformed, 0U);
  EXPECT_GT(received[0], 0U);
  EXPECT_GT(received[1], 0U);

  // After it has stopped, a new process in the slot and the running switch exchange frames. At first, each side stores
  // its positions again.
  ports_.clear();
  ports_.push_back(open(behind));
  const auto pass = [&](uint32_t from, Port& sender, Port& receiver, uint32_t number) {
    rte_mbuf* const frame = roce_to(from, mac(1 - from), 1000, number);
    const auto bytes = bytes_of(frame);
    const bool sent = send(sender, frame, now) == 1;
    const auto got = receive_all(receiver, now);
    return sent && got.size() == 1 && got[0] == bytes;
  };
  for (uint32_t number = 1; number < 5; ++number) {
    now += Nanos{10'000'000};
    pass(0, *ports_[0], *switch_ports[0], number);
    pass(1, *switch_ports[0], *ports_[0], number);
  }
  const uint64_t malformed = ports_[0]->shm_stats().malformed;
  for (uint32_t number = 5; number < 100; ++number) {
    ASSERT_TRUE(pass(0, *ports_[0], *switch_ports[0], number));
    ASSERT_TRUE(pass(1, *switch_ports[0], *ports_[0], number));
  }
  EXPECT_EQ(ports_[0]->shm_stats().malformed, malformed);
}

// Frames to a slot without an owner are dropped.
TEST_F(ShmHostilePort, running_owner_restores_its_overwritten_slot) {
  open_ports(2, kMembers);
  ShmSwitch hub(segment_);
  const auto at_switch = std::move(*hub.open_port({"shm", 2, kMtu, pool_}));
  hub.join();
  Nanos now = 1s;
  for (const uint32_t slot : {1U, kShmSwitchSlot}) {
    Port& owner = slot == kShmSwitchSlot ? *at_switch : *ports_[1];
    const uint64_t incarnation = segment_->slot(slot).incarnation.exchange(0);
    segment_->slot(slot).pid.store(77);
    now += 1ms;
    receive_all(owner, now);
    EXPECT_EQ(segment_->slot(slot).incarnation.load(), incarnation);
    EXPECT_EQ(segment_->slot(slot).pid.load(), static_cast<uint32_t>(getpid()));
  }
  EXPECT_EQ(send(0, roce_to(0, mac(1), 1000), now), 1);
  EXPECT_EQ(receive_all(1, now).size(), 1U);
}

// The reader has read all frames and sleeps. Its position is overwritten before the writer reads it.
TEST_F(ShmHostilePort, writer_wakes_a_reader_whose_position_was_overwritten) {
  open_ports(2, kMembers);
  Nanos now = 1s;
  while (send(0, roce_to(0, mac(1), 4000), now) == 1) {
  }
  receive_all(1, now);
  segment_->control(0, 1).head.store(77);
  ASSERT_NE(ports_[1]->next_arrival(), Nanos{0});
  ASSERT_EQ(send(0, roce_to(0, mac(1), 4000), now), 0);
  EXPECT_EQ(ports_[1]->next_arrival(), Nanos{0});
  receive_all(1, now);
  EXPECT_EQ(send(0, roce_to(0, mac(1), 4000), now), 1);
  EXPECT_EQ(receive_all(1, now).size(), 1U);
}

TEST_F(ShmHostilePort, switch_wakes_a_reader_whose_position_was_overwritten) {
  ShmSwitch hub(segment_);
  const auto port = std::move(*hub.open_port({"shm", 0, kMtu, pool_}));
  hub.join();
  auto behind = config(0, kMembers);
  behind.via_switch = true;
  ports_.push_back(open(behind));
  Nanos now = 1s;
  while (send(*port, roce_to(1, mac(0), 4000), now) == 1) {
  }
  receive_all(0, now);
  segment_->control(kShmSwitchSlot, 0).head.store(77);
  ASSERT_NE(ports_[0]->next_arrival(), Nanos{0});
  ASSERT_EQ(send(*port, roce_to(1, mac(0), 4000), now), 0);
  EXPECT_EQ(ports_[0]->next_arrival(), Nanos{0});
  receive_all(0, now);
  EXPECT_EQ(send(*port, roce_to(1, mac(0), 4000), now), 1);
  EXPECT_EQ(receive_all(0, now).size(), 1U);
}

}  // namespace
}  // namespace roci
