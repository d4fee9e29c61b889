// Interface between workers and the control core that runs their algorithms: rings, lists, decisions; and the core
// itself.
#include "congestion/control_core.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "congestion/owned_flow.hpp"

namespace roci {
namespace {

using test::OwnedFlow;

// A plugin that decides what the event contains: the window is `acked`, and a timer expires `idle` after each event.
struct Echo {
  static constexpr roci_cc_parameter kParameters[] = {{"timer", "ns", 0, 0, 1e9, "0: none"}};
  static constexpr roci_cc_label kStates[] = {{"told", "something was told"}};
  static constexpr roci_cc_label kReasons[] = {
      {"nothing", "nothing"}, {"event", "an event"}, {"timer", "a timer"}};

  static void start(void* /*state*/, const roci_cc_flow* /*flow*/, uint64_t now, const double* values,
                    roci_cc_decision* decision) {
    decision->window = 1;
    if (values[0] > 0) decision->timer_ns[0] = now + static_cast<uint64_t>(values[0]);
  }
  static void event(void* state, const roci_cc_flow* /*flow*/, const roci_cc_event* event,
                    const double* values, roci_cc_decision* decision) {
    auto& count = *static_cast<uint64_t*>(state);
    ++count;
    decision->window = event->acked;
    decision->rate = count;
    decision->gap_ns = event->path == nullptr ? 0 : event->path->hop[event->path->hops - 1].queue_bytes;
    decision->reason = (event->kinds & ROCI_CC_ON_TIMER0) != 0 ? 2 : 1;
    if (values[0] > 0) decision->timer_ns[0] = event->now_ns + static_cast<uint64_t>(values[0]);
  }
  static const roci_cc_plugin& plugin() {
    static const roci_cc_plugin made = {
        .abi = ROCI_CC_ABI,
        .size = sizeof(roci_cc_plugin),
        .name = "echo",
        .summary = "decides what it was told",
        .source = "none",
        .capabilities = ROCI_CC_USES_WINDOW,
        .state_bytes = 8,
        .receiver_state_bytes = 0,
        .parameters = kParameters,
        .parameter_count = 1,
        .state_count = 1,
        .states = kStates,
        .reasons = kReasons,
        .reason_count = 3,
        .reserved = 0,
        .check = nullptr,
        .start = start,
        .event = event,
        .receive = nullptr,
    };
    return made;
  }
};

class ControlCoreTest : public testing::Test {
 protected:
  OwnedFlow make(double timer = 0, uint32_t worker = 0) {
    profiles_.push_back({.name = "echo", .plugin = &Echo::plugin(), .values = {timer}});
    const roci_cc_flow info{.line_rate = 1'000'000'000,
                            .base_rtt_ns = 0,
                            .packet_bytes = 1048,
                            .payload_bytes = 1000,
                            .direction = ROCI_CC_REQUESTS,
                            .provides = 0,
                            .seed = 1};
    OwnedFlow flow(ControlFlow::create(arena_, profiles_.back(), info, next_id_++));
    flow->worker = worker;
    FlowRunner::begin(*flow, Nanos{0});
    return flow;
  }
  static roci_cc_event event(uint64_t now, uint64_t acked) {
    roci_cc_event made{};
    made.now_ns = now;
    made.kinds = ROCI_CC_ON_ACK;
    made.acked = made.next = acked;
    return made;
  }
  static std::set<ControlFlow*> taken(FlowList& list) {
    std::set<ControlFlow*> flows;
    list.take([&](ControlFlow& flow) { EXPECT_TRUE(flows.insert(&flow).second); });
    return flows;
  }
  static std::vector<ControlFlow*> taken(EndedFlows& list) {
    std::vector<ControlFlow*> flows;
    for (ControlFlow* flow = list.take(); flow != nullptr; flow = flow->next_ended) flows.push_back(flow);
    return flows;
  }

