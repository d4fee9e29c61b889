// Creation, connection data and transmission of a stream link. Reception is in stream_progress.cpp.
#include "rdmacm/sockets/stream_link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace roci::rdmacm::sockets {
namespace {

constexpr uint32_t kControlSlots = 4;  // send queue entries that data cannot use
// Receives in addition to the announced ones, for messages without credit. Without them the peer would receive RNR
// NAKs.
constexpr uint32_t kSpareReceives = 8;
constexpr uint32_t kLowWater = 2048;  // minimum bytes of space for a message
// The peer can read the first part of a large transfer while the rest is in flight.
constexpr uint32_t kMaxPerMessage = 1U << 16;

Pieces pieces_of(std::vector<uint8_t>& ring, size_t at, size_t bytes) {
  at %= ring.size();
  const size_t first = std::min(bytes, ring.size() - at);
  return {std::span(ring).subspan(at, first), std::span(ring).first(bytes - first)};
}

}  // namespace

std::unique_ptr<StreamLink> StreamLink::make(rdma_cm_id* id, const Sizes& sizes) {
  std::unique_ptr<StreamLink> link(new StreamLink(id, sizes));
  return link->set_up() ? std::move(link) : nullptr;
}

bool StreamLink::set_up() {
  ibv_device_attr device{};
  if (const int code = ibv_query_device(id_->verbs, &device); code != 0) {
    errno = code;
    return false;
  }
  const auto most = static_cast<uint32_t>(device.max_qp_wr) - kSpareReceives;
  sizes_.send_queue = std::min(sizes_.send_queue, most);
  sizes_.receive_queue = std::min(sizes_.receive_queue, most);
  return make_queues() && register_memory() && post_receives(sizes_.receive_queue + kSpareReceives);
}

bool StreamLink::make_queues() {
  const uint32_t receives = sizes_.receive_queue + kSpareReceives;
  if (!completions_.make(id_->verbs, sizes_.send_queue + receives)) return false;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = completions_.queue();
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  attr.cap = {.max_send_wr = sizes_.send_queue,
              .max_recv_wr = receives,
              .max_send_sge = 2,
              .max_recv_sge = 1,
              .max_inline_data = std::max<uint32_t>(sizes_.most_inline, sizeof(Mapping))};
  if (rdma_create_qp(id_, nullptr, &attr) != 0) return false;
  free_data_slots_ = sizes_.send_queue - kControlSlots;
  free_control_slots_ = kControlSlots;
  return true;
}

