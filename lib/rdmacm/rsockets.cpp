// C API of rsockets, implemented by sockets/. The configuration files of rdma-core are not read.
#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <cerrno>
#include <climits>
#include <cstdarg>

#include "rdmacm/id.hpp"
#include "rdmacm/sockets/options.hpp"
#include "rdmacm/sockets/polling.hpp"
#include "rdmacm/sockets/socket.hpp"

using roci::rdmacm::failed;
using namespace roci::rdmacm::sockets;  // NOLINT(google-build-using-namespace): this file defines the C API

namespace {

bool is_protocol(int type, int protocol) {
  return protocol == 0 || protocol == (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP);
}

// Calls a function of the socket with this number. Returns -1 with errno if the socket does not exist.
template <class Result, class... Parameters, class... Arguments>
Result call(int number, Result (Socket::*member)(Parameters...), Arguments... arguments) {
  const auto socket = find(number);
  return socket != nullptr ? ((*socket).*member)(arguments...) : -1;
}

ssize_t receive(int number, std::span<const iovec> to, int flags, sockaddr* from, socklen_t* length) {
  return call(number, &Socket::receive, to, flags, from, length);
}

ssize_t send(int number, std::span<const iovec> from, int flags, const sockaddr* to, socklen_t length) {
  return call(number, &Socket::send, from, flags, to, length);
}

std::span<const iovec> pieces_of(const iovec* first, size_t count) { return {first, count}; }

iovec piece_of(const void* memory, size_t length) {
  return {const_cast<void*>(memory), length};  // the memory is only read
}

Clock::time_point after(Clock::duration time) { return Clock::now() + time; }

}  // namespace

extern "C" {

int rsocket(int domain, int type, int protocol) {
  const int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);
  type &= ~flags;
  if (domain != AF_INET && domain != AF_INET6) return failed(EAFNOSUPPORT);
  if (type != SOCK_STREAM && type != SOCK_DGRAM) return failed(ESOCKTNOSUPPORT);
  if (!is_protocol(type, protocol)) return failed(EPROTONOSUPPORT);
  if (roci::rdmacm::open_device() == nullptr) return failed(ENODEV);
  auto made = type == SOCK_STREAM ? make_stream(domain) : make_datagrams(domain);
  if (made == nullptr) return -1;
  if ((flags & SOCK_NONBLOCK) != 0) made->set_status_flags(O_NONBLOCK);
  return add(std::move(made));
}

int rbind(int number, const sockaddr* address, socklen_t length) {
  const auto socket = find(number);
  return socket != nullptr ? socket->bind(*address, length) : -1;
}

int rlisten(int number, int backlog) {
  const auto socket = find(number);
  if (socket == nullptr || socket->listen(backlog) != 0) return -1;
  socket->answer_in_background();
  return 0;
}

int raccept(int number, sockaddr* address, socklen_t* length) {
  const auto socket = find(number);
  if (socket == nullptr) return -1;
  auto accepted = socket->accept();
  if (accepted == nullptr) return -1;
  if (address != nullptr && length != nullptr && accepted->name(true, address, length) != 0) *length = 0;
  return add(std::move(accepted));
}

int rconnect(int number, const sockaddr* address, socklen_t length) {
  const auto socket = find(number);
  return socket != nullptr ? socket->connect(*address, length) : -1;
}

int rshutdown(int number, int how) { return call(number, &Socket::shutdown, how); }

int rclose(int number) { return close_socket(number); }

ssize_t rrecv(int number, void* buffer, size_t length, int flags) {
  const iovec piece{buffer, length};
  return receive(number, pieces_of(&piece, 1), flags, nullptr, nullptr);
}

ssize_t rrecvfrom(int number, void* buffer, size_t length, int flags, sockaddr* from,
                  socklen_t* from_length) {
  const iovec piece{buffer, length};
  return receive(number, pieces_of(&piece, 1), flags, from, from_length);
}

