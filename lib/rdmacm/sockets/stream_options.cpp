// Options of streams. Sizes apply to connections made afterwards. accept() copies the options of the listener.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <sys/time.h>

#include <cerrno>
#include <utility>

#include "rdmacm/sockets/options.hpp"
#include "rdmacm/sockets/stream.hpp"

namespace roci::rdmacm::sockets {

int Stream::set_option(int level, int option, const void* value, socklen_t length) {
  const Lock guard(mutex_);
  const auto number = value_of<int>(value, length);
  if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO)) {
    const auto time = value_of<timeval>(value, length);
    if (!time) return failed(EINVAL);
    (option == SO_RCVTIMEO ? options_.receive_timeout : options_.send_timeout) = duration_of(*time);
    return 0;
  }
  if (!number) return failed(EINVAL);
  Sizes sizes = sizes_;
  if (set_size(sizes, level, option, *number)) {
    if (level == SOL_RDMA && stage_ >= Stage::kFinding) return failed(EINVAL);
    if (link_ == nullptr) sizes_ = sizes;
    return 0;
  }
  switch (level) {
    case SOL_SOCKET:
      return set_socket_option(option, *number, value, length);
    case IPPROTO_TCP:
      return set_tcp_option(option, *number);
    case IPPROTO_IPV6:
      if (option != IPV6_V6ONLY) return failed(ENOPROTOOPT);
      options_.v6_only = *number != 0;
      return set_id_option(RDMA_OPTION_ID_AFONLY, *number);
    default:
      return failed(ENOPROTOOPT);
  }
}

int Stream::set_id_option(int option, int number) {
  return make_id() ? rdma_set_option(id_, RDMA_OPTION_ID, option, &number, sizeof number) : -1;
}

int Stream::set_socket_option(int option, int number, const void* value, socklen_t length) {
  switch (option) {
    case SO_REUSEADDR:
      options_.reuse_address = number != 0;
      return set_id_option(RDMA_OPTION_ID_REUSEADDR, number);
    case SO_LINGER: {
      const auto wanted = value_of<linger>(value, length);
      if (!wanted || wanted->l_linger < 0) return failed(EINVAL);
      options_.on_close = *wanted;
      return 0;
    }
    case SO_KEEPALIVE:
      options_.keep_alive = number != 0;
      return 0;
    case SO_OOBINLINE:
      options_.oob_inline = number != 0;
      return 0;
    default:
      return failed(ENOPROTOOPT);
  }
}

int Stream::set_tcp_option(int option, int number) {
  switch (option) {
    case TCP_NODELAY:
      options_.no_delay = number != 0;
      return 0;
    case TCP_KEEPIDLE:
      if (number <= 0) return failed(EINVAL);
      options_.keep_idle = number;
      return 0;
    case TCP_KEEPCNT:  // accepted and ignored: not applicable to a reliable connection
    case TCP_KEEPINTVL:
    case TCP_MAXSEG:
      return 0;
    default:
      return failed(ENOPROTOOPT);
  }
}

int Stream::get_option(int level, int option, void* value, socklen_t* length) {
  const Lock guard(mutex_);
  if (level == SOL_SOCKET) {
    if (option == SO_LINGER) return give_value(&options_.on_close, sizeof options_.on_close, value, length);
    if (option == SO_RCVTIMEO || option == SO_SNDTIMEO) {
      const timeval time =
          timeval_of(option == SO_RCVTIMEO ? options_.receive_timeout : options_.send_timeout);
      return give_value(&time, sizeof time, value, length);
    }
  }
  const auto size = size_of(sizes_, level, option);
  const auto number = size ? size : number_of(level, option);
  if (!number) return failed(ENOPROTOOPT);
  return give_value(&*number, sizeof *number, value, length);
}

std::optional<int> Stream::number_of(int level, int option) {
  if (level == SOL_SOCKET) return socket_number(option);
  if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY) return options_.v6_only;
  if (level == IPPROTO_TCP) {
    switch (option) {
      case TCP_NODELAY:
        return options_.no_delay;
      case TCP_KEEPIDLE:
        return options_.keep_idle;
      case TCP_KEEPCNT:
      case TCP_KEEPINTVL:
        return 1;
      case TCP_MAXSEG: {
        constexpr int kUnconnected = 2048;
        return id_ != nullptr && id_->route.num_paths > 0 ? 1 << (7 + id_->route.path_rec->mtu)
                                                          : kUnconnected;
      }
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<int> Stream::socket_number(int option) {
  switch (option) {
    case SO_REUSEADDR:
      return options_.reuse_address;
    case SO_KEEPALIVE:
      return options_.keep_alive;
    case SO_OOBINLINE:
      return options_.oob_inline;
    case SO_TYPE:
      return SOCK_STREAM;
    case SO_DOMAIN:
      return domain_;
    case SO_PROTOCOL:
      return IPPROTO_TCP;
    case SO_ACCEPTCONN:
      return stage_ == Stage::kListening;
    case SO_ERROR: {
      if (link_ == nullptr || link_->error() == 0) return std::exchange(pending_error_, 0);
      return std::exchange(error_reported_, true) ? 0 : link_->error();
    }
    default:
      return std::nullopt;
  }
}

}  // namespace roci::rdmacm::sockets
