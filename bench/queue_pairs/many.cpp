#include "queue_pairs/many.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "base/rng.hpp"
#include "device/api/create_device.hpp"
#include "device/host/host.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "support/hosts/connect.hpp"
#include "support/must.hpp"

namespace roci::bench {
namespace {

using test::must;

// 4.3 s: no packets are lost, but the machine may suspend this process for some time.
constexpr uint8_t kTimeout = 20;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
constexpr uint16_t kMtu = 1500;
constexpr uint32_t kRing = 1024;
constexpr uint32_t kBytes = 8;

}  // namespace

Many::Many(const ManyConfig& config) : config_(config), order_(config.connections) {
  must(start_eal());
  pool_ = must(MbufPool::create("many", 2048, EthdevPort::data_room_for("net_ring", kMtu)));
  auto [a, b] = must(make_ring_pair("many", pool_, kMtu, kRing, static_cast<uint16_t>(config.workers)));
  make_host(a_, std::move(a), "a", "10.0.0.1/24");
  make_host(b_, std::move(b), "b", "10.0.0.2/24");
  std::iota(order_.begin(), order_.end(), 0U);
  Rng rng{1};
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng.below(i)]);
}

// Delivers the frames in the rings first, since they belong to the hosts' pools.
Many::~Many() {
  for (int quiet = 0; quiet < 10;) quiet = poll_both() ? 0 : quiet + 1;
}

void Many::make_host(Host& host, std::unique_ptr<Port> port, const std::string& name,
                     const std::string& address) {
  DeviceConfig config;
  config.name = name;
  config.addresses = {address};
  config.progress = Progress::kExternal;
  config.workers = config_.workers;
  config.seed = name == "a" ? 1 : 2;
  host.device = must(create_device(std::move(port), config));
  host.pd = must(host.device->allocate_pd());
  host.cq = must(host.device->create_cq(static_cast<int>(2 * config_.depth)));
  host.memory.resize(4096);
  host.region = must(host.pd->register_memory(host.memory.data(), host.memory.size(), kAccess));
  host.qps.reserve(config_.connections);
}

void Many::create() {
  for (Host* host : {&a_, &b_}) {
    for (uint32_t i = 0; i < config_.connections; ++i) {
      ibv_qp_init_attr init{};
      init.qp_type = IBV_QPT_RC;
      init.cap = {.max_send_wr = config_.wr,
                  .max_recv_wr = config_.wr,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = 0};
      init.sq_sig_all = 1;
      host->qps.push_back(must(host->pd->create_qp(&init, *host->cq, *host->cq)));
    }
  }
}

void Many::connect() {
  const ibv_gid gid_a = must(a_.device->query_gid(1)), gid_b = must(b_.device->query_gid(1));
  for (size_t i = 0; i < config_.connections; ++i) {
    connect(a_, i, b_, gid_b);
    connect(b_, i, a_, gid_a);
  }
}

void Many::connect(Host& host, size_t index, const Host& peer, const ibv_gid& gid) {
  test::connect_to(*host.qps[index], IBV_QPT_RC, gid, peer.qps[index]->qp_num(),
                   {.rq_psn = 0,
                    .sq_psn = 0,
                    .path_mtu = IBV_MTU_1024,
                    .access = kAccess,
                    .reads = 0,
                    .timeout = kTimeout,
                    .min_rnr_timer = 1});
}

void Many::destroy() {
  a_.qps.clear();
  b_.qps.clear();
}

// Address resolution and the capability exchange retry after up to 160 ms; no request is lost here.
void Many::settle() {
  constexpr Nanos kQuiet = 50ms;
  for (Nanos last_work = monotonic_now(); monotonic_now() - last_work < kQuiet;) {
    if (poll_both()) last_work = monotonic_now();
  }
}

uint32_t Many::round() {
  for (; under_way_ < config_.depth; ++under_way_) {
    ibv_sge sge{reinterpret_cast<uint64_t>(a_.memory.data()), kBytes, a_.region->lkey()};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(b_.memory.data());
    wr.wr.rdma.rkey = b_.region->rkey();
    ibv_send_wr* bad = nullptr;
    if (a_.qps[order_[next_]]->post_send(&wr, &bad) != 0)
      throw std::runtime_error("posting a request failed");
    next_ = next_ + 1 == order_.size() ? 0 : next_ + 1;
  }
  poll_both();
  std::array<ibv_wc, 64> completions;
  const int count = a_.cq->poll(static_cast<int>(completions.size()), completions.data());
  for (int i = 0; i < count; ++i) {
    if (completions[static_cast<size_t>(i)].status != IBV_WC_SUCCESS)
      throw std::runtime_error("a request failed");
  }
  const auto ended = static_cast<uint32_t>(std::max(count, 0));
  under_way_ -= ended;
  return ended;
}

bool Many::poll_both() {
  const Nanos now = monotonic_now();
  const bool worked = a_.device->poller().poll(now);
  return b_.device->poller().poll(now) || worked;
}

uint64_t Many::retransmissions() const {
  return a_.device->host().counter(Counter::kPacketsRetransmitted) +
         b_.device->host().counter(Counter::kPacketsRetransmitted);
}

}  // namespace roci::bench
