#include "rdmacm/sockets/datagrams.hpp"

#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "rdmacm/addresses.hpp"
#include "rdmacm/id.hpp"
#include "rdmacm/sockets/options.hpp"

namespace roci::rdmacm::sockets {
namespace {

constexpr int kQueryTimeout = 2000;  // ms, for the address of the next hop
// A peer is resolved again before a send if it was last confirmed this time ago, since another process may have its
// port.
constexpr std::chrono::seconds kTrust{3};
constexpr std::chrono::seconds kCloseTimeout{2};  // time for which close() waits for unsent datagrams
constexpr size_t kMaxWaiting = 64;                // datagrams for one peer
constexpr size_t kMaxAllWaiting = 1024;           // datagrams for all peers
constexpr size_t kMaxPeers = 4096;
constexpr int kEvictionAttempts = 16;
constexpr int kDatagramFlags = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_WAITALL | MSG_PEEK | MSG_TRUNC;

rdma_conn_param with_queue_pair(uint32_t qpn) {
  rdma_conn_param out{};
  out.qp_num = qpn;
  return out;
}

}  // namespace

std::shared_ptr<Socket> make_datagrams(int domain) {
  auto out = std::make_shared<Datagrams>(domain);
  return out->set_up() ? out : nullptr;
}

bool Datagrams::set_up() { return open_channel() && renew_listener(); }

Datagrams::~Datagrams() {
  queues_.reset();
  for (const Peer& peer : peers_) {
    if (peer.resolution_id != nullptr) rdma_destroy_id(peer.resolution_id);
    if (peer.address_handle != nullptr) ibv_destroy_ah(peer.address_handle);
  }
  if (listener_ != nullptr) rdma_destroy_id(listener_);
}

// ---- Addresses.

int Datagrams::bind(const sockaddr& address, socklen_t length) {
  const Lock guard(mutex_);
  if (address.sa_family != domain_) return failed(EAFNOSUPPORT);
  if (address_length(address, length) == 0 || queues_ != nullptr) return failed(EINVAL);
  return bind_to(address);
}

int Datagrams::bind_to(const sockaddr& address) {
  sockaddr_storage copy{};
  std::memcpy(&copy, &address, domain_ == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  if (rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&copy)) != 0) return -1;
  auto queues = DatagramQueues::make(sizes_);
  if (queues == nullptr || rdma_listen(listener_, 0) != 0 || !wait_point_.watch(queues->event_fd())) {
    const int code = errno;
    static_cast<void>(
        renew_listener());  // the socket is not bound, so that the program can try another address
    return failed(code);
  }
  queues_ = std::move(queues);
  return 0;
}

bool Datagrams::renew_listener() {
  if (listener_ != nullptr) rdma_destroy_id(std::exchange(listener_, nullptr));
  if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_UDP) != 0) return false;
  int on = 1;
  return !reuse_address_ ||
         rdma_set_option(listener_, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on) == 0;
}

int Datagrams::bind_to_any() {
  if (queues_ != nullptr) return 0;
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(domain_);
  return bind_to(reinterpret_cast<const sockaddr&>(any));
}

int Datagrams::connect(const sockaddr& address, socklen_t length) {
  const Lock guard(mutex_);
  if (address.sa_family == AF_UNSPEC) {
    connected_.reset();
    return 0;
  }
  const auto target = target_of(address, length);
  if (!target) return -1;
  if (bind_to_any() != 0) return -1;
  if (!local_address_for(target->address)) return failed(ENETUNREACH);
  connected_ = *target;
  return 0;
}

std::optional<DatagramSource> Datagrams::target_of(const sockaddr& address, socklen_t length) const {
  const auto ip = ip_of(address);
  if (address_length(address, length) != 0 && address.sa_family == domain_ && ip && port_of(address) != 0)
    return DatagramSource{*ip, port_of(address)};
  errno = EINVAL;
  return std::nullopt;
}

std::optional<DatagramSource> Datagrams::local_address_for(const IpAddress& peer) const {
  const uint16_t port = port_of(listener_->route.addr.src_addr);
  if (const auto bound = ip_of(listener_->route.addr.src_addr)) return DatagramSource{*bound, port};
  const auto source = source_for(open_device(), peer);
  if (!source) return std::nullopt;
  return DatagramSource{source->address, port};
}

