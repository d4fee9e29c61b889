// Naming, connection and close of streams.
#include "rdmacm/sockets/stream.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rdmacm/addresses.hpp"
#include "rdmacm/sockets/options.hpp"

namespace roci::rdmacm::sockets {
namespace {

constexpr int kFindTimeout = 5000;  // ms, for the address of the next hop
// Time for which close() waits until the peer's device has received all data, unless SO_LINGER specifies another one.
constexpr std::chrono::seconds kLinger{20};
// Streams of a listener that accept() did not fetch. Each has two rings, a queue pair and four descriptors.
constexpr int kMaxAccepted = 16;

int connect_error(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_REJECTED:
      return ECONNREFUSED;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return event.status == -ETIMEDOUT ? EHOSTUNREACH : std::max(-event.status, EHOSTUNREACH);
    case RDMA_CM_EVENT_UNREACHABLE:
      return ETIMEDOUT;
    default:
      return ECONNABORTED;
  }
}

rdma_conn_param parameters(const WireConnectionData& data) {
  rdma_conn_param out{};
  out.private_data = &data;
  out.private_data_len = sizeof data;
  out.flow_control = 1;
  out.retry_count = 7;
  out.rnr_retry_count = 7;  // infinite: a program need not read
  return out;
}

std::optional<ConnectionData> connection_data_in(const rdma_cm_event& event) {
  const rdma_conn_param& conn = event.param.conn;
  if (conn.private_data == nullptr) return std::nullopt;
  return from_wire({static_cast<const uint8_t*>(conn.private_data), conn.private_data_len});
}

}  // namespace

std::shared_ptr<Socket> make_stream(int domain) {
  auto out = std::make_shared<Stream>(domain);
  return out->set_up() ? out : nullptr;
}

Stream::Stream(int domain) : Socket(domain) {}

bool Stream::make_id() { return id_ != nullptr || rdma_create_id(channel_, &id_, this, RDMA_PS_TCP) == 0; }

Stream::~Stream() {
  listener_thread_.reset();
  accepted_.clear();
  for (const Request& request : requests_) rdma_destroy_id(request.id);
  link_.reset();
  if (id_ != nullptr) rdma_destroy_id(id_);
}

int Stream::fail(int code) {
  if (stage_ != Stage::kFailed) pending_error_ = code;
  stage_ = Stage::kFailed;
  return failed(code);
}

int Stream::bind(const sockaddr& address, socklen_t length) {
  const Lock guard(mutex_);
  if (address.sa_family != domain_) return failed(EAFNOSUPPORT);
  if (address_length(address, length) == 0 || stage_ != Stage::kFresh) return failed(EINVAL);
  return bind_to(address);
}

int Stream::bind_to(const sockaddr& address) {
  sockaddr_storage copy{};
  std::memcpy(&copy, &address, domain_ == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  if (!make_id() || rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&copy)) != 0) return -1;
  stage_ = Stage::kBound;
  return 0;
}

int Stream::listen(int backlog) {
  const Lock guard(mutex_);
  if (stage_ == Stage::kListening) return 0;
  if (stage_ == Stage::kFresh) {
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(domain_);
    if (bind_to(reinterpret_cast<const sockaddr&>(any)) != 0) return -1;
  }
  if (stage_ != Stage::kBound) return failed(EINVAL);
  if (rdma_listen(id_, backlog) != 0) return -1;
  most_accepted_ = static_cast<size_t>(backlog > 0 ? std::min(backlog, kMaxAccepted) : kMaxAccepted);
  stage_ = Stage::kListening;
  return 0;
}

void Stream::answer_in_background() {
  const Lock guard(mutex_);
  if (stage_ != Stage::kListening || closed_ || listener_thread_ != nullptr) return;
  listener_thread_ = std::make_unique<ListenerThread>(channel_->fd, [this] {
    const Lock lock(mutex_);
    if (!closed_) progress();
  });
}

