// Goodput of RC during a flood of REQs. Two hosts are connected by rings; one of them, the victim, listens for
// connections and receives REQs at the line rate. Turns with and without the flood alternate, so that other load
// affects both. The result is the median ratio of the pairs.
//
// --rate is the line rate in each direction. By default RC traffic leaves the victim at this rate while the flood
// arrives at the same rate. With --in both arrive and have half of the line rate each. With --unpaced RC is not
// limited.
//
// Both hosts and the flood generator share one core. Time is the CPU time of their thread, independent of other load,
// so the victim has less than one core. In turns without the flood its frames are generated but not sent, so that the
// cost of generation does not affect the ratio.
#include <malloc.h>
#include <rte_mbuf.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/time/line_clock.hpp"
#include "base/units.hpp"
#include "cm/manager.hpp"
#include "device/api/create_device.hpp"
#include "loopback/loopback.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "support/hosts/connect.hpp"
#include "support/hosts/request_flood.hpp"
#include "support/must.hpp"

namespace roci::bench {
namespace {

using test::must;

constexpr uint64_t kService = cm_service_id(CmPortSpace::kTcp, 4420);
constexpr uint16_t kMtu = 4200;
constexpr uint32_t kRing = 1024, kMessage = 65536, kDepth = 16;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

struct Arguments {
  std::string rate = "10Gbps";
  unsigned pairs = 20, turn_ms = 50;
  bool in = false, unpaced = false, accept = false;
};

Nanos processor_time() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return Nanos{used.tv_sec * 1'000'000'000 + used.tv_nsec};
}

IpAddress address_of(const LoopbackHost& host) {
  IpAddress out;
  out.bytes = std::bit_cast<std::array<uint8_t, 16>>(must(host.device->query_gid(1)));
  return out;
}

// A listener that leaves all requests pending, or accepts all of them.
class Server final : public cm::EventHandler {
 public:
  Server(LoopbackHost& host, bool accepts) : host_(host), accepts_(accepts) {}
  bool on_event(cm::Connection& connection, const cm::Event& event) override {
    if (event.kind != cm::EventKind::kRequest) return false;
    if (accepts_)
      static_cast<void>(
          agent->accept(connection, {.queue_pair = Qpn{2}}, 0, host_.device->host().time_of_call()));
    return true;
  }
  cm::Agent* agent = nullptr;

 private:
  LoopbackHost& host_;
  const bool accepts_;
};

// Sends the due frames of the flood, one burst per call.
class Flooder {
 public:
  Flooder(Port& port, const test::RequestFlood::Config& flood, BitsPerSec rate)
      : port_(port), pool_(must(MbufPool::create("flood", 8191, 2048))), line_(rate) {
    test::RequestFlood source(flood);
    for (uint32_t i = 0; i < kDistinct; ++i) frames_.push_back(source.next());
  }
  void poll(Nanos now, bool sends) {
    if (line_.free_at() > now) return;
    std::array<rte_mbuf*, kBurst> burst;
    if (rte_pktmbuf_alloc_bulk(pool_->get(), burst.data(), kBurst) != 0) return;
    for (rte_mbuf* frame : burst) {
      const ByteVector& bytes = frames_[next_++ % kDistinct];
      std::memcpy(rte_pktmbuf_append(frame, static_cast<uint16_t>(bytes.size())), bytes.data(), bytes.size());
      line_.occupy(std::max(line_.free_at(), now - kCatchUp), Bytes{bytes.size()} + kEthernetLineOverhead);
    }
    if (!sends) return rte_pktmbuf_free_bulk(burst.data(), kBurst);
    const uint16_t taken = port_.tx_burst(burst, now);
    if (taken < kBurst) rte_pktmbuf_free_bulk(&burst[taken], kBurst - taken);  // dropped, as by a full switch
    refused += kBurst - taken;
    sent += kBurst;
    bits += kBurst * (frames_[0].size() + kEthernetLineOverhead.value()) * 8;
  }
  uint64_t sent = 0, refused = 0, bits = 0;

