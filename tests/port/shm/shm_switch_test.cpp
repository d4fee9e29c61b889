// A network with a switch in shared memory: its ports, and what processes know about peers beyond the switch.
#include "port/shm/shm_switch.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "port/realtime_runner.hpp"
#include "port/shm/shm_network.hpp"

namespace roci {
namespace {

class ShmSwitchTest : public test::ShmNetworkTest {
 protected:
  static constexpr uint32_t kMembers = 3;

  void SetUp() override {
    ShmNetworkTest::SetUp();
    start_switch();
    for (uint32_t slot = 0; slot < kMembers; ++slot) ports_.push_back(open(member(slot)));
  }
  void TearDown() override {
    switch_ports_.clear();
    ShmNetworkTest::TearDown();
  }
  void start_switch() {
    switch_ports_.clear();
    switch_ = std::make_unique<ShmSwitch>(segment_);
    for (uint32_t slot = 0; slot < kMembers; ++slot) {
      auto port = switch_->open_port({"shm" + std::to_string(slot), slot, kMtu, pool_});
      ASSERT_TRUE(port) << port.error().message;
      switch_ports_.push_back(std::move(*port));
    }
    switch_->join();
  }
  [[nodiscard]] ShmPortConfig member(uint32_t slot) const {
    auto with_switch = config(slot, kMembers);
    with_switch.via_switch = true;
    return with_switch;
  }
  // Frames that arrived at the switch's port for the slot.
  std::vector<Bytes> at_switch(uint32_t slot, Nanos now) { return receive_all(*switch_ports_[slot], now); }
  uint16_t from_switch(uint32_t slot, rte_mbuf* frame, Nanos now) {
    return send(*switch_ports_[slot], frame, now);
  }

