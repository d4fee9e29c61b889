#include <cerrno>

#include "rdmacm/sockets/socket.hpp"

namespace roci::rdmacm::sockets {
std::shared_ptr<Socket> make_datagrams(int) {
  errno = EPROTONOSUPPORT;
  return nullptr;
}
}  // namespace roci::rdmacm::sockets
