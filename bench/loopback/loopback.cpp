#include "loopback/loopback.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "device/api/create_device.hpp"
#include "device/host/host.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "port/shm/shm_port.hpp"
#include "port/sim/faulty_port.hpp"
#include "support/hosts/connect.hpp"
#include "support/must.hpp"

namespace roci::bench {
namespace {

using test::must;

// 4.3 s: no packets are lost, but the machine may suspend this process for some time.
constexpr uint8_t kTimeout = 20;
constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint16_t kMtu = 4200;  // path MTU 4096 plus headers
constexpr uint32_t kRing = 1024;
constexpr uint64_t kLineRate = 1'000'000'000'000;
constexpr std::chrono::microseconds kBaseRtt{50};

uint8_t pattern(size_t at) { return static_cast<uint8_t>(at * 131 + (at >> 8)); }

}  // namespace

uint64_t LoopbackHost::counter(const std::string& name) const {
  for (const auto& [counter, value] : device->counters()) {
    if (counter == name) return value;
  }
  throw std::runtime_error("unknown counter " + name);
}

Loopback::Loopback(const LoopbackConfig& config) : config_(config) {
  must(start_eal());
  std::unique_ptr<Port> a, b;
  make_ports(a, b);
  if (config_.one_lost_in > 0)
    b = std::make_unique<FaultyPort>(std::move(b), PortFaults{.loss = 1.0 / config_.one_lost_in}, 1);
  make_host(a_, std::move(a), "a", "10.0.0.1/24");
  make_host(b_, std::move(b), "b", "10.0.0.2/24");
  connect(a_, b_);
  connect(b_, a_);
  wait_for_agreement();
  for (uint32_t i = 0; config_.opcode == IBV_WR_SEND && i < config_.depth; ++i) post_receive();
  check_arrival();
}

// Delivers the frames in the rings first, since they belong to the hosts' pools.
Loopback::~Loopback() {
  for (int quiet = 0; quiet < 10;) quiet = poll_all() ? 0 : quiet + 1;
}

void Loopback::make_ports(std::unique_ptr<Port>& a, std::unique_ptr<Port>& b) {
  pool_ = must(MbufPool::create("bench", 2048, EthdevPort::data_room_for("net_ring", kMtu)));
  if (config_.shared_memory) return make_shm_ports(a, b);
  auto [first, second] = must(make_ring_pair("bench", pool_, kMtu, kRing));
  a = std::move(first);
  if (!config_.through_switch) {
    b = std::move(second);
    return;
  }
  auto [third, fourth] = must(make_ring_pair("bench", pool_, kMtu, kRing));
  b = std::move(fourth);
  switch_ports_.push_back(std::move(second));
  switch_ports_.push_back(std::move(third));
  make_switch();
}

void Loopback::make_switch() {
  SwitchConfig config;
  config.ports = {{.name = "a"}, {.name = "b"}};
  switch_ = must(Switch::create(config, {switch_ports_[0].get(), switch_ports_[1].get()}, pool_));
}

// Settings of a roci-run network.
void Loopback::make_shm_ports(std::unique_ptr<Port>& a, std::unique_ptr<Port>& b) {
  const std::shared_ptr<ShmSegment> segment = must(ShmSegment::create());
  if (config_.through_switch) {
    shm_switch_ = std::make_unique<ShmSwitch>(segment);
    for (uint32_t slot = 0; slot < 2; ++slot)
      switch_ports_.push_back(must(shm_switch_->open_port({"shm", slot, kMtu, pool_})));
    shm_switch_->join();
    make_switch();
  }
  ShmPortConfig port;
  port.mtu = kMtu;
  port.pool = pool_;
  port.via_switch = config_.through_switch;
  port.needs_icrc = config_.through_switch;
  port.marks = !config_.through_switch;
  port.kmin = 100 << 10;
  port.kmax = 400 << 10;
  port.pmax = 0.2;
  port.telemetry_port = config_.through_switch ? 0 : 5201;
  for (uint32_t slot = 0; slot < 2; ++slot)
    port.slots.push_back({MacAddress::local(1 + slot), {IpAddress::from_v4(0x0a000001 + slot)}});
  a = must(ShmPort::open(segment, port));
  port.slot = 1;
  b = must(ShmPort::open(segment, port));
}

void Loopback::make_host(LoopbackHost& host, std::unique_ptr<Port> port, const std::string& name,
                         const std::string& address) {
  DeviceConfig config;
  config.name = name;
  config.addresses = {address};
  config.progress = Progress::kExternal;
  config.seed = name == "a" ? 1 : 2;
  config.packets_per_ack = config_.packets_per_ack;
  config.extensions = config_.extensions;
  config.congestion_control.line_rate = kLineRate;
  config.congestion_control.base_rtt = kBaseRtt;
  config.congestion_control.burst = 1us;  // as for workers in real time
  host.device = must(create_device(std::move(port), config));
  host.pd = must(host.device->allocate_pd());
  host.cq = must(host.device->create_cq(static_cast<int>(2 * config_.depth)));
  host.memory.resize(config_.bytes);
  host.region = must(host.pd->register_memory(host.memory.data(), host.memory.size(), kAccess));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = config_.depth,
              .max_recv_wr = config_.depth,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  init.sq_sig_all = 1;
  host.qp = must(host.pd->create_qp(&init, *host.cq, *host.cq));
  must(host.qp->set_congestion_control(config_.algorithm));
}

void Loopback::connect(LoopbackHost& host, const LoopbackHost& peer) const {
  test::connect_to(*host.qp, IBV_QPT_RC, must(peer.device->query_gid(1)), peer.qp->qp_num(),
                   {.rq_psn = 0,
                    .sq_psn = 0,
                    .path_mtu = config_.path_mtu,
                    .access = kAccess,
                    .reads = 16,
                    .timeout = kTimeout,
                    .min_rnr_timer = 1});
}

// Waits until extensions are negotiated, so that the first message uses them.
void Loopback::wait_for_agreement() {
  if (config_.extensions.mode == ExtensionMode::kOff) return;
  for (uint32_t rounds = 0; a_.counter("mads_received") < 2 || b_.counter("mads_received") < 2; ++rounds) {
    if (rounds == 10'000'000) throw std::runtime_error("the hosts do not agree on extensions");
    poll_all();
  }
}

void Loopback::check_arrival() {
  const bool atomic = config_.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const bool read = config_.opcode == IBV_WR_RDMA_READ;
  const LoopbackHost& from = read ? b_ : a_;
  const LoopbackHost& to = read ? a_ : b_;
  auto* source = static_cast<uint8_t*>(from.region->address());
  for (size_t i = 0; i < from.memory.size() && !atomic; ++i) source[i] = pattern(i);
  move(config_.depth);
  uint64_t counted = 0;
  if (atomic) std::memcpy(&counted, b_.memory.data(), sizeof counted);
  if (atomic ? counted != config_.depth : from.memory != to.memory)
    throw std::runtime_error("received data differs from sent data");
}

void Loopback::post_receive() {
  ibv_sge list{reinterpret_cast<uint64_t>(b_.memory.data()), config_.bytes, b_.region->lkey()};
  ibv_recv_wr wr{};
  wr.sg_list = &list;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (b_.qp->post_recv(&wr, &bad) != 0) throw std::runtime_error("posting a receive request failed");
}

void Loopback::post_message() {
  ibv_sge list{reinterpret_cast<uint64_t>(a_.memory.data()), config_.bytes, a_.region->lkey()};
  ibv_send_wr wr{};
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = config_.opcode;
  const auto remote = reinterpret_cast<uint64_t>(b_.memory.data());
  if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic = {.remote_addr = remote, .compare_add = 1, .swap = 0, .rkey = b_.region->rkey()};
  } else {
    wr.wr.rdma = {.remote_addr = remote, .rkey = b_.region->rkey()};
  }
  ibv_send_wr* bad = nullptr;
  if (a_.qp->post_send(&wr, &bad) != 0) throw std::runtime_error("posting a send request failed");
  ++under_way_;
}

