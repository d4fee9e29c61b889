// Sockets over RDMA: not there yet. Every call says so but rpoll(), which programs of rdma_cm call for their event channels.
#include <poll.h>
#include <rdma/rsocket.h>

#include "rdmacm/id.hpp"

using roci::rdmacm::failed;

extern "C" {

int rsocket(int, int, int) { return failed(EOPNOTSUPP); }
int rbind(int, const sockaddr*, socklen_t) { return failed(EOPNOTSUPP); }
int rlisten(int, int) { return failed(EOPNOTSUPP); }
int raccept(int, sockaddr*, socklen_t*) { return failed(EOPNOTSUPP); }
int rconnect(int, const sockaddr*, socklen_t) { return failed(EOPNOTSUPP); }
int rshutdown(int, int) { return failed(EOPNOTSUPP); }
int rclose(int) { return failed(EOPNOTSUPP); }
ssize_t rrecv(int, void*, size_t, int) { return failed(EOPNOTSUPP); }
ssize_t rrecvfrom(int, void*, size_t, int, sockaddr*, socklen_t*) { return failed(EOPNOTSUPP); }
ssize_t rrecvmsg(int, msghdr*, int) { return failed(EOPNOTSUPP); }
ssize_t rsend(int, const void*, size_t, int) { return failed(EOPNOTSUPP); }
ssize_t rsendto(int, const void*, size_t, int, const sockaddr*, socklen_t) { return failed(EOPNOTSUPP); }
ssize_t rsendmsg(int, const msghdr*, int) { return failed(EOPNOTSUPP); }
ssize_t rread(int, void*, size_t) { return failed(EOPNOTSUPP); }
ssize_t rreadv(int, const iovec*, int) { return failed(EOPNOTSUPP); }
ssize_t rwrite(int, const void*, size_t) { return failed(EOPNOTSUPP); }
ssize_t rwritev(int, const iovec*, int) { return failed(EOPNOTSUPP); }
int rselect(int, fd_set*, fd_set*, fd_set*, timeval*) { return failed(EOPNOTSUPP); }
int rgetpeername(int, sockaddr*, socklen_t*) { return failed(EOPNOTSUPP); }
int rgetsockname(int, sockaddr*, socklen_t*) { return failed(EOPNOTSUPP); }
int rsetsockopt(int, int, int, const void*, socklen_t) { return failed(EOPNOTSUPP); }
int rgetsockopt(int, int, int, void*, socklen_t*) { return failed(EOPNOTSUPP); }
int rfcntl(int, int, ...) { return failed(EOPNOTSUPP); }
off_t riomap(int, void*, size_t, int, int, off_t) { return failed(EOPNOTSUPP); }
int riounmap(int, void*, size_t) { return failed(EOPNOTSUPP); }
size_t riowrite(int, const void*, size_t, off_t, int) { return static_cast<size_t>(failed(EOPNOTSUPP)); }

int rpoll(pollfd* fds, nfds_t count, int timeout) { return poll(fds, count, timeout); }

}  // extern "C"
