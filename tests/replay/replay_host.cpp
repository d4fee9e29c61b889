#include "replay/replay_host.hpp"

#include <cstring>
#include <stdexcept>

#include "port/dpdk/eal.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/ports/frames.hpp"

namespace roci::test {
namespace {

constexpr PdNumber kPd{1};
constexpr uint16_t kPortMtu = 4200;

std::shared_ptr<MbufPool> make_pool() {
  must(start_eal());
  return must(MbufPool::create("replay", 1024, 9000));
}

}  // namespace

HandPort::HandPort(const MacAddress& mac, uint16_t mtu, std::shared_ptr<MbufPool> pool)
    : mac_(mac), pool_(std::move(pool)) {
  capabilities_.mtu = mtu;
}

HandPort::~HandPort() {
  for (rte_mbuf* frame : arriving_) rte_pktmbuf_free(frame);
}

void HandPort::put(const ByteVector& frame) { arriving_.push_back(to_mbuf(*pool_, frame)); }

uint16_t HandPort::rx_burst(std::span<rte_mbuf*> out, Nanos) {
  uint16_t count = 0;
  for (; count < out.size() && !arriving_.empty(); arriving_.pop_front()) out[count++] = arriving_.front();
  return count;
}

uint16_t HandPort::tx_burst(std::span<rte_mbuf*> frames, Nanos now) {
  for (rte_mbuf* frame : frames) {
    sent_.push_back({now, bytes_of(frame)});
    rte_pktmbuf_free(frame);
  }
  return static_cast<uint16_t>(frames.size());
}

ReplayHost::Config ReplayHost::Config::receiver_of(const Packet& packet) {
  Config config;
  config.mac = packet.destination_mac;
  config.peer_mac = packet.source_mac;
  config.address = packet.destination;
  config.peer = packet.source;
  return config;
}

ReplayHost::Config ReplayHost::Config::sender_of(const Packet& packet) {
  Config config = receiver_of(packet);
  std::swap(config.mac, config.peer_mac);
  std::swap(config.address, config.peer);
  return config;
}

ReplayHost::ReplayHost(const Config& config)
    : pool_(make_pool()), port_(config.mac, kPortMtu, pool_), regions_(config.regions) {
  NeighborConfig neighbors;
  neighbors.mac = config.mac;
  neighbors.addresses = {{config.address, 24}};
  neighbors.static_entries = {{config.peer, config.peer_mac}};
  worker_ = must(Worker::create("replay", 0,
                                {port_,
                                 memory_,
                                 groups_,
                                 steering_,
                                 *events_,
                                 hand_over_,
                                 flows_,
                                 pool_,
                                 extensions_,
                                 telemetry_,
                                 flow_control_,
                                 congestion_,
                                 congestion_flows_,
                                 control_,
                                 control_cores_,
                                 arena_,
                                 ids_,
                                 false,
                                 0,
                                 false},
                                neighbors));
  for (auto& [key, region] : regions_)
    must(memory_.add_at(MemoryKey{key}, kPd, region.va, region.bytes.data(), region.bytes.size(),
                        config.region_access));

  QueuePairConfig qp;
  qp.type = config.type;
  qp.number = config.qpn;
  qp.pd = kPd;
  qp.max_send_wr = qp.max_recv_wr = 256;
  qp.signal_all = true;
  qp_ = make_queue_pair(arena_, qp, completions_, completions_);
  QueuePairAttributes& attributes = qp_->core.attributes;
  attributes.path.source_mac = config.mac;
  attributes.path.source_ip = config.address;
  attributes.path.destination_ip = config.peer;
  attributes.path.traffic_class = config.traffic_class;
  attributes.path.udp_source_port = config.udp_source_port != 0
                                        ? config.udp_source_port
                                        : flow_udp_source_port(0, config.qpn, config.peer_qpn);
  attributes.remote_qp = config.peer_qpn;
  attributes.qkey = config.qkey;
  attributes.path_mtu = config.path_mtu;
  attributes.access = config.access;
  attributes.min_rnr_timer = config.min_rnr_timer;
  attributes.max_dest_rd_atomic = attributes.max_rd_atomic = kReads;
  attributes.timeout = config.timeout;
  attributes.retry_count = config.retry_count;
  attributes.rnr_retry = config.rnr_retry;
  if (!worker_->attach(*qp_)) throw std::runtime_error("replay: the QPN is taken");
  qp_->core.to_init();
  qp_->core.to_ready_to_receive(config.first_psn);
  if (config.first_own_psn) qp_->core.to_ready_to_send(*config.first_own_psn);
  if (config.had_turn) worker_->make_ready(*qp_);
  if (config.type == IBV_QPT_UD)
    to_peer_ = std::make_unique<AttachedAddress>(attributes.path, kPd, kPortMtu, 1);
  feed({});
}

ReplayHost::~ReplayHost() {
  worker_->detach(*qp_);
  qp_->core.to_reset();
}

void ReplayHost::work() {
  // Two idle rounds: a round may process what the previous one deferred.
  for (int idle = 0; idle < 2; now_ += 1us) idle = worker_->poll(now_) ? 0 : idle + 1;
}

std::vector<Packet> ReplayHost::feed(std::span<const ByteVector> frames) {
  for (const ByteVector& frame : frames) port_.put(frame);
  work();
  std::vector<Packet> answers;
  for (const auto& sent : port_.take()) answers.push_back(must(decode_packet(sent.bytes)));
  return answers;
}

void ReplayHost::work_now() {
  for (int idle = 0; idle < 2;) idle = worker_->poll(now_) ? 0 : idle + 1;
}

void ReplayHost::run_until(Nanos time) {
  for (Nanos next = worker_->next_deadline(); next <= time; next = worker_->next_deadline()) {
    now_ = std::max(now_, next);
    work_now();
  }
  now_ = std::max(now_, time);
  work_now();
}

std::vector<ByteVector> ReplayHost::send(const Message& message) {
  post(message);
  work();
  std::vector<ByteVector> frames;
  for (auto& sent : port_.take()) frames.push_back(std::move(sent.bytes));
  return frames;
}

size_t ReplayHost::post(const Message& message) {
  auto& [key, bytes] = buffers_.emplace_back(MemoryKey{0}, message.bytes);
  bytes.resize(std::max<size_t>(bytes.size(), 1));
  key = must(memory_.add(kPd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE));
  ibv_sge list{reinterpret_cast<uint64_t>(bytes.data()), static_cast<uint32_t>(message.bytes.size()),
               key.value()};
  ibv_send_wr wr{};
  wr.wr_id = buffers_.size() - 1;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = message.opcode;
  if (message.solicited) wr.send_flags = IBV_SEND_SOLICITED;
  wr.imm_data = __builtin_bswap32(message.immediate);
  if (to_peer_ != nullptr) {
    wr.wr.ud = {to_peer_.get(), qp_->core.attributes.remote_qp.value(), message.qkey.value()};
  } else if (message.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic = {message.remote, message.compare_add, message.swap, message.rkey};
  } else {
    wr.wr.rdma = {message.remote, message.rkey};
  }
  if (qp_->core.post_send(&wr, nullptr) != 0) throw std::runtime_error("replay: the request is refused");
  worker_->ring(*qp_);
  return wr.wr_id;
}

std::vector<ibv_wc> ReplayHost::completions() {
  std::vector<ibv_wc> all;
  for (ibv_wc wc{}; completions_.poll(1, &wc) == 1;) all.push_back(wc);
  return all;
}

void ReplayHost::post_receive(uint32_t length) {
  auto& [key, bytes] = buffers_.emplace_back(MemoryKey{0}, ByteVector(std::max(length, 1U), kUntouched));
  key = must(memory_.add(kPd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE));
  ibv_sge list{reinterpret_cast<uint64_t>(bytes.data()), length, key.value()};
  ibv_recv_wr wr{};
  wr.wr_id = buffers_.size() - 1;
  wr.sg_list = &list;
  wr.num_sge = 1;
  if (qp_->core.post_recv(&wr, nullptr) != 0) throw std::runtime_error("replay: no room for a receive");
}

std::vector<ByteVector> ReplayHost::received() {
  std::vector<ByteVector> all;
  ibv_wc wc{};
  while (completions_.poll(1, &wc) == 1) {
    if (wc.status != IBV_WC_SUCCESS) continue;
    ByteVector bytes = buffers_.at(wc.wr_id).second;
    if (wc.opcode == IBV_WC_RECV) bytes.resize(wc.byte_len);
    if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) bytes.clear();  // the data was written to a region
    if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) {
      const auto* imm = reinterpret_cast<const uint8_t*>(&wc.imm_data);
      bytes.insert(bytes.end(), imm, imm + sizeof wc.imm_data);
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

}  // namespace roci::test
