// SOCK_STREAM sockets: a connection of the connection manager, with a StreamLink over it.
//
//   fresh ─► bound ─► listening ─► (accept) ─► accepting ─┐
//     └───────┴─► finding ─► routing ─► connecting ───────┴─► open      failed: from any of finding … accepting
//
// Calls for the socket process events of the connection and completions; only a listener has a thread. One thread may
// send while another one receives. Concurrent senders are serialized, and so are concurrent receivers.
#pragma once

#include <memory>
#include <optional>

#include "rdmacm/id.hpp"
#include "rdmacm/sockets/listener_thread.hpp"
#include "rdmacm/sockets/socket.hpp"
#include "rdmacm/sockets/stream_link.hpp"

namespace roci::rdmacm::sockets {

class Stream final : public Socket {
 public:
  explicit Stream(int domain);
  ~Stream() override;
  // Returns false with errno on failure.
  bool set_up() { return open_channel(); }

  int bind(const sockaddr& address, socklen_t length) override;
  int listen(int backlog) override;
  void answer_in_background() override;
  std::shared_ptr<Socket> accept() override;
  int connect(const sockaddr& address, socklen_t length) override;
  ssize_t send(std::span<const iovec> from, int flags, const sockaddr* to, socklen_t length) override;
  ssize_t receive(std::span<const iovec> to, int flags, sockaddr* from, socklen_t* length) override;
  int shutdown(int how) override;
  int close() override;
  int name(bool of_peer, sockaddr* address, socklen_t* length) override;
  int set_option(int level, int option, const void* value, socklen_t length) override;
  int get_option(int level, int option, void* value, socklen_t* length) override;
  off_t map(void* memory, size_t length, int protection, off_t offset) override;
  int unmap(void* memory, size_t length) override;
  ssize_t write_mapped(const void* from, size_t length, off_t offset, int flags) override;

 private:
  enum class Stage : uint8_t {
    kFresh,
    kBound,
    kListening,
    kFinding,  // resolution of the next hop
    kRouting,
    kConnecting,  // waits for the reply of the peer
    kAccepting,   // waits until the peer has the reply
    kOpen,
    kFailed,
  };
  // Request for a connection that was not answered yet.
  struct Request {
    rdma_cm_id* id = nullptr;
    ConnectionData remote;
  };
  struct Options {
    bool reuse_address = false, keep_alive = false, oob_inline = false, no_delay = false, v6_only = false;
    int keep_idle = 7200;  // s
    linger on_close{0, 0};
    Clock::duration receive_timeout{0}, send_timeout{0};  // 0: no timeout
  };

  bool make_id();
  int bind_to(const sockaddr& address);
  [[nodiscard]] bool opening() const { return stage_ >= Stage::kFinding && stage_ <= Stage::kAccepting; }
  int fail(int code);
  bool on_connection_event(const rdma_cm_event& event) override;
  void begin_connection();
  void open_with(const rdma_cm_event& event);
  void on_disconnected();
  // Of a listener. True if the event was the last one of its identifier.
  bool on_request(const rdma_cm_event& event);
  void answer_requests();
  bool has_failed();
  std::shared_ptr<Stream> answer(const Request& request);
  int answer_with(Stream& fresh, const Request& request);
  void disconnect();

  int set_socket_option(int option, int number, const void* value, socklen_t length);
  int set_tcp_option(int option, int number);
  int set_id_option(int option, int number);
  std::optional<int> number_of(int level, int option);
  std::optional<int> socket_number(int option);

  void progress() override;
  void arm() override;
  bool take_events() override;
  [[nodiscard]] short state() const override;
  [[nodiscard]] Clock::time_point wake_time() const override;
  int wait_until_open(Lock& lock, bool may_sleep, Clock::time_point until);
  [[nodiscard]] bool may_not_send() const;
  [[nodiscard]] ssize_t moved_or(size_t moved) const;

  std::mutex sender_, receiver_;  // held while copying; locked before mutex_
  Stage stage_ = Stage::kFresh;
  int pending_error_ = 0;        // for SO_ERROR
  bool error_reported_ = false;  // by SO_ERROR: that of the link
  Options options_;
  Sizes sizes_;
  rdma_cm_id* id_ = nullptr;
  std::unique_ptr<StreamLink> link_;
  // Of a listener. A request costs its sender one frame. It waits in requests_, whose length the backlog limits, until the
  // number of streams that accept() did not fetch is below most_accepted_.
  std::deque<Request> requests_;
  std::deque<std::shared_ptr<Stream>> accepted_;
  size_t most_accepted_ = 0;
  std::unique_ptr<ListenerThread> listener_thread_;
  Clock::time_point last_completion_ = Clock::now();  // time of the last completion
};

}  // namespace roci::rdmacm::sockets
