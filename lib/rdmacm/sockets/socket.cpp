#include "rdmacm/sockets/socket.hpp"

#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <numeric>
#include <shared_mutex>
#include <vector>

namespace roci::rdmacm::sockets {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::vector<std::shared_ptr<Socket>> by_number;
};
Table& table() {
  static auto* const kTable = new Table;  // programs use sockets while they end, too
  return *kTable;
}

}  // namespace

size_t bytes_in(std::span<const iovec> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), size_t{0},
                         [](size_t sum, const iovec& piece) { return sum + piece.iov_len; });
}

void give_address(const sockaddr& from, sockaddr* to, socklen_t* length) {
  const socklen_t whole = from.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (to != nullptr) std::memcpy(to, &from, std::min(*length, whole));
  *length = whole;
}

int give_value(const void* from, size_t bytes, void* to, socklen_t* length) {
  *length = static_cast<socklen_t>(std::min<size_t>(*length, bytes));
  std::memcpy(to, from, *length);
  return 0;
}

socklen_t address_length(const sockaddr& address, socklen_t given) {
  const socklen_t whole = address.sa_family == AF_INET    ? sizeof(sockaddr_in)
                          : address.sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                          : 0;
  return given >= whole ? whole : 0;
}

std::shared_ptr<Socket> find(int number) {
  Table& all = table();
  const std::shared_lock guard(all.mutex);
  if (number >= 0 && static_cast<size_t>(number) < all.by_number.size()) {
    if (const auto& found = all.by_number[static_cast<size_t>(number)]) return found;
  }
  errno = EBADF;
  return nullptr;
}

bool is_socket(int number) {
  Table& all = table();
  const std::shared_lock guard(all.mutex);
  return number >= 0 && static_cast<size_t>(number) < all.by_number.size() &&
         all.by_number[static_cast<size_t>(number)] != nullptr;
}

int add(std::shared_ptr<Socket> socket) {
  const int number = socket->fd();
  Table& all = table();
  const std::scoped_lock guard(all.mutex);
  if (all.by_number.size() <= static_cast<size_t>(number))
    all.by_number.resize(static_cast<size_t>(number) + 1);
  all.by_number[static_cast<size_t>(number)] = std::move(socket);
  return number;
}

std::shared_ptr<Socket> take(int number) {
  auto found = find(number);
  if (found == nullptr) return nullptr;
  Table& all = table();
  const std::scoped_lock guard(all.mutex);
  all.by_number[static_cast<size_t>(number)].reset();
  return found;
}

}  // namespace roci::rdmacm::sockets
