#include "simulation/simulation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <sstream>
#include <vector>

#include "base/rng.hpp"
#include "base/virtual_runner.hpp"
#include "device/host.hpp"
#include "port/sim_link.hpp"
#include "roci/device.hpp"
#include "support/borrowed_port.hpp"
#include "support/two_hosts.hpp"
#include "switch/switch.hpp"

namespace roci::test {
namespace {

constexpr Nanos kLimit = 600s;       // of virtual time: longer is a hang
constexpr size_t kSlot = 64 * 1024;  // the largest message
constexpr size_t kSlots = 8;
constexpr size_t kWords = 4;         // that atomics work on
constexpr size_t kResultWords = 64;  // more than requests may be outstanding
constexpr size_t kGuard = 4096;      // bytes around every region that nobody may touch
constexpr uint8_t kGuardByte = 0xa5;

// Memory with a region in the middle.
struct Arena {
  std::vector<uint8_t> bytes;
  std::unique_ptr<MemoryRegion> region;

  void make(ProtectionDomain& pd, Rng& rng, int access) {
    bytes.assign(kSlots * kSlot + 2 * kGuard, kGuardByte);
    for (size_t i = kGuard; i + 8 <= bytes.size() - kGuard; i += 8) {
      const uint64_t word = rng.next();
      std::memcpy(&bytes[i], &word, 8);
    }
    region = must(pd.register_memory(data(), kSlots * kSlot, access));
  }
  [[nodiscard]] uint8_t* data() { return bytes.data() + kGuard; }
  [[nodiscard]] uint64_t address(size_t offset) { return reinterpret_cast<uint64_t>(data() + offset); }
  [[nodiscard]] bool guards_hold() const {
    const auto is_guard = [](uint8_t b) { return b == kGuardByte; };
    return std::all_of(bytes.begin(), bytes.begin() + kGuard, is_guard) &&
           std::all_of(bytes.end() - kGuard, bytes.end(), is_guard);
  }
};

// What was posted to a send queue and has not completed.
struct Posted {
  uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  size_t source = 0;  // offset of the data: in our source arena, or for a READ in the peer's
  size_t target = 0;  // offset of the slot it goes to
  uint32_t length = 0;
  bool signaled = false;
  uint64_t operands[2] = {};  // of an atomic: to add, or to compare with and to swap in
  [[nodiscard]] bool is_atomic() const {
    return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  }
};

// A message that the peer must see a receive completion for.
struct Announced {
  bool is_send = true;
  size_t source = 0;
  uint32_t length = 0;
  bool has_imm = false;
  uint32_t imm = 0;
};

struct Endpoint {
  std::unique_ptr<ProtectionDomain> pd;
  std::unique_ptr<CompletionQueue> cq;
  std::unique_ptr<QueuePair> qp;
  Arena source;     // what we send, write, and let the peer read: never changes
  Arena landing;    // what the peer writes into
  Arena inbox;      // what our READs bring
  Arena mailbox;    // what our receives take
  Arena words;      // what the peer's atomics change
  Arena originals;  // what our atomics bring, one word each
  std::array<uint64_t, kWords> words_image{};
  bool words_unknown = false;
  size_t next_original = 0;
  std::vector<uint8_t> landing_image, inbox_image;  // as the oracle says
  std::vector<bool> landing_busy = std::vector<bool>(kSlots), inbox_busy = std::vector<bool>(kSlots);
  std::vector<bool> landing_unknown = std::vector<bool>(kSlots), inbox_unknown = std::vector<bool>(kSlots);
  std::deque<Posted> posted;
  std::deque<Announced> announced;                   // by us, to the peer
  std::deque<std::pair<uint64_t, size_t>> receives;  // wr_id and slot, in order
  std::deque<size_t> free_receives;
  bool signal_all = false;
  bool broken = false;  // gave up after retry_cnt retries
  uint32_t to_post = 0;
  uint64_t next_id = 1;
};

struct Connection {
  Endpoint ends[2];
};

class Simulation : public Poller {
 public:
  explicit Simulation(uint64_t seed) : rng_(seed) {}

  SimulationResult run();

 private:
  // The application: posts when its time has come.
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override { return next_action_; }
  [[nodiscard]] std::string_view name() const override { return "application"; }

