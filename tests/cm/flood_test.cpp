// A host under a flood of REQs at line rate, together with RC traffic.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/time/line_clock.hpp"
#include "cm/manager.hpp"
#include "port/dpdk/eal.hpp"
#include "support/hosts/request_flood.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/ports/frames.hpp"

namespace roci::cm::flood {
namespace {

using test::RequestFlood;
using test::TwoHosts;

constexpr uint64_t kService = cm_service_id(CmPortSpace::kTcp, 4420);
constexpr BitsPerSec kLine = 10_Gbps;
constexpr size_t kMessage = 65536;
constexpr Limits kLimits{.unanswered = 512, .unready = 2048};

// Sends the frames of a flood at a given rate.
class Flooder final : public Poller {
 public:
  Flooder(Port& port, std::shared_ptr<MbufPool> pool, const RequestFlood::Config& flood, BitsPerSec rate)
      : port_(port), pool_(std::move(pool)), flood_(flood), line_(rate) {}
  bool poll(Nanos now) override {
    if (!on || line_.free_at() > now) return false;
    const ByteVector bytes = flood_.next();
    rte_mbuf* frame = test::to_mbuf(*pool_, bytes);
    if (frame == nullptr || port_.tx_burst({&frame, 1}, now) == 0) {
      rte_pktmbuf_free(frame);
      ++refused;
    }
    line_.occupy(now, Bytes{bytes.size()} + kEthernetLineOverhead);
    ++sent;
    return true;
  }
  [[nodiscard]] Nanos next_deadline() const override { return on ? line_.free_at() : kNever; }
  [[nodiscard]] std::string_view name() const override { return "flood"; }

  bool on = false;
  uint64_t sent = 0, refused = 0;

 private:
  Port& port_;
  std::shared_ptr<MbufPool> pool_;
  RequestFlood flood_;
  LineClock line_;
};

// A server that accepts each request at once, or leaves all unanswered.
class Server final : public EventHandler {
 public:
  explicit Server(TwoHosts& net) : net_(net) {}
  bool on_event(Connection& connection, const Event& event) override {
    switch (event.kind) {
      case EventKind::kRequest:
        if (accepts) {
          EXPECT_TRUE(agent->accept(connection, {.queue_pair = Qpn{next_++}}, 0, net_.now()));
        } else {
          waiting.push_back(&connection);
        }
        return true;
      case EventKind::kReady:
        ++ready;
        return true;
      case EventKind::kDisconnect:
        EXPECT_TRUE(agent->reply_disconnect(connection, {}, net_.now()));
        ++disconnected;
        return true;
      default:
        return false;
    }
  }
  Agent* agent = nullptr;
  bool accepts = false;
  std::vector<Connection*> waiting;
  unsigned ready = 0, disconnected = 0;

 private:
  TwoHosts& net_;
  uint32_t next_ = 1000;
};

class Client final : public EventHandler {
 public:
  explicit Client(TwoHosts& net) : net_(net) {}
  bool on_event(Connection& connection, const Event& event) override {
    if (event.kind == EventKind::kReply) {
      EXPECT_TRUE(agent->ready(connection, {}, net_.now()));
      ++connected;
      return true;
    }
    if (event.kind == EventKind::kDisconnected) ++disconnected;
    return event.kind != EventKind::kRequestTimeout && event.kind != EventKind::kTimeWaitExpired;
  }
  Agent* agent = nullptr;
  unsigned connected = 0, disconnected = 0;

 private:
  TwoHosts& net_;
};

struct Case {
  const char* name;
  bool to_victim;  // whether the RC traffic goes to the victim or comes from it
  bool accepts;
};

class CmFlood : public testing::TestWithParam<Case> {
 protected:
  // a sends the RC traffic. The victim is b if the traffic goes to it.
  CmFlood() {
    net.link().set_rate(SimLink::kAToB, kLine);
    net.link().set_rate(SimLink::kBToA, kLine);
    net.connect();
    net.wire.clear();
    victim.with([&](Agent& agent, Nanos) {
      server.agent = &agent;
      server.accepts = true;
      listener.service = kService;
      listener.handler = &server;
      EXPECT_TRUE(agent.listen(listener));
    });
    other.with([&](Agent& agent, Nanos) { client.agent = &agent; });
    net.runner().add(flooder);
  }

  static test::TwoHostsOptions options() {
    test::TwoHostsOptions out;
    out.path_mtu = IBV_MTU_4096;
    return out;
  }
  test::Side& victim_side() { return GetParam().to_victim ? net.b : net.a; }
  test::Side& other_side() { return GetParam().to_victim ? net.a : net.b; }
  Port& port_to_victim() { return GetParam().to_victim ? net.link().a() : net.link().b(); }
  static IpAddress address_of(const test::Side& side) {
    IpAddress out;
    out.bytes = std::bit_cast<std::array<uint8_t, 16>>(*side.device->query_gid(1));
    return out;
  }

