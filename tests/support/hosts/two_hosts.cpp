#include "support/hosts/two_hosts.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "device/api/create_device.hpp"
#include "port/dpdk/eal.hpp"
#include "wire/headers/aeth.hpp"

namespace roci::test {

uint64_t Side::counter(const std::string& name) const {
  for (const auto& [counter, value] : device->counters()) {
    if (counter == name) return value;
  }
  throw std::runtime_error("no counter " + name);
}

std::vector<ibv_wc> Side::completions() {
  std::vector<ibv_wc> all;
  ibv_wc wc{};
  while (cq->poll(1, &wc) == 1) all.push_back(wc);
  return all;
}

int Side::post(ibv_wr_opcode opcode, uint64_t wr_id, size_t offset, size_t length, uint64_t remote,
               uint32_t rkey, unsigned flags, uint32_t immediate) {
  ibv_sge list = sge(offset, length);
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &list;
  wr.num_sge = length == 0 ? 0 : 1;
  wr.opcode = opcode;
  wr.send_flags = flags;
  wr.imm_data = immediate;
  wr.wr.rdma.remote_addr = remote;
  wr.wr.rdma.rkey = rkey;
  ibv_send_wr* bad = nullptr;
  return qp->post_send(&wr, &bad);
}

int Side::atomic(ibv_wr_opcode opcode, uint64_t wr_id, size_t offset, uint64_t remote, uint32_t rkey,
                 uint64_t compare_add, uint64_t swap) {
  ibv_sge list = sge(offset, sizeof(uint64_t));
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.wr.atomic = {remote, compare_add, swap, rkey};
  ibv_send_wr* bad = nullptr;
  return qp->post_send(&wr, &bad);
}

int Side::receive(uint64_t wr_id, size_t offset, size_t length) {
  ibv_sge list = sge(offset, length);
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &list;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return qp->post_recv(&wr, &bad);
}

TwoHosts::TwoHosts(const TwoHostsOptions& options) : options_(options) {
  must(start_eal());
  pool_ = must(MbufPool::create("two_hosts", options.frames, 9000));
  SimLinkConfig link;
  link.mtu = 4200;
  link.queues = options.queues;
  link.a_to_b.delay = link.b_to_a.delay = options.delay;
  link.a_to_b.rate = link.b_to_a.rate = options.rate;
  link.a_to_b.queue = link.b_to_a.queue = options.queue;
  link_ = std::make_unique<SimLink>(link, pool_);
  link_->set_script(SimLink::kAToB, [this](const rte_mbuf& frame, uint64_t) { return on_frame(frame, '>'); });
  link_->set_script(SimLink::kBToA, [this](const rte_mbuf& frame, uint64_t) { return on_frame(frame, '<'); });
  make_side(a, link_->a(), options.ipv6 ? "fd00::1/64" : "10.0.0.1/24", 1);
  make_side(b, link_->b(), options.ipv6 ? "fd00::2/64" : "10.0.0.2/24", 2);
  runner_.add(*link_);
  for (Side* side : {&a, &b}) {
    if (!options.poll_workers_apart) {
      runner_.add(side->device->poller());
      continue;
    }
    for (uint32_t i = 0; i < side->device->host().workers(); ++i) runner_.add(side->device->poller(i));
  }
}

TwoHosts::~TwoHosts() = default;

void TwoHosts::make_side(Side& side, Port& port, const std::string& address, uint64_t seed) {
  DeviceConfig config;
  config.name = seed == 1 ? "a" : "b";
  config.addresses = {address};
  config.progress = Progress::kExternal;
  config.seed = options_.seeded ? seed : 0;
  config.max_qp = options_.max_qp;
  config.max_mr = options_.max_mr;
  config.max_pd = options_.max_pd;
  config.max_cq = options_.max_cq;
  config.max_srq = options_.max_srq;
  config.max_ah = options_.max_ah;
  config.tx_buffers = 2048;
  config.window_bytes = options_.window_bytes;
  config.congestion_control.profile = options_.congestion_control;
  config.workers = options_.workers[seed - 1];
  config.packets_per_ack = options_.packets_per_ack;
  config.check_before_placing = options_.check_before_placing;
  config.extensions = seed == 1 ? options_.extensions_a : options_.extensions_b;
  side.device = must(create_device(std::make_unique<BorrowedPort>(port), config));
  side.pd = must(side.device->allocate_pd());
  side.cq = must(side.device->create_cq(options_.cq_entries));
  side.memory.resize(options_.memory);
  side.region = must(side.pd->register_memory(side.memory.data(), side.memory.size(), options_.access));
  make_qp(side);
}

void TwoHosts::make_qp(Side& side) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = options_.cap;
  init.sq_sig_all = options_.signal_all ? 1 : 0;
  side.qp = must(side.pd->create_qp(&init, *side.cq, *side.cq));
}