  void build();
  void build_network(size_t hosts);
  void build_connection(size_t from, size_t to);
  void digest_frame(uint64_t where, const rte_mbuf& frame);
  void post_random(Endpoint& local, Endpoint& peer);
  void post_atomic(Endpoint& local, Endpoint& peer, Posted& op);
  void retire_atomic(Endpoint& local, Endpoint& peer, const Posted& op, bool success);
  void post_receive(Endpoint& end);
  void reap(Endpoint& local, Endpoint& peer);
  void on_send_done(Endpoint& local, Endpoint& peer, const ibv_wc& wc);
  void on_receive_done(Endpoint& local, Endpoint& peer, const ibv_wc& wc);
  void retire(Endpoint& local, Endpoint& peer, const Posted& op, bool success);
  bool finished();
  void check_memory();
  void check_buffers();
  void fail(const std::string& what) {
    if (result_.failure.empty())
      result_.failure = what + " at " + std::to_string(runner_.now().count()) + " ns";
  }
  uint32_t random_length();

  Rng rng_;
  SimulationResult result_;
  std::shared_ptr<MbufPool> pool_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<SimLink>> links_;
  std::unique_ptr<Switch> switch_;
  std::vector<std::unique_ptr<Connection>> connections_;
  VirtualRunner runner_;
  Nanos next_action_{0};
  bool ipv6_ = false;
  ibv_mtu mtu_ = IBV_MTU_1024;
  bool late_receives_ = false;
};

uint32_t Simulation::random_length() {
  const uint32_t mtu = 128U << mtu_;
  switch (rng_.below(10)) {
    case 0:
      return 0;
    case 1:
    case 2:
    case 3:
      return static_cast<uint32_t>(rng_.between(1, 64));
    case 4:
    case 5:
      return static_cast<uint32_t>(rng_.between(1, 3) * mtu);  // exact multiples
    case 6:
    case 7:
    case 8:
      return static_cast<uint32_t>(rng_.between(1, std::min<uint64_t>(6 * mtu, kSlot)));
    default:
      return static_cast<uint32_t>(rng_.between(1, kSlot));
  }
}

void Simulation::build() {
  must(start_eal());
  pool_ = must(MbufPool::create("simulation", 16384, 4400));
  ipv6_ = rng_.chance(0.3);
  mtu_ = static_cast<ibv_mtu>(rng_.between(IBV_MTU_256, IBV_MTU_4096));
  late_receives_ = rng_.chance(0.5);
  const auto hosts = static_cast<size_t>(rng_.between(2, 4));
  build_network(hosts);
  const uint64_t connections = rng_.between(1, 4);
  for (uint64_t i = 0; i < connections; ++i) {
    const auto from = static_cast<size_t>(rng_.below(hosts));
    const auto to = (from + 1 + static_cast<size_t>(rng_.below(hosts - 1))) % hosts;
    build_connection(from, to);
  }
}

// Everything up to the BTH. What is behind it holds addresses of this process, which differ from run to run, and in a
// frame with flipped bits there is no telling where.
void Simulation::digest_frame(uint64_t where, const rte_mbuf& frame) {
  constexpr uint32_t kBeforeBth = 42;  // Ethernet, IPv4, UDP
  const auto* bytes = rte_pktmbuf_mtod(&frame, const uint8_t*);
  const uint32_t length = rte_pktmbuf_data_len(&frame);
  uint64_t h = result_.digest ^ where ^ (static_cast<uint64_t>(length) << 32);
  const FrameView view = parse_frame(bytes, length, rte_pktmbuf_pkt_len(&frame));
  const uint32_t end = view.kind == FrameKind::kRoce ? view.bth_offset + static_cast<uint32_t>(sizeof(Bth))
                                                     : std::min(length, kBeforeBth);
  for (uint32_t i = 0; i < end; ++i) h = (h ^ bytes[i]) * 1099511628211ULL;
  result_.digest = h;
}

// A star: every host on a link of its own to one switch.
void Simulation::build_network(size_t hosts) {
  std::ostringstream text;
  SimFaults faults;
  // Each packet crosses two links: together up to 10 % of each.
  if (rng_.chance(0.9)) {
    faults.loss = rng_.chance(0.7) ? rng_.unit() * 0.05 : 0;
    faults.duplication = rng_.chance(0.5) ? rng_.unit() * 0.05 : 0;
    faults.reordering = rng_.chance(0.5) ? rng_.unit() * 0.05 : 0;
    faults.corruption = rng_.chance(0.5) ? rng_.unit() * 0.05 : 0;
    faults.marking = rng_.chance(0.3) ? 0.1 : 0;
  }
  const bool corrupts = faults.corruption > 0;
  const BitsPerSec rate{rng_.between(1, 100) * 1'000'000'000};
  const Nanos delay{static_cast<int64_t>(rng_.between(100, 20'000))};
  text << hosts << " hosts, " << (ipv6_ ? "IPv6" : "IPv4") << ", MTU " << (128U << mtu_) << ", "
       << rate.value() / 1'000'000'000 << " Gb/s, " << delay.count() << " ns, loss " << faults.loss
       << ", duplication " << faults.duplication << ", reordering " << faults.reordering << ", corruption "
       << faults.corruption;
  result_.scenario = text.str();

  std::vector<Port*> switch_ports;
  SwitchConfig switch_config;
  std::vector<MacAddress> macs;
  for (size_t i = 0; i < hosts; ++i) macs.push_back(MacAddress::local(0x100 + i));
  const auto address = [&](size_t host) { return (ipv6_ ? "fd00::" : "10.0.0.") + std::to_string(host + 1); };
  for (size_t i = 0; i < hosts; ++i) {
    SimLinkConfig link;
    link.name = "link" + std::to_string(i);
    link.seed = rng_.next();
    link.mtu = 4200;
    link.macs = {macs[i], MacAddress::local(0x200 + i)};
    link.a_to_b.rate = link.b_to_a.rate = rate;
    link.a_to_b.delay = link.b_to_a.delay = delay;
    link.a_to_b.faults = link.b_to_a.faults = faults;
    links_.push_back(std::make_unique<SimLink>(link, pool_));
    for (const auto direction : {SimLink::kAToB, SimLink::kBToA}) {
      links_.back()->set_script(direction, [this, i, direction](const rte_mbuf& frame, uint64_t) {
        digest_frame(i * 2 + direction, frame);
        return SimVerdict{};
      });
    }
    SwitchPortConfig port;
    port.name = "p" + std::to_string(i);
    port.rate = rate;
    port.queue = Bytes{rng_.between(32, 1024) * 1024};
    switch_config.ports.push_back(port);
    switch_ports.push_back(&links_.back()->b());

    DeviceConfig device;
    device.name = "h" + std::to_string(i);
    device.addresses = {address(i) + (ipv6_ ? "/64" : "/24")};
    device.progress = Progress::kExternal;
    device.seed = rng_.next() | 1;
    device.tx_buffers = 2048;
    device.window_bytes = static_cast<uint32_t>(rng_.between(1, 64) * 8192);
    device.extensions.mode = rng_.chance(0.5) ? ExtensionMode::kAuto : ExtensionMode::kOff;
    device.extensions.selective_repeat = rng_.chance(0.7);
    device.extensions.authenticate = rng_.chance(0.3);
    device.extensions.timestamps = rng_.chance(0.5);
    device.extensions.source_qpn = rng_.chance(0.3);
    device.extensions.data_lsn = rng_.chance(0.3);
    // ARP has no checksum of its own, so a flipped bit in it is believed: such networks get static neighbours.
    if (corrupts) {
      for (size_t k = 0; k < hosts; ++k) device.neighbours[address(k)] = macs[k].to_string();
      device.neighbours.erase(address(i));
    }
    devices_.push_back(must(Device::create(std::make_unique<BorrowedPort>(links_.back()->a()), device)));
  }
  switch_ = must(Switch::create(switch_config, switch_ports, pool_));
  runner_.add(*this);
  for (auto& device : devices_) runner_.add(device->poller());
  runner_.add(*switch_);
  for (auto& link : links_) runner_.add(*link);
}

void Simulation::build_connection(size_t from, size_t to) {
  auto connection = std::make_unique<Connection>();
  const size_t hosts[2] = {from, to};
  const uint32_t psn[2] = {
      static_cast<uint32_t>(rng_.chance(0.3) ? 0xffffff - rng_.below(200) : rng_.below(1 << 24)),
      static_cast<uint32_t>(rng_.below(1 << 24))};
  constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
  for (int side = 0; side < 2; ++side) {
    Endpoint& end = connection->ends[side];
    Device& device = *devices_[hosts[side]];
    end.pd = must(device.allocate_pd());
    end.cq = must(device.create_cq(512));
    end.source.make(*end.pd, rng_, IBV_ACCESS_REMOTE_READ);
    end.landing.make(*end.pd, rng_, kLocal | IBV_ACCESS_REMOTE_WRITE);
    end.inbox.make(*end.pd, rng_, kLocal);
    end.mailbox.make(*end.pd, rng_, kLocal);
    end.words.make(*end.pd, rng_, kLocal | IBV_ACCESS_REMOTE_ATOMIC);
    end.originals.make(*end.pd, rng_, kLocal);
    std::memcpy(end.words_image.data(), end.words.data(), sizeof end.words_image);
    end.landing_image = end.landing.bytes;
    end.inbox_image = end.inbox.bytes;
    end.signal_all = rng_.chance(0.5);
    end.to_post = static_cast<uint32_t>(rng_.between(5, 40));
    for (size_t i = 0; i < kSlots; ++i) end.free_receives.push_back(i);
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = end.signal_all ? 1 : 0;
    init.cap = {
        .max_send_wr = 64, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 128};
    end.qp = must(end.pd->create_qp(&init, *end.cq, *end.cq));
  }
  const auto reads = static_cast<uint8_t>(rng_.between(1, 8));
  const auto timeout = static_cast<uint8_t>(rng_.between(10, 13));
  const auto rnr_timer = static_cast<uint8_t>(rng_.between(1, 14));
  for (int side = 0; side < 2; ++side) {
    QueuePair& qp = *connection->ends[side].qp;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    must(qp.modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = mtu_;
    attr.dest_qp_num = connection->ends[1 - side].qp->qp_num();
    attr.rq_psn = psn[1 - side];
    attr.max_dest_rd_atomic = reads;
    attr.min_rnr_timer = rnr_timer;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.sgid_index = 1;
    attr.ah_attr.grh.traffic_class = 2;  // ECN-capable, so that links may mark
    attr.ah_attr.grh.dgid = must(devices_[hosts[1 - side]]->query_gid(1));
    must(qp.modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = timeout;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.sq_psn = psn[side];
    attr.max_rd_atomic = reads;
    must(qp.modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC));
  }
  connections_.push_back(std::move(connection));
}

bool Simulation::poll(Nanos now) {
  if (now < next_action_) return false;
  bool more = false;
  for (auto& connection : connections_) {
    for (int side = 0; side < 2; ++side) {
      Endpoint& local = connection->ends[side];
      Endpoint& peer = connection->ends[1 - side];
      while (!local.free_receives.empty() && (!late_receives_ || rng_.chance(0.3))) post_receive(local);
      if (!local.broken && rng_.chance(0.5)) {
        for (uint64_t burst = rng_.between(1, 4); burst > 0; --burst) post_random(local, peer);
      }
      more = more || (local.to_post > 0 && !local.broken) || !local.free_receives.empty();
    }
  }
  // Long pauses now and then, so that everything in flight ends and time-outs come.
  next_action_ = more || !finished()
                     ? now + Nanos{static_cast<int64_t>(rng_.chance(0.05) ? rng_.below(20'000'000)
                                                                          : 1 + rng_.below(50'000))}
                     : kNever;
  return true;
}

void Simulation::post_receive(Endpoint& end) {
  const size_t slot = end.free_receives.front();
  end.free_receives.pop_front();
  // The slot's whole length in one to three pieces.
  ibv_sge list[3];
  int count = 0;
  size_t at = 0;
  while (at < kSlot) {
    const size_t left = kSlot - at;
    const size_t take = count == 2 ? left : rng_.between(1, left);
    list[count++] = {end.mailbox.address(slot * kSlot + at), static_cast<uint32_t>(take),
                     end.mailbox.region->lkey()};
    at += take;
  }
  ibv_recv_wr wr{};
  wr.wr_id = end.next_id++;
  wr.sg_list = list;
  wr.num_sge = count;
  ibv_recv_wr* bad = nullptr;
  if (const int code = end.qp->post_recv(&wr, &bad); code != 0) {
    fail("post_recv gave " + std::to_string(code));
    return;
  }
  end.receives.emplace_back(wr.wr_id, slot);
}

void Simulation::post_random(Endpoint& local, Endpoint& peer) {
  if (local.to_post == 0 || local.posted.size() >= 48) return;
  constexpr ibv_wr_opcode kOpcodes[] = {
      IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,        IBV_WR_RDMA_WRITE_WITH_IMM,
      IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
  Posted op;
  op.opcode = kOpcodes[rng_.below(std::size(kOpcodes))];
  if (op.is_atomic()) {
    post_atomic(local, peer, op);
    return;
  }
  op.length = random_length();
  op.source = rng_.below(kSlots * kSlot - op.length + 1);
  const bool write = op.opcode == IBV_WR_RDMA_WRITE || op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool read = op.opcode == IBV_WR_RDMA_READ;
  if (write || read) {
    auto& busy = write ? peer.landing_busy : local.inbox_busy;
    const auto slot = static_cast<size_t>(rng_.below(kSlots));
    if (busy[slot]) return;  // another time
    busy[slot] = true;
    op.target = slot * kSlot + rng_.below(kSlot - op.length + 1);
  }
  op.wr_id = local.next_id++;
  op.signaled = local.signal_all || rng_.chance(0.5) || local.to_post == 1;

  const uint64_t base = read ? local.inbox.address(op.target) : local.source.address(op.source);
  const uint32_t key = read ? local.inbox.region->lkey() : local.source.region->lkey();
  ibv_sge list[4];
  int count = 0;
  for (uint32_t at = 0; at < op.length;) {
    const uint32_t left = op.length - at;
    const auto take = static_cast<uint32_t>(count == 3 ? left : rng_.between(1, left));
    list[count++] = {base + at, take, key};
    at += take;
  }
  ibv_send_wr wr{};
  wr.wr_id = op.wr_id;
  wr.sg_list = list;
  wr.num_sge = count;
  wr.opcode = op.opcode;
  wr.send_flags = (op.signaled && !local.signal_all ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
                  (rng_.chance(0.1) ? static_cast<unsigned>(IBV_SEND_FENCE) : 0U) |
                  (rng_.chance(0.1) ? static_cast<unsigned>(IBV_SEND_SOLICITED) : 0U);
  if (!read && op.length <= 128 && rng_.chance(0.5)) wr.send_flags |= IBV_SEND_INLINE;
  wr.imm_data = static_cast<uint32_t>(rng_.next());
  wr.wr.rdma.remote_addr = read ? peer.source.address(op.source) : peer.landing.address(op.target);
  wr.wr.rdma.rkey = read ? peer.source.region->rkey() : peer.landing.region->rkey();
  ibv_send_wr* bad = nullptr;
  if (const int code = local.qp->post_send(&wr, &bad); code != 0) {
    fail("post_send gave " + std::to_string(code));
    return;
  }
  --local.to_post;
  local.posted.push_back(op);
  const bool imm = op.opcode == IBV_WR_SEND_WITH_IMM || op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (op.opcode == IBV_WR_SEND || imm)
    local.announced.push_back({!write, op.source, op.length, imm, wr.imm_data});
}

void Simulation::post_atomic(Endpoint& local, Endpoint& peer, Posted& op) {
  op.wr_id = local.next_id++;
  op.signaled = local.signal_all || rng_.chance(0.5) || local.to_post == 1;
  op.length = sizeof(uint64_t);
  op.source = rng_.below(kWords);
  op.target = local.next_original++ % kResultWords;
  // Half of the comparisons are with what is there, if nothing under way changes it.
  op.operands[0] = rng_.chance(0.5) ? peer.words_image[op.source] : rng_.next();
  op.operands[1] = rng_.next();
  ibv_sge list{local.originals.address(op.target * sizeof(uint64_t)), sizeof(uint64_t),
               local.originals.region->lkey()};
  ibv_send_wr wr{};
  wr.wr_id = op.wr_id;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = op.opcode;
  wr.send_flags = op.signaled && !local.signal_all ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
  wr.wr.atomic = {peer.words.address(op.source * sizeof(uint64_t)), op.operands[0], op.operands[1],
                  peer.words.region->rkey()};
  ibv_send_wr* bad = nullptr;
  if (const int code = local.qp->post_send(&wr, &bad); code != 0) {
    fail("post_send gave " + std::to_string(code));
    return;
  }
  --local.to_post;
  local.posted.push_back(op);
}

// Atomics of one queue pair are executed in the order in which they were posted, each once: so the model's word is what
// each must have found.
void Simulation::retire_atomic(Endpoint& local, Endpoint& peer, const Posted& op, bool success) {
  if (!success) {
    peer.words_unknown = true;
    return;
  }
  uint64_t original = 0;
  std::memcpy(&original, local.originals.data() + op.target * sizeof original, sizeof original);
  uint64_t& word = peer.words_image[op.source];
  if (original != word) fail("atomic " + std::to_string(op.wr_id) + " found a word that was not there");
  if (op.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    word += op.operands[0];
  } else if (word == op.operands[0]) {
    word = op.operands[1];
  }
}

void Simulation::reap(Endpoint& local, Endpoint& peer) {
  ibv_wc wc[8];
  for (;;) {
    const int count = local.cq->poll(8, wc);
    if (count < 0) fail("a completion queue overflowed");
    if (count <= 0) return;
    for (int i = 0; i < count; ++i) {
      if (wc[i].qp_num != local.qp->qp_num()) fail("a completion names a foreign queue pair");
      const bool receive = wc[i].status == IBV_WC_SUCCESS
                               ? (wc[i].opcode & IBV_WC_RECV) != 0
                               : !local.receives.empty() && local.receives.front().first == wc[i].wr_id;
      if (receive) {
        on_receive_done(local, peer, wc[i]);
      } else {
        on_send_done(local, peer, wc[i]);
      }
    }
  }
}

void Simulation::on_send_done(Endpoint& local, Endpoint& peer, const ibv_wc& wc) {
  // Everything unsignalled in front of it has completed with it.
  while (!local.posted.empty() && local.posted.front().wr_id != wc.wr_id) {
    if (local.posted.front().signaled || local.broken) {
      fail("request " + std::to_string(local.posted.front().wr_id) + " got no completion before " +
           std::to_string(wc.wr_id));
      return;
    }
    retire(local, peer, local.posted.front(), true);
    local.posted.pop_front();
  }
  if (local.posted.empty()) {
    fail("request " + std::to_string(wc.wr_id) + " completed twice, or was never posted");
    return;
  }
  const bool success = wc.status == IBV_WC_SUCCESS;
  if (!success) {
    if (wc.status == IBV_WC_RETRY_EXC_ERR && !local.broken) {
      local.broken = true;
      ++result_.retries_exceeded;
    } else if (!(wc.status == IBV_WC_WR_FLUSH_ERR && local.broken)) {
      fail("request " + std::to_string(wc.wr_id) + " ended with status " + std::to_string(wc.status));
    }
  } else {
    if (local.broken) fail("a success after the error");
    if (!local.posted.front().signaled) fail("an unsignalled request has a completion");
    ++result_.completed;
  }
  retire(local, peer, local.posted.front(), success);
  local.posted.pop_front();
}

void Simulation::retire(Endpoint& local, Endpoint& peer, const Posted& op, bool success) {
  if (op.is_atomic()) {
    retire_atomic(local, peer, op, success);
    return;
  }
  const size_t slot = op.target / kSlot;
  if (op.opcode == IBV_WR_RDMA_READ) {
    local.inbox_busy[slot] = false;
    if (!success) {
      local.inbox_unknown[slot] = true;
      return;
    }
    std::memcpy(local.inbox_image.data() + kGuard + op.target, peer.source.data() + op.source, op.length);
    if (std::memcmp(local.inbox.data() + op.target, peer.source.data() + op.source, op.length) != 0) {
      fail("READ " + std::to_string(op.wr_id) + " brought wrong bytes");
    }
  } else if (op.opcode == IBV_WR_RDMA_WRITE || op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    peer.landing_busy[slot] = false;
    if (!success) {
      peer.landing_unknown[slot] = true;
      return;
    }
    std::memcpy(peer.landing_image.data() + kGuard + op.target, local.source.data() + op.source, op.length);
    // An unsignalled WRITE is known to be done only now, and its slot was not given out again before.
    if (std::memcmp(peer.landing.data() + op.target, local.source.data() + op.source, op.length) != 0) {
      fail("WRITE " + std::to_string(op.wr_id) + " left wrong bytes");
    }
  }
}

void Simulation::on_receive_done(Endpoint& local, Endpoint& peer, const ibv_wc& wc) {
  if (local.receives.empty() || local.receives.front().first != wc.wr_id) {
    fail("receive " + std::to_string(wc.wr_id) + " completed out of order or twice");
    return;
  }
  const size_t slot = local.receives.front().second;
  local.receives.pop_front();
  if (wc.status == IBV_WC_WR_FLUSH_ERR && local.broken) return;
  if (wc.status != IBV_WC_SUCCESS) {
    fail("receive " + std::to_string(wc.wr_id) + " ended with status " + std::to_string(wc.status));
    return;
  }
  if (peer.announced.empty()) {
    fail("a receive completed that nobody sent for");
    return;
  }
  const Announced message = peer.announced.front();
  peer.announced.pop_front();
  const bool is_send = wc.opcode == IBV_WC_RECV;
  const bool has_imm = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (is_send != message.is_send || wc.byte_len != message.length || has_imm != message.has_imm ||
      (has_imm && wc.imm_data != message.imm)) {
    fail("receive " + std::to_string(wc.wr_id) + " tells of another message than the one that was due");
  }
  if (is_send && std::memcmp(local.mailbox.data() + slot * kSlot, peer.source.data() + message.source,
                             message.length) != 0) {
    fail("SEND brought wrong bytes to receive " + std::to_string(wc.wr_id));
  }
  local.free_receives.push_back(slot);
}

bool Simulation::finished() {
  for (const auto& connection : connections_) {
    for (const Endpoint& end : connection->ends) {
      if (!end.posted.empty() || (end.to_post > 0 && !end.broken)) return false;
    }
  }
  return true;
}

void Simulation::check_memory() {
  for (const auto& connection : connections_) {
    for (const Endpoint& end : connection->ends) {
      if (!end.words_unknown &&
          std::memcmp(end.words.bytes.data() + kGuard, end.words_image.data(), sizeof end.words_image) != 0) {
        fail("memory for atomics differs from the oracle's");
      }
      for (const Arena* arena :
           {&end.source, &end.landing, &end.inbox, &end.mailbox, &end.words, &end.originals}) {
        if (!arena->guards_hold()) fail("bytes outside a region were written");
      }
      const auto compare = [&](const Arena& arena, const std::vector<uint8_t>& image,
                               const std::vector<bool>& unknown, const char* what) {
        for (size_t slot = 0; slot < kSlots; ++slot) {
          if (unknown[slot]) continue;
          const size_t begin = kGuard + slot * kSlot;
          if (std::memcmp(arena.bytes.data() + begin, image.data() + begin, kSlot) != 0) {
            fail(std::string("memory for ") + what + " differs from the oracle's");
          }
        }
      };
      compare(end.landing, end.landing_image, end.landing_unknown, "WRITEs");
      compare(end.inbox, end.inbox_image, end.inbox_unknown, "READs");
    }
  }
}

void Simulation::check_buffers() {
  uint32_t in_use = pool_->in_use();
  for (const auto& device : devices_) in_use += device->host().tx_buffers_in_use();
  if (in_use != 0) fail(std::to_string(in_use) + " packet buffers were not given back");
}

SimulationResult Simulation::run() {
  build();
  const auto ended = runner_.run_while(
      [this] {
        for (auto& connection : connections_) {
          reap(connection->ends[0], connection->ends[1]);
          reap(connection->ends[1], connection->ends[0]);
        }
        return result_.failure.empty() && !finished();
      },
      kLimit);
  if (!ended) fail(ended.error().message);
  if (result_.failure.empty() && !finished())
    fail("it hangs: requests are left after " + std::to_string(kLimit / 1s) + " s");
  if (result_.failure.empty()) {
    next_action_ = kNever;
    if (const auto idle = runner_.run_until_idle(runner_.now() + 1s); !idle) fail(idle.error().message);
    check_memory();
  }
  for (const auto& device : devices_) {
    for (const auto& [counter, value] : device->counters()) {
      if (counter == "packets_retransmitted") result_.retransmitted += value;
    }
  }
  for (const auto& link : links_) {
    result_.frames_lost += link->stats(SimLink::kAToB).lost + link->stats(SimLink::kBToA).lost;
  }
  connections_.clear();
  switch_.reset();
  links_.clear();
  check_buffers();
  return result_;
}

}  // namespace

SimulationResult run_simulation(uint64_t seed) { return Simulation(seed).run(); }

}  // namespace roci::test