int Datagrams::name(bool of_peer, sockaddr* address, socklen_t* length) {
  const Lock guard(mutex_);
  if (of_peer && !connected_) return failed(ENOTCONN);
  sockaddr_storage out{};
  out.ss_family = static_cast<sa_family_t>(domain_);
  if (of_peer) {
    write_address(connected_->address, connected_->port, domain_ == AF_INET6, out);
  } else if (queues_ != nullptr) {
    out = listener_->route.addr.src_storage;
  }
  give_address(reinterpret_cast<const sockaddr&>(out), address, length);
  return 0;
}

// ---- Resolution of queue pairs.

// Each request and each response has its own identifier. Those of responses have their peer as context.
bool Datagrams::on_connection_event(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    accept_query(event);
    return true;
  }
  auto* const peer = static_cast<Peer*>(event.id->context);
  return peer != nullptr && on_response(*peer, event);
}

void Datagrams::accept_query(const rdma_cm_event& request) {
  rdma_conn_param param = with_queue_pair(queues_->qpn());
  // A peer that does not receive the response retransmits its request.
  static_cast<void>(rdma_accept(request.id, &param));
}

void Datagrams::send_query(const DatagramSource& destination, Peer& peer) {
  if (peer.resolution_id != nullptr) return;
  sockaddr_storage from{}, to{};
  write_address(peer.local.address, 0, domain_ == AF_INET6, from);
  write_address(destination.address, destination.port, domain_ == AF_INET6, to);
  if (rdma_create_id(channel_, &peer.resolution_id, &peer, RDMA_PS_UDP) != 0) return;
  if (rdma_resolve_addr(peer.resolution_id, reinterpret_cast<sockaddr*>(&from),
                        reinterpret_cast<sockaddr*>(&to), kQueryTimeout) == 0)
    return;
  rdma_destroy_id(std::exchange(peer.resolution_id, nullptr));
}

bool Datagrams::on_response(Peer& peer, const rdma_cm_event& event) {
  rdma_conn_param param = with_queue_pair(queues_->qpn());
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(event.id, kQueryTimeout) == 0) return false;
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (rdma_connect(event.id, &param) == 0) return false;
      break;
    case RDMA_CM_EVENT_ESTABLISHED: {
      ibv_ah_attr attr = event.param.ud.ah_attr;
      if (const auto source = ip_of(event.id->route.addr.src_addr)) peer.local.address = *source;
      set_address_handle(peer, ibv_create_ah(default_pd(), &attr), event.param.ud.qp_num);
      break;
    }
    default:
      // The port or the address has no owner. The program gets an error as for a closed port.
      if (connected_ && *connected_ == peer.address) pending_error_ = ECONNREFUSED;
      drop_waiting(peer);
      peer.doubted = false;
      if (peer.address_handle != nullptr) ibv_destroy_ah(std::exchange(peer.address_handle, nullptr));
  }
  peer.resolution_id = nullptr;
  return true;
}

void Datagrams::set_address_handle(Peer& peer, ibv_ah* handle, uint32_t qpn) {
  if (handle == nullptr) return;
  if (peer.address_handle != nullptr) ibv_destroy_ah(peer.address_handle);
  peer.address_handle = handle;
  peer.qpn = qpn;
  peer.known = Clock::now();
  peer.doubted = false;
  if (!peer.waiting.empty() && std::ranges::find(resolved_, &peer) == resolved_.end())
    resolved_.push_back(&peer);
  send_waiting();
}

void Datagrams::send_waiting() {
  while (!resolved_.empty() && queues_->can_send()) {
    Peer& peer = *resolved_.front();
    Content& content = peer.waiting.front();
    const iovec piece{content.data(), content.size()};
    if (send_to(peer, std::span(&piece, 1)) != 0) pending_error_ = errno;
    peer.waiting.pop_front();
    --waiting_;
    if (peer.waiting.empty()) resolved_.pop_front();
  }
}

void Datagrams::drop_waiting(Peer& peer) {
  waiting_ -= peer.waiting.size();
  peer.waiting.clear();
  std::erase(resolved_, &peer);
}

// ---- Table of peers.

Datagrams::Peer* Datagrams::find_or_make(const DatagramSource& address) {
  if (const auto known = by_address_.find(address); known != by_address_.end()) {
    peers_.splice(peers_.end(), peers_, known->second);
    return &*known->second;
  }
  if (peers_.size() >= kMaxPeers && !evict_one()) return nullptr;
  Peer& peer = peers_.emplace_back();
  peer.address = address;
  by_address_.emplace(address, std::prev(peers_.end()));
  return &peer;
}

