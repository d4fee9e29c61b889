#define _GNU_SOURCE /* accept4 */
#include "tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 64, RETRY_PAUSE_MS = 20 };

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns 0 when the descriptor is ready before `deadline`. */
static int wait_for(int fd, short events, long long deadline) {
  for (;;) {
    const long long left = deadline - now_ms();
    struct pollfd p = {.fd = fd, .events = events};
    const int ready = poll(&p, 1, left > 0 ? (int)left : 0);
    if (ready > 0) return 0;
    if (ready == 0) return -ETIMEDOUT;
    if (errno != EINTR) return -errno;
  }
}

static void prepare(int fd) {
  const int on = 1, idle = 5, interval = 2, probes = 3; /* s, s, count */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  /* Detects a peer that has lost power and did not close the connection. */
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static struct addrinfo* look_up(const char* host, const char* port, int flags) {
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
  struct addrinfo* list = NULL;
  return getaddrinfo(host, port, &hints, &list) == 0 ? list : NULL;
}

int tcp_listen(const char* address, const char* port) {
  struct addrinfo* a = look_up(address, port, AI_PASSIVE);
  if (a == NULL) return -ENOENT;
  const int on = 1;
  const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) error = errno;
  }
  freeaddrinfo(a);
  if (error == 0) return fd;
  if (fd >= 0) close(fd);
  return -error;
}

int tcp_accept(int listener) {
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
  prepare(fd);
  return fd;
}

int tcp_accept_is_over(int status) { return status == -EBADF || status == -EINVAL || status == -ENOTSOCK; }

static int try_connect(const struct addrinfo* a, long long deadline) {
  const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
  if (fd < 0) return -errno;
  int error = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    error = -wait_for(fd, POLLOUT, deadline);
    socklen_t length = sizeof error;
    if (error == 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0) {
    prepare(fd);
    return fd;
  }
  close(fd);
  return -error;
}

int tcp_connect(const char* host, const char* port, int timeout_ms) {
  struct addrinfo* list = look_up(host, port, 0);
  if (list == NULL) return -ENOENT;
  const long long deadline = now_ms() + timeout_ms;
  int fd = -ETIMEDOUT;
  for (;;) {
    for (const struct addrinfo* a = list; a != NULL && fd < 0; a = a->ai_next) fd = try_connect(a, deadline);
    if (fd >= 0 || now_ms() + RETRY_PAUSE_MS >= deadline) break;
    const struct timespec pause = {.tv_nsec = RETRY_PAUSE_MS * 1000000L};
    nanosleep(&pause, NULL);
  }
  freeaddrinfo(list);
  return fd;
}

int tcp_send(int fd, const void* bytes, size_t size, int timeout_ms) {
  const long long deadline = now_ms() + timeout_ms;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = send(fd, (const char*)bytes + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      done += (size_t)n;
    } else if (errno == EAGAIN) {
      const int status = wait_for(fd, POLLOUT, deadline);
      if (status != 0) return status;
    } else if (errno != EINTR) {
      return -ECONNRESET;
    }
  }
  return 0;
}

int tcp_receive_some(int fd, void* bytes, size_t size) {
  const ssize_t n = recv(fd, bytes, size, MSG_DONTWAIT);
  if (n > 0) return (int)n;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  return -ECONNRESET;
}

int tcp_receive(int fd, void* bytes, size_t size, int timeout_ms) {
  const long long deadline = now_ms() + timeout_ms;
  size_t done = 0;
  while (done < size) {
    int status = wait_for(fd, POLLIN, deadline);
    if (status != 0) return status;
    status = tcp_receive_some(fd, (char*)bytes + done, size - done);
    if (status < 0) return status;
    done += (size_t)status;
  }
  return 0;
}

int tcp_is_closed(int fd) {
  char thrown_away[256];
  return tcp_receive_some(fd, thrown_away, sizeof thrown_away) < 0;
}
