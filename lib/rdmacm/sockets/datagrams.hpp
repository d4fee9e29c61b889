// SOCK_DGRAM sockets: datagrams of a queue pair, with a header that contains the source address and port.
//
// The queue pair of an address and port is resolved by a service request of the connection manager (SIDR) for that
// port, and learned from the first datagram that is received from them. A datagram from another queue pair does not
// replace a known one: the next datagram to the peer waits for a new resolution. A datagram whose header has another
// address than its packet is dropped. The numbers of peers and of datagrams that wait for a resolution are limited.
#pragma once

#include <list>
#include <map>

#include "rdmacm/sockets/datagram_queues.hpp"
#include "rdmacm/sockets/socket.hpp"

namespace roci::rdmacm::sockets {

class Datagrams final : public Socket {
 public:
  explicit Datagrams(int domain) : Socket(domain) {}
  ~Datagrams() override;
  // Requires a device. Returns false with errno on failure.
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
  // Destination of datagrams.
  struct Peer {
    DatagramSource address;
    // Local address and port in datagrams to this peer: those of the address handle, which its receiver compares.
    DatagramSource local;
    ibv_ah* address_handle = nullptr;
    uint32_t qpn = 0;
    rdma_cm_id* resolution_id = nullptr;  // pending resolution
    Clock::time_point known{};            // time of the last confirmation of qpn
    bool doubted = false;                 // a datagram from another queue pair arrived since
    std::deque<Content> waiting;
  };
  using Peers = std::list<Peer>;
  struct Arrived {
    DatagramQueues::Received received;
    DatagramSource from;
  };

  void progress() override;
  void arm() override;
  bool take_events() override;
  [[nodiscard]] short state() const override;
  [[nodiscard]] Clock::time_point wake_time() const override { return Clock::time_point::max(); }

  int bind_to(const sockaddr& address);
  int bind_to_any();
  bool renew_listener();
  [[nodiscard]] std::optional<DatagramSource> target_of(const sockaddr& address, socklen_t length) const;
  [[nodiscard]] std::optional<DatagramSource> local_address_for(const IpAddress& peer) const;
  void write_name(const DatagramSource& from, sockaddr_storage& out) const;

  bool on_connection_event(const rdma_cm_event& event) override;
  void accept_query(const rdma_cm_event& request);
  // Returns true if the event was the last one of the resolution.
  bool on_response(Peer& peer, const rdma_cm_event& event);
  void send_query(const DatagramSource& destination, Peer& peer);
  void on_received(const DatagramQueues::Received& received, ibv_wc& completion, ibv_grh& grh);
  void learn(const DatagramSource& from, const IpAddress& local, ibv_wc& completion, ibv_grh& grh);
  // Returns null if the table is full of peers that are being resolved.
  Peer* find_or_make(const DatagramSource& address);
  bool evict_one();
  void drop_waiting(Peer& peer);
  void set_address_handle(Peer& peer, ibv_ah* handle, uint32_t qpn);
  // Sends datagrams that waited for a resolution, as far as there is space.
  void send_waiting();
  int send_to(Peer& peer, std::span<const iovec> from);

  Sizes sizes_;
  rdma_cm_id* listener_ = nullptr;
  bool reuse_address_ = false;
  std::unique_ptr<DatagramQueues> queues_;
  Peers peers_;  // the least recently used first
  std::map<DatagramSource, Peers::iterator> by_address_;
  size_t waiting_ = 0;          // datagrams of all peers
  std::deque<Peer*> resolved_;  // peers with an address handle whose datagrams still wait, for space
  std::optional<DatagramSource> connected_;
  std::deque<Arrived> arrived_;
  bool receives_ = true, sends_ = true;
  int pending_error_ = 0;
  Clock::duration receive_timeout_{0};
};

}  // namespace roci::rdmacm::sockets