bool Datagrams::evict_one() {
  for (int attempt = 0; attempt < kEvictionAttempts; ++attempt) {
    const auto oldest = peers_.begin();
    if (oldest->resolution_id != nullptr || !oldest->waiting.empty()) {
      peers_.splice(peers_.end(), peers_, oldest);
      continue;
    }
    if (oldest->address_handle != nullptr) ibv_destroy_ah(oldest->address_handle);
    by_address_.erase(oldest->address);
    peers_.erase(oldest);
    return true;
  }
  return false;
}

// ---- Reception.

void Datagrams::progress() {
  take_connection_events();
  if (queues_ == nullptr) return;
  queues_->progress([&](const DatagramQueues::Received& received, ibv_wc& completion, ibv_grh& grh) {
    on_received(received, completion, grh);
  });
  send_waiting();
}

void Datagrams::on_received(const DatagramQueues::Received& received, ibv_wc& completion, ibv_grh& grh) {
  const auto from = read_datagram_header(received.data);
  const bool wanted = from && receives_ && from->address.is_v4() == (domain_ == AF_INET) &&
                      (!connected_ || *from == *connected_);
  const std::span<const uint8_t, kNetworkHeader> header(reinterpret_cast<const uint8_t*>(&grh), sizeof grh);
  const auto route = read_datagram_route(header, domain_ == AF_INET);
  if (!wanted || !route || route->source != from->address) {
    if (!queues_->release(received.slot)) pending_error_ = errno;
    return;
  }
  learn(*from, route->destination, completion, grh);
  arrived_.push_back({received, *from});
}

void Datagrams::learn(const DatagramSource& from, const IpAddress& local, ibv_wc& completion, ibv_grh& grh) {
  Peer* const peer = find_or_make(from);
  if (peer == nullptr) return;
  if (peer->address_handle == nullptr) {
    peer->local = {local, port_of(listener_->route.addr.src_addr)};
    set_address_handle(*peer, ibv_create_ah_from_wc(default_pd(), &completion, &grh, 1), completion.src_qp);
  } else if (peer->qpn != completion.src_qp) {
    // Either a new socket of the peer, or a sender that forges its address.
    peer->doubted = true;
  } else if (!peer->doubted) {
    peer->known = Clock::now();
  }
}

ssize_t Datagrams::receive(std::span<const iovec> to, int flags, sockaddr* from, socklen_t* length) {
  if ((flags & ~kDatagramFlags) != 0) return failed(EOPNOTSUPP);
  Lock lock(mutex_);
  if (bind_to_any() != 0) return -1;
  const auto until =
      receive_timeout_.count() > 0 ? Clock::now() + receive_timeout_ : Clock::time_point::max();
  const auto ready = [&] { return !arrived_.empty() || !receives_ || pending_error_ != 0; };
  if (wait(lock, waits(flags), until, ready) != 0) return -1;
  if (arrived_.empty()) return pending_error_ != 0 ? failed(std::exchange(pending_error_, 0)) : 0;
  const Arrived& first = arrived_.front();
  const auto content = first.received.data.subspan(datagram_header_length(first.from));
  const auto some = content.first(std::min(content.size(), bytes_in(to)));
  Cursor(to).copy_in(some);
  if (from != nullptr && length != nullptr) {
    sockaddr_storage name{};
    write_address(first.from.address, first.from.port, domain_ == AF_INET6, name);
    give_address(reinterpret_cast<const sockaddr&>(name), from, length);
  }
  const size_t returned = (flags & MSG_TRUNC) != 0 ? content.size() : some.size();
  if ((flags & MSG_PEEK) == 0) {
    if (!queues_->release(first.received.slot)) pending_error_ = errno;
    arrived_.pop_front();
  }
  return static_cast<ssize_t>(returned);
}

// ---- Transmission.