ssize_t rrecvmsg(int number, msghdr* message, int flags) {
  const ssize_t received = receive(number, pieces_of(message->msg_iov, message->msg_iovlen), flags,
                                   static_cast<sockaddr*>(message->msg_name), &message->msg_namelen);
  if (received < 0) return received;
  message->msg_controllen = 0;
  message->msg_flags = 0;
  return received;
}

ssize_t rsend(int number, const void* buffer, size_t length, int flags) {
  const iovec piece = piece_of(buffer, length);
  return send(number, pieces_of(&piece, 1), flags, nullptr, 0);
}

ssize_t rsendto(int number, const void* buffer, size_t length, int flags, const sockaddr* to,
                socklen_t to_length) {
  const iovec piece = piece_of(buffer, length);
  return send(number, pieces_of(&piece, 1), flags, to, to_length);
}

ssize_t rsendmsg(int number, const msghdr* message, int flags) {
  if (message->msg_control != nullptr && message->msg_controllen > 0) return failed(EOPNOTSUPP);
  return send(number, pieces_of(message->msg_iov, message->msg_iovlen), flags,
              static_cast<const sockaddr*>(message->msg_name), message->msg_namelen);
}

ssize_t rread(int number, void* buffer, size_t length) { return rrecv(number, buffer, length, 0); }

ssize_t rreadv(int number, const iovec* pieces, int count) {
  if (count < 0 || count > IOV_MAX) return failed(EINVAL);
  return receive(number, pieces_of(pieces, static_cast<size_t>(count)), 0, nullptr, nullptr);
}

ssize_t rwrite(int number, const void* buffer, size_t length) { return rsend(number, buffer, length, 0); }

ssize_t rwritev(int number, const iovec* pieces, int count) {
  if (count < 0 || count > IOV_MAX) return failed(EINVAL);
  return send(number, pieces_of(pieces, static_cast<size_t>(count)), 0, nullptr, 0);
}

// Programs of rdma_cm also call it for event channels.
int rpoll(pollfd* entries, nfds_t count, int timeout) {
  const std::span all(entries, count);
  const auto is_own = [](const pollfd& entry) { return is_socket(entry.fd); };
  if (std::ranges::none_of(all, is_own)) return poll(entries, count, timeout);
  return poll_all(all, timeout < 0 ? Clock::time_point::max() : after(std::chrono::milliseconds(timeout)));
}

int rselect(int count, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  if (count < 0 || count > FD_SETSIZE) return failed(EINVAL);
  return select_all(count, read, write, except,
                    timeout == nullptr ? Clock::time_point::max() : after(duration_of(*timeout)));
}

int rgetpeername(int number, sockaddr* address, socklen_t* length) {
  return call(number, &Socket::name, true, address, length);
}

int rgetsockname(int number, sockaddr* address, socklen_t* length) {
  return call(number, &Socket::name, false, address, length);
}

int rsetsockopt(int number, int level, int option, const void* value, socklen_t length) {
  return call(number, &Socket::set_option, level, option, value, length);
}

int rgetsockopt(int number, int level, int option, void* value, socklen_t* length) {
  return call(number, &Socket::get_option, level, option, value, length);
}

int rfcntl(int number, int command, ...) {
  const auto socket = find(number);
  if (socket == nullptr) return -1;
  va_list arguments;
  va_start(arguments, command);
  const int argument = command == F_GETFL || command == F_GETFD ? 0 : va_arg(arguments, int);
  va_end(arguments);
  switch (command) {
    case F_GETFL:
      return socket->status_flags();
    case F_SETFL:
      socket->set_status_flags(argument);
      return 0;
    case F_GETFD:
    case F_SETFD:
      return fcntl(number, command, argument);
    default:
      return failed(EINVAL);
  }
}

off_t riomap(int number, void* memory, size_t length, int protection, int, off_t offset) {
  return call(number, &Socket::map, memory, length, protection, offset);
}

int riounmap(int number, void* memory, size_t length) { return call(number, &Socket::unmap, memory, length); }

size_t riowrite(int number, const void* memory, size_t length, off_t offset, int flags) {
  return static_cast<size_t>(call(number, &Socket::write_mapped, memory, length, offset, flags));
}

}  // extern "C"