std::shared_ptr<Socket> Stream::accept() {
  Lock lock(mutex_);
  if (stage_ != Stage::kListening) {
    errno = EINVAL;
    return nullptr;
  }
  if (wait(lock, waits(0), Clock::time_point::max(), [&] { return !accepted_.empty(); }) != 0) return nullptr;
  if (accepted_.empty()) {
    errno = EBADF;  // closed by another thread
    return nullptr;
  }
  auto out = std::move(accepted_.front());
  accepted_.pop_front();
  wait_point_.set_ready(!accepted_.empty());
  // rdma-core's librspreload.so allocates its own number for a socket before the call. Its select() reports the wrong
  // socket unless the number that it gets from the call is higher.
  out->wait_point_.renumber();
  return out;
}

int Stream::connect(const sockaddr& address, socklen_t length) {
  Lock lock(mutex_);
  if (stage_ == Stage::kOpen) return failed(EISCONN);
  if (stage_ == Stage::kFresh || stage_ == Stage::kBound) {
    const socklen_t bytes = address_length(address, length);
    if (bytes == 0 || address.sa_family != domain_) return failed(bytes == 0 ? EINVAL : EAFNOSUPPORT);
    sockaddr_storage to{};
    std::memcpy(&to, &address, bytes);
    if (!make_id()) return -1;
    if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), kFindTimeout) != 0)
      return fail(errno);
    stage_ = Stage::kFinding;
  } else if (opening() && !waits(0)) {
    take_connection_events();
    if (opening()) return failed(EALREADY);
  }
  if (stage_ == Stage::kListening) return failed(EOPNOTSUPP);
  const int status = wait_until_open(lock, waits(0), deadline(options_.send_timeout));
  if (status != 0 && errno == EAGAIN) return failed(EINPROGRESS);
  if (status != 0) pending_error_ = 0;  // reported by this call
  return status;
}

// Except for requests, never the last event: the identifier is destroyed with its stream.
bool Stream::on_connection_event(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) return on_request(event);
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      stage_ = Stage::kRouting;
      if (rdma_resolve_route(id_, kFindTimeout) != 0) fail(errno);
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      begin_connection();
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      open_with(event);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      on_disconnected();
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      break;
    default:
      if (opening()) fail(connect_error(event));
  }
  return false;
}

void Stream::begin_connection() {
  link_ = StreamLink::make(id_, sizes_);
  if (link_ == nullptr || !wait_point_.watch(link_->event_fd())) {
    fail(errno);
    return;
  }
  const WireConnectionData local = to_wire(link_->connection_data());
  rdma_conn_param param = parameters(local);
  stage_ = Stage::kConnecting;
  if (rdma_connect(id_, &param) != 0) fail(errno);
}

void Stream::open_with(const rdma_cm_event& event) {
  if (stage_ == Stage::kConnecting) {
    const auto remote = connection_data_in(event);
    if (!remote) {
      fail(EPROTO);
      return;
    }
    link_->agree(*remote);
  }
  if (!opening()) return;
  stage_ = Stage::kOpen;
  last_completion_ = Clock::now();
  link_->open();
  link_->progress();
}

// The peer has disconnected. Unless its program ended abnormally, it has shut down the stream before.
void Stream::on_disconnected() {
  if (opening()) fail(ECONNABORTED);
  if (link_ == nullptr) return;
  link_->progress();
  link_->fail(ECONNRESET);
  disconnect();
}

void Stream::disconnect() {
  if (rdma_disconnect(id_) != 0 && link_ != nullptr) link_->fail(errno);
}

// Peers with another protocol are rejected. The program is not notified.
bool Stream::on_request(const rdma_cm_event& event) {
  if (const auto remote = connection_data_in(event)) {
    requests_.push_back({event.id, *remote});
    return false;
  }
  // If no rejection can be sent, the peer detects it by timeout.
  static_cast<void>(rdma_reject(event.id, nullptr, 0));
  return true;
}