ssize_t Datagrams::send(std::span<const iovec> from, int flags, const sockaddr* to, socklen_t length) {
  if ((flags & ~kDatagramFlags) != 0) return failed(EOPNOTSUPP);
  Lock lock(mutex_);
  if (!sends_) return failed(EPIPE);
  const auto target = to != nullptr ? target_of(*to, length) : connected_;
  if (!target) return to != nullptr ? -1 : failed(EDESTADDRREQ);
  if (bind_to_any() != 0) return -1;
  const auto local = local_address_for(target->address);
  if (!local) return failed(ENETUNREACH);
  const size_t bytes = bytes_in(from);
  if (datagram_header_length(*local) + bytes > queues_->most_bytes()) return failed(EMSGSIZE);
  // progress() has sent the datagrams that waited for space, so this one does not overtake them.
  if (wait(lock, waits(flags), Clock::time_point::max(), [&] { return queues_->can_send(); }) != 0) return -1;
  if (pending_error_ != 0) return failed(std::exchange(pending_error_, 0));

  Peer* const found = find_or_make(*target);
  if (found == nullptr) return failed(ENOBUFS);
  Peer& peer = *found;
  const bool usable = peer.address_handle != nullptr && !peer.doubted;
  if (peer.address_handle == nullptr && peer.resolution_id == nullptr) peer.local = *local;
  if (!usable || Clock::now() - peer.known > kTrust) send_query(*target, peer);
  if (usable) return send_to(peer, from) == 0 ? static_cast<ssize_t>(bytes) : -1;
  if (peer.resolution_id == nullptr) return failed(EHOSTUNREACH);
  if (peer.waiting.size() < kMaxWaiting && waiting_ < kMaxAllWaiting) {
    Content content(bytes);
    Cursor(from).copy_out(content);
    peer.waiting.push_back(std::move(content));
    ++waiting_;
  }
  return static_cast<ssize_t>(bytes);
}

int Datagrams::send_to(Peer& peer, std::span<const iovec> from) {
  const size_t header = datagram_header_length(peer.local), bytes = bytes_in(from);
  const std::span<uint8_t> out = queues_->outgoing();
  write_datagram_header(peer.local, out.first(header));
  Cursor(from).copy_out(out.subspan(header, bytes));
  return queues_->send(header + bytes, peer.address_handle, peer.qpn) ? 0 : -1;
}

int Datagrams::shutdown(int how) {
  const Lock guard(mutex_);
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return failed(EINVAL);
  if (!connected_) return failed(ENOTCONN);
  if (how != SHUT_WR) receives_ = false;
  if (how != SHUT_RD) sends_ = false;
  wait_point_.ring();
  return 0;
}

int Datagrams::close() {
  Lock lock(mutex_);
  const auto queues_empty = [&] { return queues_ == nullptr || (queues_->all_sent() && waiting_ == 0); };
  // Datagrams that were not sent by then are dropped.
  static_cast<void>(wait(lock, true, Clock::now() + kCloseTimeout, queues_empty));
  closed_ = true;
  wait_point_.ring();
  return 0;
}

// ---- Polling and options.

void Datagrams::arm() {
  do {
    progress();
  } while (queues_ != nullptr && queues_->arm());
}

bool Datagrams::take_events() {
  const bool completions = queues_ != nullptr && queues_->take_events();
  return take_connection_events() || completions;
}

short Datagrams::state() const {
  int out = 0;
  if (!arrived_.empty() || !receives_ || pending_error_ != 0) out |= POLLIN | POLLRDNORM;
  if (queues_ == nullptr || queues_->can_send()) out |= POLLOUT | POLLWRNORM;
  if (pending_error_ != 0) out |= POLLERR;
  return static_cast<short>(out);
}

int Datagrams::set_option(int level, int option, const void* value, socklen_t length) {
  const Lock guard(mutex_);
  if (level == SOL_SOCKET && option == SO_RCVTIMEO) {
    const auto time = value_of<timeval>(value, length);
    if (!time) return failed(EINVAL);
    receive_timeout_ = duration_of(*time);
    return 0;
  }
  const auto number = value_of<int>(value, length);
  if (!number) return failed(EINVAL);
  if (set_size(sizes_, level, option, *number)) return 0;
  if (level == SOL_SOCKET && option == SO_REUSEADDR) {
    int on = *number;
    reuse_address_ = on != 0;
    return rdma_set_option(listener_, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on);
  }
  return failed(ENOPROTOOPT);
}

int Datagrams::get_option(int level, int option, void* value, socklen_t* length) {
  const Lock guard(mutex_);
  std::optional<int> number = size_of(sizes_, level, option);
  if (level == SOL_SOCKET && option == SO_TYPE) number = SOCK_DGRAM;
  if (level == SOL_SOCKET && option == SO_DOMAIN) number = domain_;
  if (level == SOL_SOCKET && option == SO_PROTOCOL) number = IPPROTO_UDP;
  if (level == SOL_SOCKET && option == SO_ERROR) number = std::exchange(pending_error_, 0);
  if (!number) return failed(ENOPROTOOPT);
  return give_value(&*number, sizeof *number, value, length);
}

}  // namespace roci::rdmacm::sockets
