// Queue pair of a datagram socket with its buffers: one slot for each datagram in flight in either direction. Not
// thread-safe, like StreamLink.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "rdmacm/sockets/stream_link.hpp"

namespace roci::rdmacm::sockets {

class DatagramQueues {
 public:
  struct Received {
    uint32_t slot = 0;
    std::span<const uint8_t> data;  // includes the header; valid until release()
  };

  // Creates a queue pair that can send and receive. Returns null with errno on failure.
  static std::unique_ptr<DatagramQueues> make(const Sizes& sizes);
  ~DatagramQueues();
  DatagramQueues(const DatagramQueues&) = delete;
  DatagramQueues& operator=(const DatagramQueues&) = delete;

  [[nodiscard]] int event_fd() const { return completions_.event_fd(); }
  [[nodiscard]] uint32_t qpn() const { return pair_->qp_num; }
  [[nodiscard]] size_t most_bytes() const { return most_bytes_; }  // of a datagram, including its header

  // Polls completions. Calls on_received for each received datagram, with the data that address a reply.
  template <class OnReceived>
  void progress(OnReceived on_received) {
    ibv_wc completion{};
    while (next(completion)) on_received(received_of(completion), completion, *grh_of(completion));
  }
  // Requests an event for the next datagram. Returns false if it is already requested, or on failure.
  bool arm() { return !completions_.armed() && completions_.arm(); }
  bool take_events() { return completions_.take_events(); }

  [[nodiscard]] bool can_send() const { return !free_.empty(); }
  [[nodiscard]] bool all_sent() const { return free_.size() == send_slots_; }
  // Buffer for the next datagram, to be filled before send().
  std::span<uint8_t> outgoing();
  bool send(size_t bytes, ibv_ah* to, uint32_t qpn);
  bool release(uint32_t slot);

 private:
  DatagramQueues() = default;
  bool set_up(const Sizes& sizes);
  bool make_pair(const Sizes& sizes);
  bool move_to(ibv_qp_state state, int mask);
  // Returns false if no datagram is left.
  bool next(ibv_wc& completion);
  Received received_of(const ibv_wc& completion);
  ibv_grh* grh_of(const ibv_wc& completion);

  Completions completions_;
  ibv_qp* pair_ = nullptr;
  uint32_t send_slots_ = 0, receive_slots_ = 0, most_inline_ = 0;
  size_t most_bytes_ = 0;
  std::vector<uint8_t> send_memory_, receive_memory_;
  ibv_mr *send_region_ = nullptr, *receive_region_ = nullptr;
  std::vector<uint32_t> free_;  // free send slots
};

}  // namespace roci::rdmacm::sockets