 private:
  SparseArena arena_;
  std::deque<Profile> profiles_;
  uint32_t next_id_ = 0;
};

// ------------------------------------------------------------------------------------------------- ring

using EventRingTest = ControlCoreTest;

TEST_F(EventRingTest, matches_a_bounded_queue_model) {
  const OwnedFlow flow = make();
  std::mt19937_64 rng(5);
  for (const uint32_t capacity : {0U, 1U, 2U, 5U, 64U}) {
    EventRing ring(capacity);
    ASSERT_GE(ring.capacity(), std::max(capacity, 2U));
    std::deque<uint64_t> model;
    roci_cc_path path{};
    for (uint64_t i = 0; i < 5000; ++i) {
      if (rng() % 2 == 0) {
        roci_cc_event told = event(i, i);
        path.hops = static_cast<uint32_t>(i % (ROCI_CC_MAX_HOPS + 1));
        for (uint32_t hop = 0; hop < path.hops; ++hop)
          path.hop[hop].sent_units = static_cast<uint32_t>(i + hop);
        if (i % 3 == 0) told.path = &path;
        const bool room = model.size() < ring.capacity();
        ASSERT_EQ(ring.push(*flow, EventRing::Kind::kEvent, told), room);
        if (room) model.push_back(i);
      } else if (const EventRing::Record* record = ring.front(); record != nullptr) {
        ASSERT_FALSE(model.empty());
        const uint64_t wanted = model.front();
        ASSERT_EQ(record->flow, flow.get());
        ASSERT_EQ(record->event.acked, wanted);
        ASSERT_EQ(record->event.path, wanted % 3 == 0 ? &record->path : nullptr);
        if (record->event.path != nullptr) {
          ASSERT_EQ(record->path.hops, wanted % (ROCI_CC_MAX_HOPS + 1));
          for (uint32_t hop = 0; hop < record->path.hops; ++hop)
            ASSERT_EQ(record->path.hop[hop].sent_units, wanted + hop);
        }
        ring.pop();
        model.pop_front();
      } else {
        ASSERT_TRUE(model.empty());
      }
      ASSERT_EQ(ring.empty(), model.empty());
    }
  }
}

TEST_F(EventRingTest, two_threads_transfer_every_event_once_and_in_order) {
  constexpr uint64_t kCount = 50'000;
  const OwnedFlow flow = make();
  EventRing ring(16);
  std::thread worker([&] {
    roci_cc_path path{};
    path.hops = 1;
    for (uint64_t i = 0; i < kCount;) {
      path.hop[0].sent_units = static_cast<uint32_t>(i);
      roci_cc_event told = event(i, i);
      told.path = &path;
      if (ring.push(*flow, EventRing::Kind::kEvent, told)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (uint64_t i = 0; i < kCount;) {
    const EventRing::Record* record = ring.front();
    if (record == nullptr) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(record->event.acked, i);
    EXPECT_EQ(record->path.hop[0].sent_units, i);
    ring.pop();
    ++i;
  }
  worker.join();
  EXPECT_TRUE(ring.empty());
}

// ------------------------------------------------------------------------------------------------ lists

using FlowListTest = ControlCoreTest;

TEST_F(FlowListTest, holds_a_flow_once_and_accepts_it_again_while_it_is_taken) {
  const OwnedFlow x = make(), y = make();
  FlowList list;
  EXPECT_TRUE(list.empty());
  EXPECT_FALSE(list.take([](ControlFlow&) {}));
  list.add(*x);
  list.add(*y);
  list.add(*x);
  EXPECT_EQ(taken(list), (std::set<ControlFlow*>{x.get(), y.get()}));
  list.add(*x);
  list.take([&](ControlFlow& flow) { list.add(flow); });
  EXPECT_EQ(taken(list), std::set<ControlFlow*>{x.get()});
  EXPECT_TRUE(list.empty());
}

// The thread that takes a flow, now or the next time, sees all writes that preceded its addition.
TEST_F(FlowListTest, returns_every_flow_added_by_concurrent_threads) {
  constexpr uint64_t kRounds = 20'000;
  std::vector<OwnedFlow> flows;
  for (int i = 0; i < 3; ++i) flows.push_back(make());
  std::vector<std::atomic<uint64_t>> done(flows.size());
  std::vector<uint64_t> seen(flows.size());
  FlowList list;
  std::atomic<int> writing{2};
  std::vector<std::thread> writers;
  for (uint64_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      std::mt19937_64 rng(writer);
      for (uint64_t i = 0; i < kRounds; ++i) {
        const size_t which = rng() % flows.size();
        done[which].fetch_add(1, std::memory_order_relaxed);
        list.add(*flows[which]);
      }
      --writing;
    });
  }
  const auto look = [&](ControlFlow& flow) { seen[flow.id] = done[flow.id].load(std::memory_order_relaxed); };
  while (writing != 0) list.take(look);
  for (std::thread& writer : writers) writer.join();
  list.take(look);
  uint64_t all = 0;
  for (const uint64_t each : seen) all += each;
  EXPECT_EQ(all, 2 * kRounds);
  EXPECT_TRUE(list.empty());
}

// --------------------------------------------------------------------------------------------- decision

TEST(PublishedDecisionTest, is_consistent_and_never_older_than_a_previous_read) {
  constexpr uint64_t kCount = 100'000;
  PublishedDecision published;
  const auto numbered = [](uint64_t number) {
    roci_cc_decision decision{};
    decision.window = decision.rate = decision.gap_ns = decision.not_ect_below = number;
    decision.timer_ns[0] = decision.timer_ns[1] = decision.sent_notice = decision.idle_ns = number;
    decision.requests = static_cast<uint32_t>(number);
    decision.state = decision.reason = static_cast<uint16_t>(number);
    return decision;
  };
  published.publish(numbered(0));
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (uint64_t i = 1; i <= kCount; ++i) {
      published.publish(numbered(i));
      if (i % 64 == 0) std::this_thread::yield();
    }
    over = true;
  });
  uint64_t last = 0;
  while (!over) {
    const roci_cc_decision read = published.read();
    const roci_cc_decision whole = numbered(read.window);
    EXPECT_EQ(std::memcmp(&read, &whole, sizeof read), 0);
    EXPECT_GE(read.window, last);
    last = read.window;
  }
  writer.join();
  EXPECT_EQ(published.read().window, kCount);
}

// A control core may be preempted at any instruction.
TEST(PublishedDecisionTest, try_read_keeps_the_previous_value_during_an_update) {
  struct Interrupted : PublishedDecision {
    using PublishedDecision::begin;
    using PublishedDecision::finish;
  } published;
  roci_cc_decision decision{}, seen{};
  decision.window = 1;
  published.publish(decision);
  EXPECT_TRUE(published.try_read(seen));
  published.begin();
  decision.window = 2;
  EXPECT_FALSE(published.try_read(seen));
  EXPECT_EQ(seen.window, 1U);
  published.finish(decision);
  EXPECT_TRUE(published.try_read(seen));
  EXPECT_EQ(seen.window, 2U);
}

// ------------------------------------------------------------------------------------------------- core

TEST_F(ControlCoreTest, passes_events_to_the_plugin_and_publishes_its_decisions) {
  ControlCore core("cc0", 2, 0);
  const OwnedFlow x = make(0, 0), y = make(0, 1);
  EXPECT_EQ(core.next_deadline(), kNever);
  ASSERT_TRUE(core.events_of(0).push(*x, EventRing::Kind::kStart, {}));
  ASSERT_TRUE(core.events_of(1).push(*y, EventRing::Kind::kStart, {}));
  ASSERT_TRUE(core.events_of(0).push(*x, EventRing::Kind::kEvent, event(100, 5000)));
  roci_cc_path path{};
  path.hops = 3;
  path.hop[2].queue_bytes = 77;
  roci_cc_event told = event(120, 6000);
  told.path = &path;
  ASSERT_TRUE(core.events_of(1).push(*y, EventRing::Kind::kEvent, told));
  EXPECT_EQ(core.next_deadline(), Nanos{0});
  EXPECT_TRUE(core.poll(Nanos{150}));
  EXPECT_FALSE(core.poll(Nanos{150}));
  EXPECT_EQ(taken(core.decided_for(0)), std::set<ControlFlow*>{x.get()});
  EXPECT_EQ(taken(core.decided_for(1)), std::set<ControlFlow*>{y.get()});
  EXPECT_EQ(x->published.read().window, 5000U);
  EXPECT_EQ(y->published.read().window, 6000U);
  EXPECT_EQ(y->published.read().gap_ns, 77U);
  const ControlCore::Counts counts = core.counts();
  EXPECT_EQ(counts.events, 2U);
  EXPECT_EQ(counts.delays[6], 1U);  // 50 ns
  EXPECT_EQ(counts.delays[5], 1U);  // 30 ns
}

TEST_F(ControlCoreTest, processes_workers_in_turns_when_a_ring_is_full) {
  ControlCore core("cc0", 2, 0, 256);
  const OwnedFlow x = make(0, 0), y = make(0, 1);
  core.events_of(0).push(*x, EventRing::Kind::kStart, {});
  core.events_of(1).push(*y, EventRing::Kind::kStart, {});
  uint64_t said = 0;
  while (core.events_of(0).push(*x, EventRing::Kind::kEvent, event(said + 1, said + 1))) ++said;
  EXPECT_EQ(said, 255U);
  core.events_of(1).push(*y, EventRing::Kind::kEvent, event(1, 9));
  core.poll(Nanos{1000});
  EXPECT_EQ(y->published.read().window, 9U);  // although the first worker had many more events
  EXPECT_LT(x->published.read().window, said);
  while (core.poll(Nanos{1000})) {
  }
  EXPECT_EQ(x->published.read().window, said);
  EXPECT_EQ(x->published.read().rate, said);  // each event once
}

TEST_F(ControlCoreTest, runs_timers_and_events_that_are_older_than_a_timer) {
  ControlCore core("cc0", 1, 100);
  const OwnedFlow x = make(1000);
  core.events_of(0).push(*x, EventRing::Kind::kStart, {});
  core.poll(Nanos{10});
  taken(core.decided_for(0));
  EXPECT_GT(core.next_deadline(), Nanos{0});
  EXPECT_LE(core.next_deadline(), Nanos{1000});
  while (!core.poll(std::max(core.next_deadline(), Nanos{1000})) || x->events == 0) {
  }
  EXPECT_EQ(taken(core.decided_for(0)), std::set<ControlFlow*>{x.get()});
  EXPECT_EQ(x->published.read().reason, 2);
  const Nanos fired = x->last_event;
  ASSERT_GE(fired, Nanos{1000});
  // The event happened before the timer, but was reported after it. The time that the plugin sees does not decrease.
  core.events_of(0).push(*x, EventRing::Kind::kEvent, event(900, 5));
  core.poll(fired);
  EXPECT_EQ(x->published.read().window, 5U);
  EXPECT_EQ(x->last_event, fired);
  EXPECT_EQ(replay(core.trace()).different, 0U);
  core.remove(*x);
  EXPECT_EQ(core.next_deadline(), kNever);
}

TEST_F(ControlCoreTest, ended_flow_is_returned_after_all_its_events) {
  ControlCore core("cc0", 1, 0);
  const OwnedFlow x = make(1000), y = make(1000);
  EventRing& events = core.events_of(0);
  events.push(*x, EventRing::Kind::kStart, {});
  events.push(*y, EventRing::Kind::kStart, {});
  events.push(*x, EventRing::Kind::kEvent, event(10, 1));
  events.push(*x, EventRing::Kind::kEvent, event(20, 2));
  events.push(*x, EventRing::Kind::kEnd, {});
  events.push(*y, EventRing::Kind::kEvent, event(30, 3));
  core.poll(Nanos{50});
  EXPECT_EQ(x->published.read().window, 2U);
  EXPECT_EQ(y->published.read().window, 3U);
  // The flow is on both lists. A worker that takes the ended flows first may free them after the decided ones.
  EXPECT_EQ(taken(core.ended_for(0)), std::vector<ControlFlow*>{x.get()});
  EXPECT_EQ(taken(core.decided_for(0)), (std::set<ControlFlow*>{x.get(), y.get()}));
  // Its timer does not expire anymore.
  const uint64_t told = x->events;
  for (int64_t now = 100; now < 10'000; now += 100) core.poll(Nanos{now});
  EXPECT_EQ(x->events, told);
  EXPECT_GT(y->events, 1U);
  EXPECT_EQ(taken(core.decided_for(0)), std::set<ControlFlow*>{y.get()});
  EXPECT_EQ(core.ended_for(0).take(), nullptr);
  core.remove(*y);
}

TEST_F(ControlCoreTest, removes_a_worker_and_returns_its_ended_flows) {
  ControlCore core("cc0", 2, 0);
  const OwnedFlow x = make(1000, 0), gone = make(1000, 0), other = make(1000, 1);
  core.events_of(0).push(*x, EventRing::Kind::kStart, {});
  core.events_of(0).push(*gone, EventRing::Kind::kStart, {});
  core.events_of(1).push(*other, EventRing::Kind::kStart, {});
  core.poll(Nanos{0});
  core.events_of(0).push(*gone, EventRing::Kind::kEvent, event(10, 7));
  core.events_of(0).push(*gone, EventRing::Kind::kEnd, {});
  core.events_of(1).push(*other, EventRing::Kind::kEvent, event(10, 8));
  core.remove(0);
  core.remove(*x);
  EXPECT_TRUE(core.events_of(0).empty());
  EXPECT_EQ(taken(core.ended_for(0)), std::vector<ControlFlow*>{gone.get()});
  EXPECT_EQ(gone->events, 0U);  // the flow has ended, so its event is not processed
  for (int64_t now = 100; now < 5000; now += 100) core.poll(Nanos{now});
  EXPECT_EQ(x->events, 0U);
  EXPECT_EQ(gone->events, 0U);
  EXPECT_GT(other->events, 1U);
  EXPECT_TRUE(core.decided_for(0).empty());
  core.remove(*other);
}

// A worker with flows that start and end, concurrent with its control core: every decision arrives, and no flow is
// freed too early.
TEST_F(ControlCoreTest, concurrent_worker_receives_every_decision_and_ended_flow) {
  constexpr uint64_t kEvents = 20'000;
  ControlCore core("cc0", 1, 0, 32);
  std::atomic<bool> over{false};
  std::thread runs([&] {
    for (int64_t now = 0; !over; ++now) {
      if (!core.poll(Nanos{now})) std::this_thread::yield();
    }
  });
  struct Life {
    OwnedFlow flow;
    uint64_t said = 0;
    uint64_t heard = 0;
  };
  std::map<ControlFlow*, Life> ending;
  std::mt19937_64 rng(3);
  uint64_t freed = 0, missed = 0;
  const auto say = [&](ControlFlow& flow, EventRing::Kind what, const roci_cc_event& told) {
    while (!core.events_of(0).push(flow, what, told)) std::this_thread::yield();
  };
  std::map<ControlFlow*, Life> lives;
  const auto listen = [&] {
    ControlFlow* ended = core.ended_for(0).take();
    core.decided_for(0).take([&](ControlFlow& flow) {
      Life& life = lives.contains(&flow) ? lives[&flow] : ending[&flow];
      life.heard = std::max(life.heard, flow.published.read().window);
    });
    while (ended != nullptr) {
      ControlFlow* const next = ended->next_ended;
      const auto at = ending.find(ended);
      ASSERT_NE(at, ending.end());
      if (at->second.heard != at->second.said) ++missed;
      ending.erase(at);
      ++freed;
      ended = next;
    }
  };
  uint64_t made = 0;
  for (uint64_t i = 1; i <= kEvents; ++i) {
    if (lives.size() < 8) {
      OwnedFlow flow = make(50);
      ControlFlow* const key = flow.get();
      lives[key] = {std::move(flow)};
      say(*key, EventRing::Kind::kStart, {});
      ++made;
    }
    auto at = lives.begin();
    std::advance(at, rng() % lives.size());
    say(*at->first, EventRing::Kind::kEvent, event(0, ++at->second.said + 1));
    if (rng() % 100 == 0) {
      say(*at->first, EventRing::Kind::kEnd, {});
      ++at->second.said;  // window of the last event; the first is 2
      ending.insert(lives.extract(at));
    }
    listen();
  }
  while (!ending.empty()) {
    listen();
    std::this_thread::yield();
  }
  over = true;
  runs.join();
  for (auto& [flow, life] : lives) core.remove(*flow);
  EXPECT_EQ(freed, made - lives.size());
  EXPECT_GT(freed, 100U);
  EXPECT_EQ(missed, 0U);
}

}  // namespace
}  // namespace roci
