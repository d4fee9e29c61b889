/* Checks of the rsockets API in one process that is connected to itself. A failed check exits with status 1. The
   argument is an address of the process's device. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                  \
  do {                                                                                                    \
    if (!(condition)) {                                                                                   \
      fprintf(stderr, "%s:%d: not so: %s (errno %s)\n", __func__, __LINE__, #condition, strerror(errno)); \
      exit(1);                                                                                            \
    }                                                                                                     \
  } while (0)

enum { kWait = 30000 /* ms */ };

static struct in_addr ours;

static struct sockaddr_in at_port(in_port_t port) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port, .sin_addr = ours};
}

static short poll_one(int fd, short events, int timeout) {
  struct pollfd entry = {fd, events, 0};
  const int count = rpoll(&entry, 1, timeout);
  CHECK(count >= 0);
  return count == 0 ? 0 : entry.revents;
}

/* Starts a connection of a non-blocking socket. It may be established at once. */
static void begin_connection(int socket, const struct sockaddr_in* where) {
  CHECK(rconnect(socket, (const struct sockaddr*)where, sizeof *where) == 0 || errno == EINPROGRESS);
}

static int listen_somewhere(struct sockaddr_in* where, int buffers) {
  const int listener = rsocket(AF_INET, SOCK_STREAM, 0);
  CHECK(listener >= 0);
  if (buffers != 0) {
    CHECK(rsetsockopt(listener, SOL_SOCKET, SO_SNDBUF, &buffers, sizeof buffers) == 0);
    CHECK(rsetsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers) == 0);
  }
  *where = at_port(0);
  CHECK(rbind(listener, (struct sockaddr*)where, sizeof *where) == 0);
  CHECK(rlisten(listener, 4) == 0);
  socklen_t length = sizeof *where;
  CHECK(rgetsockname(listener, (struct sockaddr*)where, &length) == 0 && where->sin_port != 0);
  return listener;
}

static void connect_both(int buffers, int* one, int* other) {
  struct sockaddr_in where, peer;
  const int listener = listen_somewhere(&where, buffers);
  CHECK(rfcntl(listener, F_SETFL, O_NONBLOCK) == 0);
  CHECK(raccept(listener, NULL, NULL) == -1 && errno == EAGAIN);
  *one = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  CHECK(*one >= 0 && (rfcntl(*one, F_GETFL) & O_NONBLOCK));
  if (buffers != 0) CHECK(rsetsockopt(*one, SOL_SOCKET, SO_RCVBUF, &buffers, sizeof buffers) == 0);
  begin_connection(*one, &where);
  /* One thread for both sockets: both must progress whichever is polled. */
  struct pollfd both[2] = {{*one, POLLOUT, 0}, {listener, POLLIN, 0}};
  *other = -1;
  while (*other < 0 || !(both[0].revents & POLLOUT)) {
    CHECK(rpoll(both, 2, kWait) > 0);
    CHECK(!(both[0].revents & (POLLERR | POLLHUP)));
    socklen_t length = sizeof peer;
    if (both[1].revents & POLLIN) *other = raccept(listener, (struct sockaddr*)&peer, &length);
  }
  CHECK(peer.sin_family == AF_INET && peer.sin_addr.s_addr == ours.s_addr);
  int code = -1;
  socklen_t length = sizeof code;
  CHECK(rgetsockopt(*one, SOL_SOCKET, SO_ERROR, &code, &length) == 0 && code == 0);
  CHECK(rfcntl(*one, F_SETFL, 0) == 0);
  CHECK(rconnect(*one, (struct sockaddr*)&where, sizeof where) == -1 && errno == EISCONN);
  CHECK(rclose(listener) == 0);
}