 private:
  static constexpr uint32_t kBurst = 32, kDistinct = 16384;
  static constexpr Nanos kCatchUp = 20us;  // maximum delay that is caught up
  Port& port_;
  std::shared_ptr<MbufPool> pool_;
  LineClock line_;
  std::vector<ByteVector> frames_;
  size_t next_ = 0;
};

class Run {
 public:
  explicit Run(const Arguments& arguments) : arguments_(arguments), line_(must(parse_rate(arguments.rate))) {
    must(start_eal());
    pool_ = must(MbufPool::create("bench", 2048, EthdevPort::data_room_for("net_ring", kMtu)));
    auto [first, second] = must(make_ring_pair("bench", pool_, kMtu, kRing));
    Port& port = *second;
    make_host(victim_, std::move(first), "victim", "10.0.0.1/24");
    make_host(other_, std::move(second), "other", "10.0.0.2/24");
    connect(victim_, other_);
    connect(other_, victim_);
    manager_.emplace(victim_.device->host());
    server_.emplace(victim_, arguments.accept);
    listener_ = {.service = kService, .address = {}, .backlog = 4096, .handler = &*server_};
    manager_->with([&](cm::Agent& agent, Nanos) {
      server_->agent = &agent;
      must(agent.listen(listener_));
    });
    flooder_.emplace(port,
                     test::RequestFlood::Config{.seed = 1,
                                                .from_mac = MacAddress::local(77),
                                                .to_mac = victim_.device->host().mac(),
                                                .to = address_of(victim_),
                                                .service = kService},
                     BitsPerSec{line_.value() / (arguments.in ? 2 : 1)});
  }

  void measure() {
    drive(20ms, false);
    const size_t bytes_before = mallinfo2().uordblks;
    drive(std::chrono::milliseconds{arguments_.turn_ms}, true);  // until the victim's tables are full
    std::vector<double> ratios, with, without;
    for (unsigned pair = 0; pair < arguments_.pairs; ++pair) {
      double on = 0;
      if (pair % 2 == 0) on = turn(true);
      const double off = turn(false);
      if (pair % 2 != 0) on = turn(true);
      ratios.push_back(on / off);
      with.push_back(on);
      without.push_back(off);
    }
    while (victim_.device->poller().poll(processor_time()) ||
           other_.device->poller().poll(processor_time())) {
    }  // frames in flight belong to pools that are destroyed next
    const auto kept = manager_->with([](cm::Agent& agent, Nanos) {
      return std::pair{agent.unanswered() + agent.unready(), agent.counts().received};
    });
    for (auto* all : {&ratios, &with, &without}) std::ranges::sort(*all);
    std::printf("ratio %.3f (%.3f to %.3f): %.2f Gb/s with, %.2f without\n", at(ratios, 0.5),
                at(ratios, 0.25), at(ratios, 0.75), at(with, 0.5), at(without, 0.5));
    std::printf(
        "flood %.2f Gb/s, %.3f M REQs/s; the ring rejected %.1f %% of them, the victim processed %.2f %%\n",
        static_cast<double>(flooder_->bits) / flooded_ * 1e-9,
        static_cast<double>(flooder_->sent) / flooded_ * 1e-6,
        100.0 * static_cast<double>(flooder_->refused) / static_cast<double>(flooder_->sent),
        100.0 * static_cast<double>(kept.second) / static_cast<double>(flooder_->sent));
    std::printf("kept %u, %zu bytes of the heap\n", kept.first, mallinfo2().uordblks - bytes_before);
  }

 private:
  static double at(const std::vector<double>& sorted, double part) {
    return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
  }