void TwoHosts::to_rts(Side& side, const Side& peer, uint32_t rq_psn, uint32_t sq_psn) {
  connect_to(*side.qp, IBV_QPT_RC, must(peer.device->query_gid(1)), peer.qp->qp_num(),
             {.rq_psn = rq_psn,
              .sq_psn = sq_psn,
              .path_mtu = options_.path_mtu,
              .access = options_.access,
              .reads = options_.reads,
              .timeout = options_.timeout,
              .min_rnr_timer = options_.min_rnr_timer,
              .retry_count = options_.retry_count,
              .rnr_retry = options_.rnr_retry});
}

ReliableQueuePair& TwoHosts::core(const Side& side) {
  const Qpn number{side.qp->qp_num()};
  return dynamic_cast<ReliableQueuePair&>(side.device->host().worker_of(number).find(number)->core);
}

void TwoHosts::wake(const Side& side, Nanos now) {
  const Qpn number{side.qp->qp_num()};
  Worker& worker = side.device->host().worker_of(number);
  worker.ring(*worker.find(number));
  worker.session_of(*worker.find(number));
  while (side.device->poller().poll(std::max(now, side.device->host().last_poll()))) {
  }
}

void TwoHosts::connect() {
  to_rts(a, b, options_.psn_b, options_.psn_a);
  to_rts(b, a, options_.psn_a, options_.psn_b);
  run(10ms);
  wire.clear();
  recording_ = true;
}

int TwoHosts::write(uint64_t wr_id, size_t offset, size_t length, size_t remote, unsigned flags) {
  return a.post(IBV_WR_RDMA_WRITE, wr_id, offset, length, b.address(remote), b.region->rkey(), flags);
}

int TwoHosts::read(uint64_t wr_id, size_t offset, size_t length, size_t remote, unsigned flags) {
  return a.post(IBV_WR_RDMA_READ, wr_id, offset, length, b.address(remote), b.region->rkey(), flags);
}

void TwoHosts::run(Nanos limit) { must(runner_.run_until(runner_.now() + limit)); }

SimVerdict TwoHosts::on_frame(const rte_mbuf& frame, char direction) {
  SimVerdict verdict;
  const auto* bytes = rte_pktmbuf_mtod(&frame, const uint8_t*);
  const FrameView view = parse_frame(bytes, rte_pktmbuf_data_len(&frame), rte_pktmbuf_pkt_len(&frame),
                                     OpcodeRange::kWithPrivate);
  if (view.kind != FrameKind::kRoce) return verdict;
  if (watch) verdict = watch(must(decode_packet({bytes, rte_pktmbuf_data_len(&frame)})), direction);
  if (!recording_) return verdict;
  const bool of_a = (direction == '>') == view.opcode->is_request();  // selects the PSN space of the packet
  const int32_t psn = view.psn() - Psn{of_a ? options_.psn_a : options_.psn_b};
  std::string line =
      std::string(1, direction) + " " + std::string(view.opcode->name) + " " + std::to_string(psn);
  if (view.opcode->operation == Operation::kAcknowledge) {
    const uint8_t syndrome = view.aeth().syndrome;
    switch (aeth_kind(syndrome)) {
      case AethKind::kAck:
        line += " ack";
        break;
      case AethKind::kRnrNak:
        line += " rnr";
        break;
      default:
        line += " nak " + std::to_string(aeth_value(syndrome));
    }
  }
  verdict.drop |= lose && lose(line);
  wire.push_back(verdict.drop ? line + " lost" : line);
  return verdict;
}

}  // namespace roci::test
