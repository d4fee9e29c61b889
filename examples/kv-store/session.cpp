#include "session.hpp"

#include <unistd.h>

#include <cstring>

#include "../common/tcp.h"
#include "connection.hpp"

namespace kv {

roci::Result<std::unique_ptr<Session>> Session::open(int fd, roci::ProtectionDomain& pd,
                                                     roci::CompletionQueue& cq) {
  std::unique_ptr<Session> session(new Session(fd));
  auto region = pd.register_memory(session->slots_.data(), session->slots_.size() * sizeof(Slot),
                                   IBV_ACCESS_LOCAL_WRITE);
  if (!region) return roci::fail(region.error());
  session->region_ = std::move(*region);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {kCredits, kCredits, 1, 1, 0};
  auto queue_pair = pd.create_qp(&init, cq, cq);
  if (!queue_pair) return roci::fail(queue_pair.error());
  session->queue_pair_ = std::move(*queue_pair);
  ROCI_TRY(prepare(*session->queue_pair_, IBV_ACCESS_REMOTE_READ));
  for (uint32_t slot = 0; slot < kCredits; ++slot) ROCI_TRY(session->post_receive(slot));
  return session;
}

Session::~Session() { close(fd_); }

roci::Result<bool> Session::receive_hello() {
  char* bytes = reinterpret_cast<char*>(&hello_);
  const int got = tcp_receive_some(fd_, bytes + hello_bytes_, sizeof hello_ - hello_bytes_);
  if (got < 0) return roci::fail("it disconnected before its hello message", -got);
  hello_bytes_ += static_cast<size_t>(got);
  return hello_bytes_ == sizeof hello_;
}

ibv_sge Session::piece(const void* bytes, size_t length) const {
  return {reinterpret_cast<uint64_t>(bytes), static_cast<uint32_t>(length), region_->lkey()};
}

roci::Status Session::post_receive(uint32_t slot) {
  ibv_sge sge = piece(slots_[slot].request.data(), kMaxRequest);
  ibv_recv_wr request{slot, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  if (const int error = queue_pair_->post_recv(&request, &bad); error != 0)
    return roci::fail("posting a receive failed", error);
  return {};
}

std::span<const char> Session::request(uint32_t slot, uint32_t length) const {
  return std::span(slots_[slot].request).first(length);
}

roci::Status Session::send(uint32_t slot, const Answer& answer) {
  slots_[slot].answer = answer;
  ibv_sge sge = piece(&slots_[slot].answer, sizeof answer);
  ibv_send_wr request{};
  request.wr_id = slot | kAnswerFlag;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (const int error = queue_pair_->post_send(&request, &bad); error != 0)
    return roci::fail("posting a response failed", error);
  return {};
}

}  // namespace kv
