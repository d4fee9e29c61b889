#include "support/hosts/lone_host.hpp"

#include <algorithm>
#include <cstring>

#include "device/api/create_device.hpp"
#include "port/dpdk/eal.hpp"
#include "support/ports/frames.hpp"
#include "wire/headers/aeth.hpp"

namespace roci::test {
namespace {

constexpr uint8_t kGuardByte = 0xa5;
constexpr unsigned kRoundLimit = 10'000;

}  // namespace

ScriptPort::ScriptPort(std::shared_ptr<MbufPool> pool) : pool_(std::move(pool)) { capabilities_.mtu = 4200; }

ScriptPort::~ScriptPort() {
  for (rte_mbuf* frame : waiting_) rte_pktmbuf_free(frame);
}

void ScriptPort::put(const ByteVector& frame, size_t segment) {
  rte_mbuf* chain = nullptr;
  for (size_t at = 0; at == 0 || at < frame.size();) {
    const size_t take = std::min(segment, frame.size() - at);
    rte_mbuf* piece = to_mbuf(*pool_, ByteVector(frame.begin() + static_cast<ptrdiff_t>(at),
                                                 frame.begin() + static_cast<ptrdiff_t>(at + take)));
    if (piece == nullptr) throw std::runtime_error("no buffer for the test's own packet");
    if (chain == nullptr) {
      chain = piece;
    } else if (rte_pktmbuf_chain(chain, piece) != 0) {
      throw std::runtime_error("too many segments");
    }
    at += std::max<size_t>(take, 1);
  }
  waiting_.push_back(chain);
}

uint16_t ScriptPort::rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) {
  uint16_t count = 0;
  for (; count < out.size() && !waiting_.empty(); waiting_.pop_front()) out[count++] = waiting_.front();
  return count;
}

uint16_t ScriptPort::tx_burst(std::span<rte_mbuf*> frames, Nanos /*now*/) {
  if (blocked) return 0;
  if (on_burst) on_burst();
  for (rte_mbuf* frame : frames) {
    sent.push_back(bytes_of(frame));
    rte_pktmbuf_free(frame);
  }
  return static_cast<uint16_t>(frames.size());
}