  Connection* connect() {
    CmRequest request{.service_id = kService, .queue_pair = Qpn{other_side().qp->qp_num() ^ 1}};
    request.remote_response_timeout = request.local_response_timeout = 20;
    request.max_cm_retries = 15;
    request.primary.ack_timeout = 17;
    const Route route{.local = address_of(other_side()), .remote = address_of(victim_side())};
    return other.with(
        [&](Agent& agent, Nanos now) { return *agent.connect(route, request, 0, client, now); });
  }

  // Completed message bits per second. The sender keeps the queue full, or posts at half of the line rate.
  double goodput(Nanos time) {
    constexpr Nanos kStep = 100us;
    constexpr uint32_t kDepth = 16;
    uint64_t done = 0;
    const Nanos begin = net.now();
    double due = 0;
    while (net.now() < begin + time) {
      const uint32_t room = kDepth - under_way_;
      due = std::min(due + to_seconds(kStep) * 5e9 / 8 / kMessage, double{kDepth});
      const auto wanted = GetParam().to_victim ? std::min(room, static_cast<uint32_t>(due)) : room;
      for (uint32_t i = 0; i < wanted; ++i) EXPECT_EQ(net.write(i, 0, kMessage), 0);
      due -= wanted;
      under_way_ += wanted;
      net.run(kStep);
      for (const ibv_wc& wc : net.a.completions()) {
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        --under_way_;
        ++done;
      }
    }
    return static_cast<double>(done * kMessage * 8) / to_seconds(time);
  }
  static double to_seconds(Nanos time) { return static_cast<double>(time.count()) * 1e-9; }

  static std::shared_ptr<MbufPool> make_pool() {
    test::must(start_eal());
    return test::must(MbufPool::create("flood", 8191, 2048));
  }

  std::shared_ptr<MbufPool> pool = make_pool();  // must outlive the link
  TwoHosts net{options()};
  Manager victim{victim_side().device->host(), {}, kLimits}, other{other_side().device->host()};
  Server server{net};
  Client client{net};
  Listener listener;
  // Half of the line rate if RC traffic uses the same direction, otherwise all of it.
  Flooder flooder{port_to_victim(), pool,
                  RequestFlood::Config{.seed = 7,
                                       .from_mac = MacAddress::local(77),
                                       .to_mac = victim_side().device->host().mac(),
                                       .to = address_of(victim_side()),
                                       .service = kService},
                  GetParam().to_victim ? BitsPerSec{5'000'000'000} : kLine};
  uint32_t under_way_ = 0;
};

TEST_P(CmFlood, keeps_goodput_and_bounded_state_and_accepts_later_requests) {
  Connection* early = connect();
  net.run(10ms);
  ASSERT_EQ(client.connected, 1U);
  ASSERT_EQ(server.ready, 1U);
  server.accepts = GetParam().accepts;

  goodput(2ms);
  const double without = goodput(10ms);
  flooder.on = true;
  goodput(2ms);
  const double with = goodput(10ms);
  std::printf("%.2f Gb/s without, %.2f with a flood of %lu REQs in 12 ms, of which the port refused %lu\n",
              without / 1e9, with / 1e9, flooder.sent, flooder.refused);
  EXPECT_GE(with, 0.9 * without);
  EXPECT_GT(flooder.sent, GetParam().to_victim ? 20'000U : 40'000U);

  // The number is bounded, and other requests are dropped without processing.
  EXPECT_LE(server.agent->unanswered(), kLimits.unanswered);
  EXPECT_LE(server.agent->unready(), kLimits.unready);
  EXPECT_EQ(server.agent->connections(), 1 + (GetParam().accepts ? kLimits.unready : kLimits.unanswered));
  EXPECT_GT(victim_side().counter("mads_dropped"), flooder.sent * 7 / 10);

  // An established connection can be released.
  EXPECT_TRUE(other.with([&](Agent& agent, Nanos now) { return agent.disconnect(*early, {}, now); }));
  goodput(1ms);
  EXPECT_EQ(server.disconnected, 1U);
  EXPECT_EQ(client.disconnected, 1U);

  // A request after the flood succeeds with its retries, even if requests of the flood had long timeouts.
  flooder.on = false;
  net.run(100us);
  connect();
  net.run(1s);
  for (Connection* one : std::exchange(server.waiting, {}))
    victim.with([&](Agent& agent, Nanos now) { agent.destroy(*one, now); });
  server.accepts = true;
  net.run(70s);
  EXPECT_EQ(client.connected, 2U);
  EXPECT_EQ(server.ready, 2U);
}

INSTANTIATE_TEST_SUITE_P(Floods, CmFlood,
                         testing::Values(Case{"a_sender_whose_server_waits", false, false},
                                         Case{"a_sender_whose_server_accepts_all", false, true},
                                         Case{"a_receiver_whose_server_waits", true, false},
                                         Case{"a_receiver_whose_server_accepts_all", true, true}),
                         [](const auto& which) { return which.param.name; });

}  // namespace
}  // namespace roci::cm::flood