static void check_flags(void) {
  int a, b;
  char text[16];
  connect_both(0, &a, &b);
  CHECK(rrecv(b, text, sizeof text, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  CHECK(poll_one(b, POLLIN | POLLOUT, 0) == POLLOUT);
  CHECK(rsend(a, "one", 3, 0) == 3);
  CHECK(poll_one(b, POLLIN, kWait) == POLLIN);
  CHECK(rrecv(b, text, sizeof text, MSG_PEEK) == 3 && memcmp(text, "one", 3) == 0);
  CHECK(rsend(a, "two", 3, 0) == 3);
  const struct iovec pieces[2] = {{text, 1}, {text + 1, 5}};
  struct msghdr message = {.msg_iov = (struct iovec*)pieces, .msg_iovlen = 2};
  CHECK(rrecvmsg(b, &message, MSG_WAITALL) == 6 && memcmp(text, "onetwo", 6) == 0);
  CHECK(rwritev(b, pieces, 2) == 6);
  CHECK(rread(a, text, 2) == 2 && rread(a, text + 2, 14) == 4 && memcmp(text, "onetwo", 6) == 0);
  CHECK(rclose(a) == 0 && rclose(b) == 0);
  CHECK(rclose(a) == -1 && errno == EBADF);
}

static void check_half_close(void) {
  int a, b;
  char text[16];
  connect_both(0, &a, &b);
  CHECK(rsend(a, "last", 4, 0) == 4 && rshutdown(a, SHUT_WR) == 0);
  CHECK(rsend(a, "more", 4, 0) == -1 && errno == EPIPE);
  CHECK(rrecv(b, text, sizeof text, MSG_WAITALL) == 4);
  CHECK(rrecv(b, text, sizeof text, 0) == 0);
  CHECK(poll_one(b, POLLIN | POLLOUT, kWait) == (POLLIN | POLLOUT));
  CHECK(rsend(b, "answer", 6, 0) == 6 && rclose(b) == 0);
  CHECK(rrecv(a, text, sizeof text, MSG_WAITALL) == 6 && memcmp(text, "answer", 6) == 0);
  CHECK(rrecv(a, text, sizeof text, 0) == 0);
  CHECK(poll_one(a, 0, kWait) == POLLHUP);
  CHECK(rclose(a) == 0);
}

static void check_gone_peer(void) {
  int a, b;
  char text[16];
  connect_both(0, &a, &b);
  CHECK(rclose(b) == 0);
  CHECK(rrecv(a, text, sizeof text, 0) == 0);
  CHECK(rsend(a, "x", 1, 0) == -1 && errno == ECONNRESET);
  CHECK(rclose(a) == 0);
}

static void check_nobody_listens(void) {
  struct sockaddr_in where;
  CHECK(rclose(listen_somewhere(&where, 0)) == 0);
  const int socket = rsocket(AF_INET, SOCK_STREAM, 0);
  CHECK(rconnect(socket, (struct sockaddr*)&where, sizeof where) == -1 && errno == ECONNREFUSED);
  CHECK(rclose(socket) == 0);
}

/* Connections are established without a call for the listener, as with the kernel's sockets: the client may send only
   after it has all connections, while the server waits for the data of the first one. */
static void check_connection_before_accept(void) {
  enum { kConnections = 3 };
  struct sockaddr_in where;
  int clients[kConnections];
  const int listener = listen_somewhere(&where, 0);
  for (int i = 0; i < kConnections; ++i) {
    clients[i] = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    begin_connection(clients[i], &where);
    CHECK(poll_one(clients[i], POLLOUT, kWait) == POLLOUT);
    CHECK(rsend(clients[i], "x", 1, 0) == 1);
  }
  struct pollfd kernel = {listener, POLLIN, 0};
  CHECK(poll(&kernel, 1, kWait) == 1 && kernel.revents == POLLIN);
  for (int i = 0; i < kConnections; ++i) {
    char byte = 0;
    const int peer = raccept(listener, NULL, NULL);
    CHECK(peer >= 0 && rrecv(peer, &byte, 1, MSG_WAITALL) == 1 && byte == 'x');
    CHECK(rclose(peer) == 0 && rclose(clients[i]) == 0);
  }
  CHECK(poll_one(listener, POLLIN, 20) == 0 && poll(&kernel, 1, 20) == 0);
  CHECK(rclose(listener) == 0);
}

static void check_poll_with_kernel(void) {
  int a, b, ends[2];
  connect_both(0, &a, &b);
  CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
  struct pollfd entries[3] = {{a, POLLIN, 0}, {-1, POLLIN, 7}, {ends[0], POLLIN, 0}};
  CHECK(rpoll(entries, 3, kWait) == 1 && entries[2].revents == POLLIN && entries[1].revents == 0);
  char byte;
  CHECK(read(ends[0], &byte, 1) == 1 && rpoll(entries, 3, 20) == 0);
  CHECK(rsend(b, "x", 1, 0) == 1);
  fd_set read_set, write_set;
  FD_ZERO(&read_set);
  FD_ZERO(&write_set);
  FD_SET(a, &read_set);
  FD_SET(ends[0], &read_set);
  struct timeval limit = {kWait / 1000, 0};
  CHECK(rselect((a > ends[0] ? a : ends[0]) + 1, &read_set, &write_set, NULL, &limit) == 1);
  CHECK(FD_ISSET(a, &read_set) && !FD_ISSET(ends[0], &read_set));
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && rclose(a) == 0 && rclose(b) == 0);
}

/* Large data through rings of 8 KiB, in odd sizes, in both directions: one sender and one receiver per socket. */
enum { kMuch = 300000 };

static unsigned char byte_at(size_t offset) { return (unsigned char)(offset * 2654435761U >> 11); }

static void* send_much(void* socket) {
  static __thread unsigned char piece[7001];
  size_t sent = 0;
  while (sent < kMuch) {
    size_t some = 1 + (sent * 31 + 977) % sizeof piece;
    if (some > kMuch - sent) some = kMuch - sent;
    for (size_t i = 0; i < some; ++i) piece[i] = byte_at(sent + i);
    CHECK(rsend(*(int*)socket, piece, some, 0) == (ssize_t)some);
    sent += some;
  }
  return NULL;
}

static void* receive_much(void* socket) {
  static __thread unsigned char piece[5003];
  for (size_t received = 0; received < kMuch;) {
    const ssize_t some = rrecv(*(int*)socket, piece, 1 + (received * 17) % sizeof piece, 0);
    CHECK(some > 0);
    for (ssize_t i = 0; i < some; ++i) CHECK(piece[i] == byte_at(received + (size_t)i));
    received += (size_t)some;
  }
  return NULL;
}

static void check_threads(void) {
  int sockets[2];
  pthread_t threads[4];
  connect_both(4096, &sockets[0], &sockets[1]);
  for (int i = 0; i < 4; ++i)
    CHECK(pthread_create(&threads[i], NULL, i % 2 ? receive_much : send_much, &sockets[i / 2]) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(rclose(sockets[0]) == 0 && rclose(sockets[1]) == 0);
}

static void* receive_until_closed(void* socket) {
  char byte;
  CHECK(rrecv(*(int*)socket, &byte, 1, 0) <= 0);
  return NULL;
}

static void* poll_until_closed(void* socket) {
  struct pollfd entry = {.fd = *(int*)socket, .events = POLLIN};
  CHECK(rpoll(&entry, 1, 20000) == 1);
  return NULL;
}

static void* accept_until_closed(void* socket) {
  CHECK(raccept(*(int*)socket, NULL, NULL) == -1);
  return NULL;
}

static void check_close_wakes(void) {
  int a, b;
  pthread_t threads[3];
  struct sockaddr_in where;
  int listener = listen_somewhere(&where, 0);
  /* The peer closes. */
  connect_both(0, &a, &b);
  CHECK(pthread_create(&threads[0], NULL, receive_until_closed, &b) == 0);
  CHECK(rclose(a) == 0 && pthread_join(threads[0], NULL) == 0);
  CHECK(rclose(b) == 0);
  /* Another thread closes the same socket. */
  connect_both(0, &a, &b);
  CHECK(pthread_create(&threads[0], NULL, receive_until_closed, &b) == 0);
  CHECK(pthread_create(&threads[1], NULL, poll_until_closed, &b) == 0);
  CHECK(pthread_create(&threads[2], NULL, accept_until_closed, &listener) == 0);
  usleep(100000); /* the threads wait */
  CHECK(rclose(b) == 0 && rclose(listener) == 0);
  for (int i = 0; i < 3; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(rclose(a) == 0);
}

/* The times of SO_RCVTIMEO and SO_SNDTIMEO are not those of the test: only the error is checked. */
static void check_timeouts(void) {
  int a, b;
  const struct timeval soon = {0, 20000};
  static char much[1 << 20];
  connect_both(0, &a, &b);
  CHECK(rsetsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0);
  CHECK(rsetsockopt(a, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon) == 0);
  CHECK(rrecv(a, much, 1, 0) == -1 && errno == EAGAIN);
  const ssize_t sent = rsend(a, much, sizeof much, 0); /* b does not read */
  CHECK(sent > 0 && sent < (ssize_t)sizeof much);
  CHECK(rsend(a, much, 1, 0) == -1 && errno == EAGAIN);
  const struct linger at_once = {1, 0};
  CHECK(rsetsockopt(a, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* A child process closes the sockets of its parent, as servers do before exec(), while threads of the parent use them. */
static void check_fork(void) {
  enum { kForks = 200 };
  struct sockaddr_in where;
  int sockets[2];
  pthread_t threads[2];
  const int listener = listen_somewhere(&where, 0);
  connect_both(4096, &sockets[0], &sockets[1]);
  CHECK(pthread_create(&threads[0], NULL, send_much, &sockets[0]) == 0);
  CHECK(pthread_create(&threads[1], NULL, receive_much, &sockets[0]) == 0);
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20); /* ends a child that hangs */
      char byte;
      CHECK(rrecv(sockets[1], &byte, 1, MSG_DONTWAIT) == -1 && errno == EIO);
      CHECK(rclose(listener) == 0 && rclose(sockets[0]) == 0 && rclose(sockets[1]) == 0);
      CHECK(rclose(listener) == -1 && errno == EBADF);
      _exit(0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
  }
  pthread_t others[2];
  CHECK(pthread_create(&others[0], NULL, send_much, &sockets[1]) == 0);
  CHECK(pthread_create(&others[1], NULL, receive_much, &sockets[1]) == 0);
  for (int i = 0; i < 2; ++i)
    CHECK(pthread_join(threads[i], NULL) == 0 && pthread_join(others[i], NULL) == 0);
  CHECK(rclose(sockets[0]) == 0 && rclose(sockets[1]) == 0 && rclose(listener) == 0);
}

static void check_options(void) {
  const int socket = rsocket(AF_INET, SOCK_STREAM, 0);
  int value = 1;
  socklen_t length = sizeof value;
  CHECK(rsetsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &value, sizeof value) == 0);
  CHECK(rgetsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &value, &length) == 0 && value == 1);
  value = 100;
  CHECK(rsetsockopt(socket, SOL_RDMA, RDMA_SQSIZE, &value, sizeof value) == 0);
  CHECK(rgetsockopt(socket, SOL_RDMA, RDMA_SQSIZE, &value, &length) == 0 && value == 100);
  value = 1000; /* values above 128 are rounded down to a multiple of 256 */
  CHECK(rsetsockopt(socket, SOL_RDMA, RDMA_IOMAPSIZE, &value, sizeof value) == 0);
  CHECK(rgetsockopt(socket, SOL_RDMA, RDMA_IOMAPSIZE, &value, &length) == 0 && value == 768);
  value = 10000;
  CHECK(rsetsockopt(socket, SOL_SOCKET, SO_RCVBUF, &value, sizeof value) == 0);
  CHECK(rgetsockopt(socket, SOL_SOCKET, SO_RCVBUF, &value, &length) == 0 && value == 20000);
  CHECK(rgetsockopt(socket, SOL_SOCKET, SO_TYPE, &value, &length) == 0 && value == SOCK_STREAM);
  CHECK(rsetsockopt(socket, SOL_SOCKET, SO_BROADCAST, &value, sizeof value) == -1 && errno == ENOPROTOOPT);
  const struct iovec nothing = {NULL, 0};
  CHECK(rreadv(socket, &nothing, -1) == -1 && errno == EINVAL);
  CHECK(rwritev(socket, &nothing, -1) == -1 && errno == EINVAL);
  CHECK(rclose(socket) == 0);
  CHECK(rsocket(AF_UNIX, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
  CHECK(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP) == -1 && errno == EPROTONOSUPPORT);
}

static void check_mapped_memory(void) {
  struct sockaddr_in where;
  int one = 1;
  static char target[9000], source[9000];
  const int listener = listen_somewhere(&where, 0);
  CHECK(rfcntl(listener, F_SETFL, O_NONBLOCK) == 0);
  CHECK(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &one, sizeof one) == 0);
  const int a = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  begin_connection(a, &where);
  struct pollfd both[2] = {{a, POLLOUT, 0}, {listener, POLLIN, 0}};
  int b = -1;
  while (b < 0 || !(both[0].revents & POLLOUT)) {
    CHECK(rpoll(both, 2, kWait) > 0);
    if (both[1].revents & POLLIN) b = raccept(listener, NULL, NULL);
  }
  CHECK(rfcntl(a, F_SETFL, 0) == 0);
  /* The listener has a slot for one mapping of its peer, the peer has none. */
  CHECK(riomap(b, target, sizeof target, PROT_WRITE, 0, 0) == -1 && errno == ENOMEM);
  CHECK((ssize_t)riowrite(b, source, 1, 100, 0) == -1 && errno == EFAULT);
  CHECK(riomap(a, target, sizeof target, PROT_WRITE, 0, 100) == 100);
  CHECK(rsend(a, "mapped", 6, 0) == 6);
  char text[6];
  CHECK(rrecv(b, text, 6, MSG_WAITALL) == 6);
  memset(source, 'm', sizeof source);
  CHECK(riowrite(b, source, 5000, 100 + 3000, 0) == 5000);
  CHECK(rsend(b, "x", 1, 0) == 1 && rrecv(a, text, 1, 0) == 1);
  CHECK(target[2999] == 0 && memcmp(target + 3000, source, 5000) == 0 && target[8000] == 0);
  CHECK(riounmap(a, target, sizeof target) == 0 && riounmap(a, target, sizeof target) == -1);
  CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(listener) == 0);
}

static void check_datagrams(void) {
  char text[3000] = "";
  const int server = rsocket(AF_INET, SOCK_DGRAM, 0), client = rsocket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in any = {.sin_family = AF_INET}, from;
  socklen_t length = sizeof any;
  CHECK(rbind(server, (struct sockaddr*)&any, sizeof any) == 0);
  CHECK(rgetsockname(server, (struct sockaddr*)&any, &length) == 0);
  struct sockaddr_in where = at_port(any.sin_port);
  CHECK(rsend(client, "x", 1, 0) == -1 && errno == EDESTADDRREQ);
  CHECK(rsendto(client, "question", 8, 0, (struct sockaddr*)&where, sizeof where) == 8);
  /* One thread for both sockets: each is served while the other is polled. */
  struct pollfd both[2] = {{server, POLLIN, 0}, {client, POLLIN, 0}};
  CHECK(rpoll(both, 2, kWait) == 1 && both[0].revents == POLLIN);
  length = sizeof from;
  CHECK(rrecvfrom(server, text, 4, MSG_PEEK | MSG_TRUNC, NULL, NULL) == 8);
  CHECK(rrecvfrom(server, text, sizeof text, 0, (struct sockaddr*)&from, &length) == 8);
  CHECK(memcmp(text, "question", 8) == 0 && from.sin_addr.s_addr == ours.s_addr);
  CHECK(rsendto(server, "answer", 6, 0, (struct sockaddr*)&from, sizeof from) == 6);
  CHECK(rconnect(client, (struct sockaddr*)&where, sizeof where) == 0);
  CHECK(rrecv(client, text, sizeof text, 0) == 6);
  CHECK(rrecv(client, text, sizeof text, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  CHECK(rsend(client, text, sizeof text, 0) == -1 && errno == EMSGSIZE);
  CHECK(rclose(server) == 0);
  /* This port is not bound. */
  where.sin_port = htons(9);
  CHECK(rconnect(client, (struct sockaddr*)&where, sizeof where) == 0);
  CHECK(rsend(client, "x", 1, 0) == 1);
  CHECK(rrecv(client, text, sizeof text, 0) == -1 && errno == ECONNREFUSED);
  CHECK(rclose(client) == 0);
}

int main(int count, char** arguments) {
  if (count != 2 || inet_pton(AF_INET, arguments[1], &ours) != 1) {
    fprintf(stderr, "usage: %s ADDRESS\n", arguments[0]);
    return 2;
  }
  check_flags();
  check_half_close();
  check_gone_peer();
  check_nobody_listens();
  check_connection_before_accept();
  check_poll_with_kernel();
  check_threads();
  check_close_wakes();
  check_timeouts();
  check_fork();
  check_options();
  check_mapped_memory();
  check_datagrams();
  puts("all is so");
  return 0;
}