  std::unique_ptr<ShmSwitch> switch_;
  std::vector<std::unique_ptr<Port>> switch_ports_;
  Nanos now_ = 1s;
};

TEST_F(ShmSwitchTest, port_has_direct_buffers_for_the_switch_but_not_for_its_own_address) {
  using Outcome = PortQueue::DirectBuffer::Outcome;
  EXPECT_EQ(ports_[0]->take_direct(mac(0), 100, 1s).outcome, Outcome::kUnavailable);
  const auto buffer = ports_[0]->take_direct(mac(1), 100, 1s);
  EXPECT_EQ(buffer.outcome, Outcome::kTaken);
  rte_pktmbuf_free(buffer.frame);
}

TEST_F(ShmSwitchTest, receives_all_frames_unchanged) {
  for (const MacAddress& to : {mac(1), mac(0), MacAddress::local(999), MacAddress::broadcast()}) {
    rte_mbuf* const frame = roce_to(0, to, 1000, 7, 2);
    const Bytes sent = roci::bytes_of(frame);
    ASSERT_EQ(send(0, frame, now_), 1);
    EXPECT_EQ(switch_ports_[2]->next_arrival(), Nanos{0}) << "one of the ports has a frame";
    EXPECT_TRUE(at_switch(1, now_).empty());
    EXPECT_EQ(at_switch(0, now_), std::vector<Bytes>{sent});
    EXPECT_EQ(switch_ports_[0]->next_arrival(), kNever);
  }
  EXPECT_TRUE(receive_all(1, now_).empty()) << "only the switch delivers";
  EXPECT_EQ(ports_[0]->stats().tx_packets, 4U);
  EXPECT_EQ(switch_ports_[0]->stats().rx_packets, 4U);
}

TEST_F(ShmSwitchTest, receives_arp_requests_for_absent_slots_only) {
  ports_.pop_back();
  for (const auto& [target, is_answered] :
       {std::pair{ip4(1), true}, std::pair{ip4(2), false}, std::pair{ip4(77), false}}) {
    ASSERT_EQ(send(0, arp_request(0, target), now_), 1);
    EXPECT_EQ(receive_all(0, now_).size(), is_answered ? 1U : 0U) << target.to_string();
    EXPECT_EQ(at_switch(0, now_).size(), is_answered ? 0U : 1U) << target.to_string();
  }
}

TEST_F(ShmSwitchTest, delivers_to_the_process_of_the_port) {
  rte_mbuf* const frame = roce_to(0, mac(1), 1000, 7);
  const Bytes sent = roci::bytes_of(frame);
  ASSERT_EQ(from_switch(1, frame, now_), 1);
  EXPECT_EQ(receive_all(1, now_), std::vector<Bytes>{sent});
  EXPECT_TRUE(receive_all(0, now_).empty());
}

TEST_F(ShmSwitchTest, rejects_frames_for_a_full_ring_and_drops_none) {
  uint32_t sent = 0;
  while (from_switch(1, roce_to(0, mac(1), 4000, sent), now_) == 1) ++sent;
  EXPECT_GT(sent, kShmRingBytes / 5000);
  EXPECT_EQ(from_switch(1, roce_to(0, mac(1), 4000), now_ + 1min), 0) << "the queue is the switch's";
  EXPECT_EQ(switch_ports_[1]->stats().tx_dropped, 0U);
  EXPECT_EQ(receive_all(1, now_).size(), sent);
  EXPECT_EQ(from_switch(1, roce_to(0, mac(1), 4000), now_), 1);
  EXPECT_EQ(receive_all(1, now_).size(), 1U);
}

TEST_F(ShmSwitchTest, exit_of_an_earlier_owner_does_not_free_the_slot) {
  const uint64_t before = switch_->incarnation_of(1);
  ports_[1].reset();
  ports_[1] = open(member(1));
  switch_->note_exit(1, before);
  EXPECT_TRUE(switch_ports_[1]->link_up());
  switch_->note_exit(1, switch_->incarnation_of(1));
  EXPECT_FALSE(switch_ports_[1]->link_up());
}

TEST_F(ShmSwitchTest, drops_frames_for_a_slot_without_a_process) {
  EXPECT_TRUE(switch_ports_[2]->link_up());
  ports_.pop_back();
  EXPECT_FALSE(switch_ports_[2]->link_up());
  EXPECT_EQ(from_switch(2, roce_to(0, mac(2), 100), now_), 1);
  EXPECT_EQ(switch_ports_[2]->stats().tx_dropped, 1U);
  switch_->note_exit(1, switch_->incarnation_of(1));  // the process was killed
  EXPECT_EQ(from_switch(1, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_EQ(switch_ports_[1]->stats().tx_dropped, 1U);
  // Frames for the previous owner are not delivered to the next one.
  EXPECT_EQ(from_switch(0, roce_to(1, mac(0), 100), now_), 1);
  ports_[0].reset();
  ports_[0] = open(member(0));
  EXPECT_TRUE(receive_all(0, now_).empty());
  EXPECT_EQ(from_switch(0, roce_to(1, mac(0), 100), now_), 1);
  EXPECT_EQ(receive_all(0, now_).size(), 1U);
}

TEST_F(ShmSwitchTest, new_switch_serves_the_processes_of_the_previous_switch) {
  EXPECT_TRUE(ports_[0]->link_up());
  switch_ports_.clear();
  switch_.reset();
  EXPECT_FALSE(ports_[0]->link_up());
  EXPECT_EQ(send(0, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_EQ(ports_[0]->shm_stats().no_receiver, 1U);
  start_switch();
  EXPECT_TRUE(ports_[0]->link_up());
  EXPECT_EQ(send(0, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_EQ(at_switch(0, now_).size(), 1U);
  EXPECT_EQ(from_switch(1, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_EQ(receive_all(1, now_).size(), 1U);
}

TEST_F(ShmSwitchTest, full_ring_to_the_switch_has_a_longer_timeout_than_to_a_process) {
  while (send(0, roce_to(0, mac(1), 4000), now_) == 1) continue;
  EXPECT_EQ(send(0, roce_to(0, mac(1), 4000), now_ + ShmPort::kFullTimeout), 0);
  EXPECT_EQ(send(0, roce_to(0, mac(1), 4000), now_ + ShmPort::kSwitchFullTimeout - Nanos{1}), 0);
  EXPECT_EQ(ports_[0]->shm_stats().ring_full, 0U);
  EXPECT_EQ(send(0, roce_to(0, mac(1), 4000), now_ + ShmPort::kSwitchFullTimeout), 1);
  EXPECT_EQ(ports_[0]->shm_stats().ring_full, 1U);
  at_switch(0, now_);
}

TEST_F(ShmSwitchTest, invalid_ports_are_rejected_with_the_reason) {
  ShmSwitch other(segment_);
  const auto refused = [&](ShmSwitch::PortConfig config) {
    const auto port = other.open_port(std::move(config));
    return port ? std::string{"opened"} : port.error().message;
  };
  EXPECT_NE(refused({"shm32", 32, kMtu, pool_}).find("slots 0 to 31"), std::string::npos);
  EXPECT_NE(refused({"shm0", 0, 9800, pool_}).find("mtu 9800 exceeds"), std::string::npos);
  EXPECT_EQ(refused({"shm0", 0, kMtu, pool_}), "opened");
  EXPECT_NE(refused({"shm0", 0, kMtu, pool_}).find("already has a port"), std::string::npos);
}

class PeersThroughShmSwitch : public ShmSwitchTest {
 protected:
  struct Polls {
    bool by_switch, by_peer;
  };
  PeerTime step(Nanos time, Polls polls) {
    now_ += time;
    if (polls.by_switch) at_switch(0, now_);
    if (polls.by_peer) receive_all(1, now_);
    return ports_[0]->time_of(mac(1), now_);
  }
};

TEST_F(PeersThroughShmSwitch, time_without_polls_of_the_switch_or_the_peer_is_lost) {
  for (const Polls polls : {Polls{false, true}, Polls{true, false}}) {
    Nanos before{0};
    for (int i = 0; i < 20; ++i) before = step(1ms, {true, true}).lost;
    Nanos lost{0};
    for (int i = 0; i < 50; ++i) lost = step(1ms, polls).lost - before;
    EXPECT_GE(lost, Nanos{40ms});
    EXPECT_LE(lost, Nanos{50ms});
    step(Nanos{0}, {true, true});
    const PeerTime after = ports_[0]->time_of(mac(1), now_);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(step(1ms, {true, true}).lost, after.lost);
  }
}

TEST_F(PeersThroughShmSwitch, address_beyond_an_uplink_loses_the_time_of_the_switch) {
  const MacAddress beyond = MacAddress::local(999);
  ports_[0]->time_of(beyond, now_);
  at_switch(0, now_);
  for (int i = 0; i < 50; ++i) ports_[0]->time_of(beyond, now_ += 1ms);
  EXPECT_GE(ports_[0]->time_of(beyond, now_).lost, Nanos{40ms});
  EXPECT_FALSE(ports_[0]->is_absent(beyond));
}

TEST_F(PeersThroughShmSwitch, exit_is_reported_after_the_switch_delivered_the_peers_frames) {
  Nanos noted{0};
  // Polls every millisecond. The switch delivers a frame of the peer after 40, 80 and 120 ms. Returns the delay until
  // the exit is reported.
  const auto exit_after = [&](bool by_switch, bool delivers) {
    ports_[0]->note_exit(1, ports_[0]->owner_of(1).incarnation, {});
    for (noted = now_; now_ < noted + 1s; now_ += 1ms) {
      if (by_switch) at_switch(0, now_);
      const Nanos passed = now_ - noted;
      if (delivers && (passed == 40ms || passed == 80ms || passed == 120ms)) {
        EXPECT_EQ(from_switch(0, roce_to(1, mac(0), 100), now_), 1);
      }
      receive_all(0, now_);
      if (const auto gone = ports_[0]->take_exit()) {
        EXPECT_EQ(gone, mac(1));
        return now_ - noted;
      }
    }
    return kNever;
  };
  step(Nanos{0}, {true, true});
  EXPECT_EQ(exit_after(true, false), ShmPort::kExitDelay);
  EXPECT_EQ(exit_after(true, true), 120ms + ShmPort::kExitDelay);
  EXPECT_FALSE(ports_[0]->is_absent(mac(1))) << "frames may be in queues of the switch";
  EXPECT_EQ(exit_after(false, false), kNever) << "the switch does not run";
}

// The next owner of the slot uses the same address.
TEST_F(PeersThroughShmSwitch, exit_report_is_delayed_by_at_most_the_maximum_exit_delay) {
  step(Nanos{0}, {true, true});
  ports_[0]->note_exit(1, ports_[0]->owner_of(1).incarnation, {});
  const Nanos noted = now_;
  do {
    now_ += 1ms;
    at_switch(0, now_);
    ASSERT_EQ(from_switch(0, roce_to(1, mac(0), 100), now_), 1);
    receive_all(0, now_);
  } while (!ports_[0]->take_exit() && now_ < noted + 2s);
  EXPECT_LE(now_ - noted, ShmPort::kMaxExitDelay + 1ms);
}

TEST_F(PeersThroughShmSwitch, peer_is_busy_while_frames_wait_for_the_switch_or_for_the_peer) {
  step(Nanos{0}, {true, true});
  EXPECT_FALSE(ports_[0]->is_busy(mac(1), now_));
  ASSERT_EQ(send(0, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_TRUE(ports_[0]->is_busy(mac(1), now_));
  at_switch(0, now_);
  EXPECT_FALSE(ports_[0]->is_busy(mac(1), now_)) << "it is in a queue of the switch's, which polls";
  ASSERT_EQ(from_switch(1, roce_to(0, mac(1), 100), now_), 1);
  EXPECT_TRUE(ports_[0]->is_busy(mac(1), now_));
  receive_all(1, now_);
  EXPECT_FALSE(ports_[0]->is_busy(mac(1), now_));
  EXPECT_TRUE(ports_[0]->is_busy(mac(1), now_ + 10ms)) << "nobody polls";
}

// Receives the frames of the first port.
class Drain : public Poller {
 public:
  explicit Drain(Port& port) : port_(port) {}
  bool poll(Nanos now) override {
    ++polls;
    std::array<rte_mbuf*, 32> burst{};
    const uint16_t got = port_.rx_burst(burst, now);
    rte_pktmbuf_free_bulk(burst.data(), got);
    received.fetch_add(got, std::memory_order_release);
    return got != 0;
  }
  [[nodiscard]] Nanos next_deadline() const override { return port_.next_arrival(); }
  [[nodiscard]] std::string_view name() const override { return "drain"; }

  std::atomic<uint64_t> received{0}, polls{0};

 private:
  Port& port_;
};

TEST_F(ShmSwitchTest, runner_thread_sleeps_until_a_frame_wakes_it) {
  Drain drain(*switch_ports_[0]);
  RealtimeRunner runner{{{.name = "switch",
                          .pollers = {&drain},
                          .core = {},
                          .idle = IdlePolicy::kSleep,
                          .wakeup = &switch_->wakeup()}}};
  ASSERT_TRUE(runner.start());
  for (uint64_t number = 1; number <= 200; ++number) {
    ASSERT_EQ(send(0, roce_to(0, mac(1), 100), monotonic_now()), 1);
    for (int look = 0; look < 100'000 && drain.received.load(std::memory_order_acquire) < number; ++look)
      std::this_thread::sleep_for(100us);
    ASSERT_EQ(drain.received.load(), number) << "it was not woken";
  }
  // It sleeps and does not poll.
  const auto is_asleep = [&] { return segment_->slot(kShmSwitchSlot).asleep.load() != 0; };
  for (int look = 0; look < 100'000 && !is_asleep(); ++look) std::this_thread::sleep_for(100us);
  ASSERT_TRUE(is_asleep());
  const uint64_t polls = drain.polls.load();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(drain.polls.load(), polls);
  runner.stop();  // ends the sleep
  EXPECT_FALSE(runner.running());
}

}  // namespace
}  // namespace roci
