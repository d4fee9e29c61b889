// RC queue pair of one end of a connection, as the application and the oracle use it. It belongs to a Rocinante device
// (DeviceQueuePair) or to the model of a Linux host (LinuxQueuePair).
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <utility>

#include "roci/device.hpp"
#include "support/hosts/connect.hpp"

namespace roci::test {

class RcQueuePair {
 public:
  RcQueuePair() = default;
  RcQueuePair(const RcQueuePair&) = delete;
  RcQueuePair& operator=(const RcQueuePair&) = delete;
  virtual ~RcQueuePair() = default;

  [[nodiscard]] virtual uint32_t qp_num() const = 0;
  [[nodiscard]] virtual ibv_qp_state state() const = 0;
  // These return the verbs return code.
  virtual int post_send(ibv_send_wr* wr, ibv_send_wr** bad) = 0;
  virtual int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) = 0;
  // From RESET to RTS.
  virtual void connect(const ibv_gid& peer, uint32_t remote_qp, const ConnectOptions& options) = 0;
  virtual void move_to(ibv_qp_state state) = 0;  // to ERR or RESET
};

class DeviceQueuePair final : public RcQueuePair {
 public:
  explicit DeviceQueuePair(std::unique_ptr<QueuePair> qp) : qp_(std::move(qp)) {}
  [[nodiscard]] QueuePair& verbs() { return *qp_; }

  [[nodiscard]] uint32_t qp_num() const override { return qp_->qp_num(); }
  [[nodiscard]] ibv_qp_state state() const override { return qp_->state(); }
  int post_send(ibv_send_wr* wr, ibv_send_wr** bad) override { return qp_->post_send(wr, bad); }
  int post_recv(ibv_recv_wr* wr, ibv_recv_wr** bad) override { return qp_->post_recv(wr, bad); }
  void connect(const ibv_gid& peer, uint32_t remote_qp, const ConnectOptions& options) override {
    connect_to(*qp_, IBV_QPT_RC, peer, remote_qp, options);
  }
  void move_to(ibv_qp_state state) override { test::move_to(*qp_, state); }

 private:
  std::unique_ptr<QueuePair> qp_;
};

}  // namespace roci::test
