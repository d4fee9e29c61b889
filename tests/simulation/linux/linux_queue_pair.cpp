#include "simulation/linux/linux_queue_pair.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "wire/headers/aeth.hpp"

namespace roci::test {
namespace {

// UDP source port of soft-RoCE for a queue pair without a flow label.
uint16_t udp_source_port(uint32_t local, uint32_t remote) {
  uint64_t mix = uint64_t{local} * remote;
  mix ^= mix >> 20;
  mix ^= mix >> 40;
  const uint64_t label = mix & 0xfffff;
  return static_cast<uint16_t>(0xc000 | ((label & 0x3fff) ^ (label >> 14)));
}

std::vector<ibv_sge> pieces_of(const ibv_sge* list, int count) { return {list, list + std::max(count, 0)}; }

uint32_t bytes_in(const std::vector<ibv_sge>& pieces) {
  uint32_t sum = 0;
  for (const ibv_sge& piece : pieces) sum += piece.length;
  return sum;
}

}  // namespace

LinuxQueuePair::LinuxQueuePair(LinuxHost& host, const ibv_qp_init_attr& init, std::deque<ibv_wc>& completions)
    : host_(host),
      completions_(completions),
      signal_all_(init.sq_sig_all != 0),
      max_send_(init.cap.max_send_wr),
      number_(host.attach(*this)) {}

LinuxQueuePair::~LinuxQueuePair() { host_.detach(number_); }

int LinuxQueuePair::post_send(ibv_send_wr* wr, ibv_send_wr** bad) {
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (state_ != IBV_QPS_RTS && state_ != IBV_QPS_ERR) return EINVAL;
    if (requests_.size() >= max_send_) return ENOMEM;
    Request request;
    request.wr = *wr;
    request.pieces = pieces_of(wr->sg_list, wr->num_sge);
    request.length = request.left = bytes_in(request.pieces);
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) gather(request, 0, request.length, request.inline_data);
    requests_.push_back(std::move(request));
    runnable_ = true;
    if (state_ == IBV_QPS_ERR) flush();
  }
  return 0;
}

int LinuxQueuePair::post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) {
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (state_ == IBV_QPS_RESET) return EINVAL;
    Receive receive{.wr_id = wr->wr_id, .pieces = pieces_of(wr->sg_list, wr->num_sge)};
    receive.capacity = bytes_in(receive.pieces);
    receives_.push_back(std::move(receive));
    if (state_ == IBV_QPS_ERR) flush();
  }
  return 0;
}

void LinuxQueuePair::connect(const ibv_gid& peer, uint32_t remote_qp, const ConnectOptions& options) {
  clear();
  std::memcpy(peer_.bytes.data(), peer.raw, sizeof peer.raw);
  peer_number_ = Qpn{remote_qp};
  mtu_ = 128U << options.path_mtu;
  traffic_class_ = options.traffic_class;
  source_port_ = udp_source_port(number_, remote_qp);
  min_rnr_timer_ = options.min_rnr_timer;
  retry_count_ = options.retry_count;
  rnr_retry_ = options.rnr_retry;
  timeout_ticks_ =
      options.timeout == 0 ? 0 : std::max<int64_t>(1, ack_timeout(options.timeout) / LinuxHost::kTick);
  read_slots_ = options.reads;
  next_psn_ = acked_ = Psn{options.sq_psn};
  expected_ = Psn{options.rq_psn};
  size_t resources = 1;
  while (resources < options.reads) resources *= 2;
  resources_.resize(resources);
  reset_retries();
  state_ = IBV_QPS_RTS;
}

void LinuxQueuePair::move_to(ibv_qp_state state) {
  if (state == IBV_QPS_ERR) {
    enter_error();
    return;
  }
  clear();
  state_ = IBV_QPS_RESET;
}

void LinuxQueuePair::clear() {
  requests_.clear();
  responses_.clear();
  receives_.clear();
  resources_.clear();
  next_ = next_resource_ = 0;
  packets_since_ack_request_ = msn_ = message_bytes_ = write_left_ = write_length_ = 0;
  waits_for_queue_ = need_retry_ = rnr_wait_ = within_read_ = timed_out_ = retry_started_ = gap_named_ =
      runnable_ = false;
  retransmit_at_ = rnr_at_ = kNever;
  acknowledged_ = Psn{};
  last_opcode_ = nullptr;
  write_to_ = nullptr;
}

void LinuxQueuePair::enter_error() {
  state_ = IBV_QPS_ERR;
  retransmit_at_ = rnr_at_ = kNever;
  responses_.clear();
  flush();
}

void LinuxQueuePair::flush() {
  for (; !requests_.empty(); requests_.pop_front())
    add_completion(requests_.front().wr.wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND, 0, {});
  next_ = 0;
  for (; !receives_.empty(); receives_.pop_front())
    add_completion(receives_.front().wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, {});
}

void LinuxQueuePair::receive(const Packet& packet, const OpcodeInfo& opcode) {
  if (state_ != IBV_QPS_RTS || packet.source != peer_) return;
  if (opcode.is_request()) {
    on_request(packet, opcode);
  } else {
    responses_.push_back({packet, &opcode});
    runnable_ = true;
  }
}

bool LinuxQueuePair::run() {
  runnable_ = false;
  if (state_ != IBV_QPS_RTS) return false;
  if (retransmit_at_ <= host_.now()) {
    retransmit_at_ = kNever;
    timed_out_ = true;
  }
  if (rnr_at_ <= host_.now()) {
    rnr_at_ = kNever;
    rnr_wait_ = false;
    need_retry_ = true;
  }
  do request_packets();
  while (complete_responses());
  return true;
}

Nanos LinuxQueuePair::next_deadline() const {
  return runnable_ ? Nanos{0} : std::min(retransmit_at_, rnr_at_);
}

void LinuxQueuePair::send(Packet packet) {
  packet.bth.destination_qp = peer_number_;
  packet.udp_source_port = source_port_;
  packet.with_traffic_class(traffic_class_);
  host_.transmit(std::move(packet), peer_, number_);
}

void LinuxQueuePair::add_completion(uint64_t wr_id, ibv_wc_status status, ibv_wc_opcode opcode,
                                    uint32_t bytes, std::optional<uint32_t> imm) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = status;
  wc.opcode = opcode;
  wc.byte_len = bytes;
  wc.qp_num = number_;
  if (imm) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = htonl(*imm);
  }
  completions_.push_back(wc);
}

void LinuxQueuePair::gather(const Request& request, uint32_t offset, uint32_t length, ByteVector& out) {
  if (!request.inline_data.empty()) {
    out.insert(out.end(), request.inline_data.begin() + offset,
               request.inline_data.begin() + offset + length);
    return;
  }
  for (const ibv_sge& piece : request.pieces) {
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const uint32_t part = std::min(piece.length - offset, length);
    const auto* from = reinterpret_cast<const uint8_t*>(piece.addr) + offset;
    out.insert(out.end(), from, from + part);
    length -= part;
    offset = 0;
  }
}

void LinuxQueuePair::scatter(const std::vector<ibv_sge>& pieces, uint32_t offset, const ByteVector& bytes) {
  size_t done = 0;
  for (const ibv_sge& piece : pieces) {
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const size_t part = std::min<size_t>(piece.length - offset, bytes.size() - done);
    if (part == 0) return;
    std::memcpy(reinterpret_cast<uint8_t*>(piece.addr) + offset, bytes.data() + done, part);
    done += part;
    offset = 0;
  }
}

}  // namespace roci::test