bool StreamLink::register_memory() {
  half_ = sizes_.receive_ring / 2;
  send_ring_.resize(sizes_.send_ring);
  receive_ring_.resize(size_t{half_} * 2);
  peer_written_.resize((kGrants * sizeof(Area) + sizes_.mappings * sizeof(Mapping)) / sizeof(uint64_t));
  const auto add = [&](auto& memory, int access) {
    return ibv_reg_mr(id_->pd, memory.data(), memory.size() * sizeof memory[0], access);
  };
  send_region_ = add(send_ring_, 0);
  receive_region_ = add(receive_ring_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  peer_written_region_ = add(peer_written_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  send_free_ = sizes_.send_ring;
  granted_ = freed_ = grant_at_ = half_;  // the connection data grants the first half; the second is free
  due_ = static_cast<uint16_t>(sizes_.receive_queue / 2);
  return send_region_ != nullptr && receive_region_ != nullptr && peer_written_region_ != nullptr;
}

StreamLink::~StreamLink() {
  if (id_->qp != nullptr) rdma_destroy_qp(id_);
  for (ibv_mr* region : {send_region_, receive_region_, peer_written_region_}) {
    if (region != nullptr) ibv_dereg_mr(region);
  }
  for (const Mapped& mapped : mapped_) ibv_dereg_mr(mapped.region);
}

ConnectionData StreamLink::connection_data() const {
  return {.big_endian = std::endian::native == std::endian::big,
          .credits = static_cast<uint16_t>(sizes_.receive_queue),
          .mappings = sizes_.mappings,
          .grants = {reinterpret_cast<uintptr_t>(peer_written_.data()), peer_written_region_->rkey, kGrants},
          .ring = {reinterpret_cast<uintptr_t>(receive_ring_.data()), receive_region_->rkey, half_}};
}

void StreamLink::agree(const ConnectionData& peer) {
  swap_ = peer.big_endian != (std::endian::native == std::endian::big);
  peer_grants_ = peer.grants;
  peer_grant_ = 1 % peer.grants.length;
  peer_mappings_ = {peer.grants.address + sizeof(Area) * peer.grants.length, peer.grants.key, peer.mappings};
  if (peer.ring.length > 0) grants_.push_back(peer.ring);
  allowed_ = peer.credits;
}

bool StreamLink::arm() {
  if (completions_.armed()) return false;
  if (completions_.arm()) return true;
  fail(errno);
  return false;
}

void StreamLink::fail(int code) {
  if (is_disconnected()) return;
  if (is_finished()) {
    disconnected_ = true;  // both peers had finished
  } else {
    error_ = code;
  }
  receives_ = sends_ = false;
}

uint32_t StreamLink::direct_space() const {
  if (!open_ || !sends_ || free_data_slots_ == 0 || send_free_ < kLowWater) return 0;
  return std::min(send_free_, kMaxPerMessage);
}

uint32_t StreamLink::send_space() const {
  if (sent_ == allowed_ || grants_.empty() || has_unannounced_mappings()) return 0;
  return std::min(direct_space(), grants_.front().length);
}

Pieces StreamLink::outgoing(uint32_t bytes) { return pieces_of(send_ring_, send_at_, bytes); }
Pieces StreamLink::incoming(size_t skip, size_t bytes) {
  return pieces_of(receive_ring_, read_at_ + skip, bytes);
}

bool StreamLink::write(uint32_t bytes) {
  Area& grant = grants_.front();
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = std::bit_cast<uint32_t>(Be32{word(Operation::kData, bytes)});
  wr.wr.rdma.remote_addr = grant.address;
  wr.wr.rdma.rkey = grant.key;
  ++sent_;
  grant.address += bytes;
  grant.length -= bytes;
  if (grant.length == 0) grants_.pop_front();
  return post_outgoing(bytes, wr, Kind::kData);
}

bool StreamLink::write_at(uint32_t bytes, uint64_t address, uint32_t key) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = key;
  return post_outgoing(bytes, wr, Kind::kDirect);
}

bool StreamLink::post_outgoing(uint32_t bytes, ibv_send_wr& wr, Kind kind) {
  std::array<ibv_sge, 2> entries{};
  int count = 0;
  for (const std::span<uint8_t> piece : outgoing(bytes)) {
    if (piece.empty()) continue;
    entries[static_cast<size_t>(count++)] = {reinterpret_cast<uintptr_t>(piece.data()),
                                             static_cast<uint32_t>(piece.size()), send_region_->lkey};
  }
  wr.sg_list = entries.data();
  wr.num_sge = count;
  if (bytes <= sizes_.most_inline) wr.send_flags = IBV_SEND_INLINE;
  --free_data_slots_;
  send_free_ -= bytes;
  send_at_ = (send_at_ + bytes) % sizes_.send_ring;
  return post(wr, kind, bytes);
}

bool StreamLink::post_immediate(Kind kind, uint32_t immediate, std::span<const uint8_t> content,
                                uint64_t address, uint32_t key) {
  ibv_sge entry{reinterpret_cast<uintptr_t>(content.data()), static_cast<uint32_t>(content.size()), 0};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data = std::bit_cast<uint32_t>(Be32{immediate});
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = key;
  if (!content.empty()) {
    wr.sg_list = &entry;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_INLINE;
  }
  --(kind == Kind::kMapping ? free_data_slots_ : free_control_slots_);
  return post(wr, kind, 0);
}

bool StreamLink::post(ibv_send_wr& wr, Kind kind, uint32_t bytes) {
  wr.wr_id = static_cast<uint64_t>(kind) << 32 | bytes;
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(id_->qp, &wr, &bad);
  if (code != 0) fail(code);
  errno = code;
  return code == 0;
}

void StreamLink::probe() {
  if (!open_ || is_disconnected() || probing_ || free_control_slots_ == 0) return;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = peer_grants_.address;
  wr.wr.rdma.rkey = peer_grants_.key;
  --free_control_slots_;
  probing_ = post(wr, Kind::kProbe, 0);
}

void StreamLink::shut(int how) {
  const bool was_shut = !sends_;
  if (is_finished()) return;
  if (how != SHUT_WR) receives_ = false;
  if (how != SHUT_RD) sends_ = false;
  if (sends_) return;  // SHUT_RD alone is not reported to the peer
  if (receives_ && was_shut) return;
  pending_control_ = receives_ ? Control::kShutdown : Control::kDisconnect;
  send_pending_control();
}

void StreamLink::send_pending_control() {
  if (!pending_control_ || !open_ || is_disconnected() || free_control_slots_ == 0) return;
  const uint32_t operand = static_cast<uint32_t>(*pending_control_);
  pending_control_.reset();
  post_immediate(Kind::kControl, word(Operation::kControl, operand));
}

bool StreamLink::all_sent() const {
  return !pending_control_ && free_control_slots_ == kControlSlots &&
         free_data_slots_ == sizes_.send_queue - kControlSlots;
}

}  // namespace roci::rdmacm::sockets
