// SOCK_DGRAM: datagrams of a queue pair, which say from which address and port they are.
//
// Who has an address and a port is asked with a service request of the connection manager (SIDR) for that port, and learned from
// what comes from there. Datagrams wait for the answer, a few of each receiver.
#pragma once

#include <map>

#include "rdmacm/sockets/datagram_queues.hpp"
#include "rdmacm/sockets/socket.hpp"

namespace roci::rdmacm::sockets {

class Datagrams final : public Socket {
 public:
  explicit Datagrams(int domain) : Socket(domain) {}
  ~Datagrams() override;
  // Of a device. False, and errno.
  bool set_up();

  int bind(const sockaddr& address, socklen_t length) override;
  int connect(const sockaddr& address, socklen_t length) override;
  ssize_t send(std::span<const iovec> from, int flags, const sockaddr* to, socklen_t length) override;
  ssize_t receive(std::span<const iovec> to, int flags, sockaddr* from, socklen_t* length) override;
  int shutdown(int how) override;
  int close() override;
  int name(bool of_peer, sockaddr* address, socklen_t* length) override;
  int set_option(int level, int option, const void* value, socklen_t length) override;
  int get_option(int level, int option, void* value, socklen_t* length) override;

 private:
  using Content = std::vector<uint8_t>;
  // Somebody whom we send to.
  struct Peer {
    DatagramSource us;  // what we say to it that we are
    ibv_ah* way = nullptr;
    uint32_t qpn = 0;
    rdma_cm_id* question = nullptr;  // who it is
    Clock::time_point known{};       // when it was told last that it is this queue pair
    std::deque<Content> waiting;
  };
  struct Arrived {
    DatagramQueues::Received received;
    DatagramSource from;
  };

  void progress() override;
  void arm() override;
  bool take_events() override;
  [[nodiscard]] short state() const override;
  [[nodiscard]] Clock::time_point look_at() const override { return Clock::time_point::max(); }

  int bind_to(const sockaddr& address);
  int bind_somewhere();
  [[nodiscard]] std::optional<DatagramSource> target_of(const sockaddr& address, socklen_t length) const;
  [[nodiscard]] std::optional<DatagramSource> us_towards(const IpAddress& peer) const;
  void write_name(const DatagramSource& from, sockaddr_storage& out) const;

  bool on_connection_event(const rdma_cm_event& event) override;
  void answer(const rdma_cm_event& request);
  // Whether the event was the last one of the question.
  bool on_answer(Peer& peer, const rdma_cm_event& event);
  void ask(const DatagramSource& whom, Peer& peer);
  void on_received(const DatagramQueues::Received& received, ibv_wc& completion, ibv_grh& grh);
  void learn(const DatagramSource& from, ibv_wc& completion, ibv_grh& grh);
  void take_way(Peer& peer, ibv_ah* way, uint32_t qpn);
  int send_to(Peer& peer, std::span<const iovec> from);

  Sizes sizes_;
  rdma_cm_id* listener_ = nullptr;
  std::unique_ptr<DatagramQueues> queues_;
  std::map<DatagramSource, Peer> peers_;
  std::optional<DatagramSource> connected_;
  std::deque<Arrived> arrived_;
  bool receives_ = true, sends_ = true;
  int pending_error_ = 0;
  Clock::duration receive_timeout_{0};
};

}  // namespace roci::rdmacm::sockets