  void make_host(LoopbackHost& host, std::unique_ptr<Port> port, const std::string& name,
                 const std::string& address) {
    DeviceConfig config;
    config.name = name;
    config.addresses = {address};
    config.progress = Progress::kExternal;
    config.seed = name.size();
    config.extensions.mode = ExtensionMode::kOff;
    config.congestion_control.line_rate = line_.value() / (arguments_.in ? 2 : 1);
    config.congestion_control.burst = 1us;
    host.device = must(create_device(std::move(port), config));
    host.pd = must(host.device->allocate_pd());
    host.cq = must(host.device->create_cq(static_cast<int>(2 * kDepth)));
    host.memory.resize(kMessage);
    host.region = must(host.pd->register_memory(host.memory.data(), host.memory.size(), kAccess));
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {
        .max_send_wr = kDepth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    init.sq_sig_all = 1;
    host.qp = must(host.pd->create_qp(&init, *host.cq, *host.cq));
    must(host.qp->set_congestion_control(arguments_.unpaced ? "none" : "static_rate"));
  }

  static void connect(LoopbackHost& host, const LoopbackHost& peer) {
    test::connect_to(*host.qp, IBV_QPT_RC, must(peer.device->query_gid(1)), peer.qp->qp_num(),
                     {.rq_psn = 0, .sq_psn = 0, .path_mtu = IBV_MTU_4096, .access = kAccess, .timeout = 14});
  }

  // One round of a host.
  void step(LoopbackHost& host, bool sends, Nanos now) {
    host.device->poller().poll(now);
    if (!sends) return;
    const LoopbackHost& peer = &host == &victim_ ? other_ : victim_;
    for (; under_way_ < kDepth; ++under_way_) {
      ibv_sge list{reinterpret_cast<uint64_t>(host.memory.data()), kMessage, host.region->lkey()};
      ibv_send_wr wr{};
      wr.sg_list = &list;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_RDMA_WRITE;
      wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(peer.memory.data()),
                    .rkey = peer.region->rkey()};
      ibv_send_wr* bad = nullptr;
      if (host.qp->post_send(&wr, &bad) != 0) throw std::runtime_error("posting a WRITE failed");
    }
    std::array<ibv_wc, kDepth> completions;
    const int count = host.cq->poll(kDepth, completions.data());
    for (int i = 0; i < count; ++i) {
      if (completions[static_cast<size_t>(i)].status != IBV_WC_SUCCESS)
        throw std::runtime_error("a WRITE failed");
    }
    under_way_ -= static_cast<uint32_t>(count);
    done_ += static_cast<uint64_t>(count);
  }

  double turn(bool flood) {
    drive(5ms, flood);  // warm-up
    return drive(std::chrono::milliseconds{arguments_.turn_ms}, flood);
  }

  // Returns the goodput in Gb/s.
  double drive(Nanos time, bool flood) {
    const Nanos begin = processor_time();
    const uint64_t done_before = done_;
    Nanos now = begin;
    while (now < begin + time) {
      flooder_->poll(now, flood);
      step(victim_, !arguments_.in, now);
      step(other_, arguments_.in, now);
      now = processor_time();
    }
    const double seconds = static_cast<double>((now - begin).count()) * 1e-9;
    if (flood) flooded_ += seconds;
    return static_cast<double>(done_ - done_before) * kMessage * 8 / seconds * 1e-9;
  }

  const Arguments arguments_;
  const BitsPerSec line_;
  std::shared_ptr<MbufPool> pool_;
  LoopbackHost victim_, other_;
  std::optional<cm::Manager> manager_;
  std::optional<Server> server_;
  cm::Listener listener_;
  std::optional<Flooder> flooder_;
  uint64_t done_ = 0;
  uint32_t under_way_ = 0;
  double flooded_ = 0;
};

int run(int argc, char** argv) {
  CLI::App app{"Ratio of RC goodput with and without a flood of REQs at line rate"};
  Arguments arguments;
  app.add_option("--rate", arguments.rate, "Line rate")->capture_default_str();
  app.add_option("--pairs", arguments.pairs, "Number of paired runs")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--turn", arguments.turn_ms, "Duration of a run in ms")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  app.add_flag("--in", arguments.in,
               "RC traffic is received too, at half of the line rate; otherwise it is sent");
  app.add_flag("--unpaced", arguments.unpaced, "RC is not limited to the line rate");
  app.add_flag("--accept", arguments.accept,
               "The server accepts all requests; otherwise they remain pending");
  CLI11_PARSE(app, argc, argv);
  try {
    Run(arguments).measure();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "roci-request-flood: %s\n", failure.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace roci::bench

int main(int argc, char** argv) { return roci::bench::run(argc, argv); }