// Streams whose requester did not confirm the reply in time are removed before the program sees them.
void Stream::answer_requests() {
  std::erase_if(accepted_, [](const std::shared_ptr<Stream>& stream) { return stream->has_failed(); });
  while (!requests_.empty() && accepted_.size() < most_accepted_) {
    const Request request = requests_.front();
    requests_.pop_front();
    if (auto fresh = answer(request)) accepted_.push_back(std::move(fresh));
  }
  // The events of the requests may have been consumed by another thread than those that wait for a stream.
  wait_point_.set_ready(!accepted_.empty());
}

bool Stream::has_failed() {
  const Lock guard(mutex_);
  if (opening()) progress();
  return stage_ == Stage::kFailed;
}

std::shared_ptr<Stream> Stream::answer(const Request& request) {
  auto fresh = std::make_shared<Stream>(domain_);
  fresh->sizes_ = sizes_;
  fresh->options_ = options_;
  if (fresh->set_up() && answer_with(*fresh, request) == 0) return fresh;
  if (fresh->id_ == nullptr) fresh->id_ = request.id;
  // Otherwise the peer detects the rejection by timeout.
  static_cast<void>(rdma_reject(request.id, nullptr, 0));
  return nullptr;
}

int Stream::answer_with(Stream& fresh, const Request& request) {
  if (rdma_migrate_id(request.id, fresh.channel_) != 0) return -1;
  fresh.id_ = request.id;
  fresh.link_ = StreamLink::make(fresh.id_, fresh.sizes_);
  if (fresh.link_ == nullptr || !fresh.wait_point_.watch(fresh.link_->event_fd())) return -1;
  fresh.link_->agree(request.remote);
  const WireConnectionData local = to_wire(fresh.link_->connection_data());
  rdma_conn_param param = parameters(local);
  fresh.stage_ = Stage::kAccepting;
  return rdma_accept(fresh.id_, &param);
}

int Stream::shutdown(int how) {
  Lock lock(mutex_);
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return failed(EINVAL);
  const auto until = Clock::now() + kLinger;
  // A peer that does not confirm an accepted connection must not stop the program.
  if (stage_ == Stage::kAccepting && wait_until_open(lock, true, until) != 0) return -1;
  if (stage_ != Stage::kOpen) return failed(ENOTCONN);
  link_->shut(how);
  wait_point_.ring();
  if (how == SHUT_RD) return 0;
  // After this the program may exit. A longer transmission continues without the call.
  const int status = wait(lock, true, until, [&] { return link_->all_sent() || link_->is_disconnected(); });
  return status != 0 && errno == EAGAIN ? 0 : status;
}

int Stream::close() {
  Lock lock(mutex_);
  const auto until =
      Clock::now() + (options_.on_close.l_onoff != 0
                          ? Clock::duration(std::chrono::seconds(std::max(options_.on_close.l_linger, 0)))
                          : kLinger);
  if (stage_ == Stage::kAccepting) {
    while (wait_until_open(lock, true, until) != 0 && errno == EINTR) {
    }
  }
  if (stage_ == Stage::kOpen) {
    link_->shut(SHUT_RDWR);
    // A signal does not interrupt the close. Data that the peer has not received by then is lost, as with SO_LINGER.
    while (wait(lock, true, until, [&] { return link_->all_sent() || link_->is_disconnected(); }) != 0 &&
           errno == EINTR) {
    }
    disconnect();
  }
  closed_ = true;
  wait_point_.ring();
  const std::unique_ptr<ListenerThread> thread = std::move(listener_thread_);
  lock.unlock();  // before the thread is joined
  return 0;
}

int Stream::name(bool of_peer, sockaddr* address, socklen_t* length) {
  const Lock guard(mutex_);
  if (of_peer) {
    if (stage_ != Stage::kOpen && stage_ != Stage::kAccepting) return failed(ENOTCONN);
    give_address(id_->route.addr.dst_addr, address, length);
    return 0;
  }
  sockaddr_storage none{};
  none.ss_family = static_cast<sa_family_t>(domain_);
  give_address(id_ != nullptr && id_->route.addr.src_addr.sa_family != 0
                   ? id_->route.addr.src_addr
                   : reinterpret_cast<const sockaddr&>(none),
               address, length);
  return 0;
}

}  // namespace roci::rdmacm::sockets