void Loopback::move(uint64_t messages) {
  uint32_t idle = 0;
  const auto step = [&](uint64_t most) {
    const uint32_t ended = round(static_cast<uint32_t>(std::min<uint64_t>(most, config_.depth)));
    idle = ended > 0 ? 0 : idle + 1;
    if (idle == 1'000'000) throw std::runtime_error("no message completes");
    return ended;
  };
  while (under_way_ > 0) step(0);
  for (uint64_t left = messages; left > 0;) left -= step(left);
}

uint32_t Loopback::round(uint32_t most_under_way) {
  while (under_way_ < most_under_way) post_message();
  poll_all();
  std::array<ibv_wc, 32> completions;
  const auto take = [&](CompletionQueue& cq) {
    const int count = cq.poll(static_cast<int>(completions.size()), completions.data());
    for (int i = 0; i < count; ++i) {
      if (completions[static_cast<size_t>(i)].status != IBV_WC_SUCCESS)
        throw std::runtime_error("a request failed");
    }
    return static_cast<uint32_t>(std::max(count, 0));
  };
  for (uint32_t received = take(*b_.cq); received > 0; --received) post_receive();
  const uint32_t ended = take(*a_.cq);
  under_way_ -= ended;
  return ended;
}

bool Loopback::poll_all() {
  now_ = config_.virtual_time ? now_ + 1us : monotonic_now();
  const Nanos now = now_;
  bool worked = a_.device->poller().poll(now);
  if (switch_) worked |= switch_->poll(now);
  worked |= b_.device->poller().poll(now);
  if (switch_) worked |= switch_->poll(now);
  return worked;
}

uint64_t Loopback::packets_per_message() const {
  const uint32_t mtu = 128U << config_.path_mtu;
  return (config_.bytes + mtu - 1) / mtu;
}

uint64_t Loopback::frames_sent() const { return a_.counter("tx_frames") + b_.counter("tx_frames"); }
uint64_t Loopback::retransmissions() const {
  return a_.counter("packets_retransmitted") + b_.counter("packets_retransmitted");
}

}  // namespace roci::bench
