// The queue pair of a datagram socket, and its buffers: a slot for each datagram that is under way in either direction. Without
// threads, like StreamLink.
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
    std::span<const uint8_t> data;  // with its header, until release()
  };

  // A queue pair that may send and receive. Null, and errno.
  static std::unique_ptr<DatagramQueues> make(const Sizes& sizes);
  ~DatagramQueues();
  DatagramQueues(const DatagramQueues&) = delete;
  DatagramQueues& operator=(const DatagramQueues&) = delete;

  [[nodiscard]] int event_fd() const { return completions_.event_fd(); }
  [[nodiscard]] uint32_t qpn() const { return pair_->qp_num; }
  [[nodiscard]] size_t most_bytes() const { return most_bytes_; }  // of a datagram, with its header

  // Takes completions: calls for each datagram that has come, with how to answer it.
  template <class OnReceived>
  void progress(OnReceived on_received) {
    ibv_wc completion{};
    while (next(completion)) on_received(received_of(completion), completion, *grh_of(completion));
  }
  // The next datagram is an event. False: that was so already, or cannot be.
  bool arm() { return !completions_.armed() && completions_.arm(); }
  bool take_events() { return completions_.take_events(); }

  [[nodiscard]] bool can_send() const { return !free_.empty(); }
  [[nodiscard]] bool all_sent() const { return free_.size() == send_slots_; }
  // Where the next datagram is put before send().
  std::span<uint8_t> outgoing();
  bool send(size_t bytes, ibv_ah* to, uint32_t qpn);
  bool release(uint32_t slot);

 private:
  DatagramQueues() = default;
  bool set_up(const Sizes& sizes);
  bool make_pair(const Sizes& sizes);
  bool move_to(ibv_qp_state state, int mask);
  // False: no datagram is left.
  bool next(ibv_wc& completion);
  Received received_of(const ibv_wc& completion);
  ibv_grh* grh_of(const ibv_wc& completion);

  Completions completions_;
  ibv_qp* pair_ = nullptr;
  uint32_t send_slots_ = 0, receive_slots_ = 0, most_inline_ = 0;
  size_t most_bytes_ = 0;
  std::vector<uint8_t> send_memory_, receive_memory_;
  ibv_mr *send_region_ = nullptr, *receive_region_ = nullptr;
  std::vector<uint32_t> free_;  // slots for sending
};

}  // namespace roci::rdmacm::sockets