LoneHost::LoneHost(const LoneHostOptions& options) : options_(options) {
  must(start_eal());
  pool_ = must(MbufPool::create("script", 512, 4400));
  auto port = std::make_unique<ScriptPort>(pool_);
  port_ = port.get();
  DeviceConfig config;
  config.name = "lone";
  config.addresses = {"10.0.0.1/24"};
  if (options.static_peer) config.neighbors["10.0.0.2"] = MacAddress::local(2).to_string();
  config.progress = Progress::kExternal;
  config.seed = 1;
  config.packets_per_ack = options.packets_per_ack;
  config.extensions = options.extensions;
  config.congestion = options.congestion;
  config.congestion_control = options.control;
  config.vlan = options.vlan;
  config.header_only = options.header_only;
  config.tx_buffers = options.tx_buffers;
  config.window_bytes = options.window_bytes;
  side.device = must(create_device(std::move(port), config));
  side.pd = must(side.device->allocate_pd());
  side.cq = must(side.device->create_cq(options.cq_entries));
  side.memory.assign(options.region + 2 * kGuard, kGuardByte);
  side.region = must(side.pd->register_memory(side.memory.data() + kGuard, options.region, options.access));
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {
      .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
  init.sq_sig_all = options.signal_all ? 1 : 0;
  side.qp = must(side.pd->create_qp(&init, *side.cq, *side.cq));
  connect();
}

LoneHost::~LoneHost() = default;

ReliableQueuePair& LoneHost::core() { return TwoHosts::core(side); }

void LoneHost::to_init() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(options_.access);
  must(side.qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

void LoneHost::to_rtr() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = options_.path_mtu;
  attr.dest_qp_num = kPeerQp.value();
  attr.rq_psn = options_.rq_psn & Psn::kMask;
  attr.max_dest_rd_atomic = options_.reads;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.sgid_index = 1;
  const Gid peer = IpAddress::from_v4(0x0a000002);
  std::memcpy(attr.ah_attr.grh.dgid.raw, peer.bytes.data(), 16);
  must(side.qp->modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

void LoneHost::to_rts() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = options_.timeout;
  attr.retry_cnt = options_.retry_count;
  attr.rnr_retry = options_.rnr_retry;
  attr.sq_psn = options_.sq_psn & Psn::kMask;
  attr.max_rd_atomic = options_.reads;
  must(side.qp->modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void LoneHost::to_bare(ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  must(side.qp->modify(attr, IBV_QP_STATE));
}

void LoneHost::connect() {
  to_init();
  to_rtr();
  to_rts();
  work();
}

Packet LoneHost::request(Opcode opcode, int ahead, size_t payload) const {
  Packet packet = make_packet(opcode);
  packet.between(MacAddress::local(2), IpAddress::from_v4(0x0a000002), MacAddress::local(1),
                 IpAddress::from_v4(0x0a000001));
  packet.to(Qpn{side.qp->qp_num()}, Psn{options_.rq_psn + static_cast<uint32_t>(ahead)});
  ByteVector bytes(payload);
  for (size_t i = 0; i < payload; ++i) bytes[i] = static_cast<uint8_t>(i + 1);
  packet.with_payload(bytes);
  return packet.requesting_ack();
}

Packet LoneHost::write(Opcode opcode, int ahead, size_t offset, size_t payload, uint32_t length) const {
  Packet packet = request(opcode, ahead, payload);
  if (packet.reth) packet.with_reth(side.address(kGuard + offset), MemoryKey{side.region->rkey()}, length);
  return packet;
}

Packet LoneHost::read(int ahead, size_t offset, uint32_t length) const {
  return write(Opcode::kRcReadRequest, ahead, offset, 0, length);
}

Packet LoneHost::response(Opcode opcode, int ahead, uint8_t syndrome, size_t payload) const {
  Packet packet = request(opcode, 0, payload);
  packet.bth.ack_request = false;
  packet.bth.psn = Psn{options_.sq_psn + static_cast<uint32_t>(ahead)};
  if (packet.aeth) packet.with_aeth(syndrome, Msn{1});
  return packet;
}

Lines LoneHost::receive(Packet packet) { return receive_bytes(encode_packet(packet.finish())); }

Lines LoneHost::receive_bytes(const ByteVector& frame, size_t segment) {
  port_->put(frame, segment);
  return work();
}

Lines LoneHost::work() {
  Lines lines;
  for (const Packet& packet : work_for_packets()) lines.push_back(line_of(packet));
  return lines;
}

std::vector<Packet> LoneHost::work_for_packets() {
  Poller& poller = side.device->poller();
  unsigned rounds = 0;
  while (poller.poll(now)) {
    if (++rounds == kRoundLimit) throw std::runtime_error("the host works on and on at one instant");
  }
  return take_packets();
}

Lines LoneHost::wait(Nanos span) {
  const Nanos end = now + span;
  Lines all;
  for (;;) {
    const auto lines = work();
    all.insert(all.end(), lines.begin(), lines.end());
    const Nanos next = side.device->poller().next_deadline();
    if (next > end) break;
    now = next > now ? next : now + 1us;  // a deadline in the past belongs to a blocked port
    if (now > end) break;
  }
  now = end;
  return all;
}

std::vector<Packet> LoneHost::take_packets() {
  std::vector<Packet> packets;
  for (const ByteVector& frame : port_->sent) {
    auto packet = decode_packet(frame);
    if (packet) packets.push_back(*packet);
  }
  port_->sent.clear();
  return packets;
}

std::string LoneHost::line_of(const Packet& packet) const {
  const OpcodeInfo& info = opcode_info(packet.bth.opcode);
  const uint32_t first = info.is_request() ? options_.sq_psn : options_.rq_psn;
  std::string line = std::string(info.name) + " " + std::to_string(packet.bth.psn - Psn{first});
  if (info.operation == Operation::kAcknowledge) {
    char text[8];
    std::snprintf(text, sizeof text, " %02x", packet.aeth->syndrome);
    line += text;
  }
  return line;
}

bool LoneHost::guards_whole() const {
  const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
  return std::all_of(side.memory.begin(), side.memory.begin() + kGuard, is_guard) &&
         std::all_of(side.memory.end() - kGuard, side.memory.end(), is_guard);
}

Statuses LoneHost::statuses() {
  Statuses all;
  for (const ibv_wc& wc : side.completions()) all.push_back(wc.status);
  return all;
}

int LoneHost::post(ibv_wr_opcode opcode, uint64_t wr_id, size_t length, unsigned flags) {
  return side.post(opcode, wr_id, kGuard, length, 0x10000, 0x77, flags);
}

}  // namespace roci::test
