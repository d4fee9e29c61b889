// UC connection with random traffic in both directions. Oracle: every request completes successfully and in order. A
// received message is complete and was sent; it arrives at most once and in order, unless the network duplicates or
// reorders (IBTA 9.8.2.2: a first packet starts a message whatever its PSN). A WRITE leaves each byte with its old or
// new value.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "simulation/scenario/network.hpp"
#include "simulation/traffic/receives.hpp"
#include "support/hosts/connect.hpp"

namespace roci::test {

class UnreliableConnection final : public Actor {
 public:
  UnreliableConnection(Network& network, const Scenario& scenario, Rng rng, Verifier& verifier,
                       std::array<size_t, 2> hosts);

  void act(Nanos now) override;
  void reap() override;
  [[nodiscard]] bool finished() const override;
  [[nodiscard]] std::string state() const override;
  void check() override;

 private:
  static constexpr size_t kSlotBytes = 16 * 1024;  // the largest message
  // Each slot is written once, because the sender cannot know when a WRITE has ended.
  static constexpr size_t kWriteSlots = 32;

  struct Message {
    uint64_t wr_id = 0;
    ibv_wr_opcode opcode = IBV_WR_SEND;
    size_t source = 0;
    size_t target = 0;  // of a WRITE
    uint32_t length = 0;
    uint32_t imm = 0;
    bool signaled = false;
    bool completed = false;
    uint32_t arrived = 0;
    [[nodiscard]] bool has_imm() const {
      return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    }
    [[nodiscard]] bool is_write() const {
      return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    }
    [[nodiscard]] bool tells() const { return opcode != IBV_WR_RDMA_WRITE; }
  };
  struct End {
    size_t host = 0;
    std::unique_ptr<ProtectionDomain> pd;
    std::unique_ptr<CompletionQueue> cq;
    std::unique_ptr<QueuePair> qp;
    Arena source, landing;
    std::vector<uint8_t> landing_image;
    Receives receives;
    std::vector<Message> messages;  // in the order of sending
    size_t next_done = 0;           // the first without a send completion
    size_t next_due = 0;            // the first that may still arrive, if messages arrive in order
    size_t next_slot = 0;
    uint32_t to_post = 0;
  };

  void post_random(End& local, End& peer);
  void reap(End& local, End& peer);
  void on_send_done(End& local, const ibv_wc& wc);
  void on_receive_done(End& local, End& peer, const ibv_wc& wc);
  [[nodiscard]] bool is(const Message& message, const End& sender, const ibv_wc& wc,
                        const uint8_t* bytes) const;
  void check_writes(End& local, End& peer);

  const Scenario& scenario_;
  Rng rng_;
  Verifier& verifier_;
  bool in_order_;
  std::array<End, 2> ends_;
};

}  // namespace roci::test
