/* Program with plain sockets, without RDMA: echoes with read() and writev(), or sends with poll() and verifies the
   echoed data. For librspreload.so. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static unsigned char byte_at(size_t offset) { return (unsigned char)(offset * 2654435761U >> 13); }

static struct sockaddr_in address_of(char** arguments) {
  struct sockaddr_in out = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
  if (inet_pton(AF_INET, arguments[0], &out.sin_addr) != 1) fail(arguments[0]);
  return out;
}

static int serve(const struct sockaddr_in* at) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  if (listener < 0) fail("socket");
  if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) fail("setsockopt");
  if (bind(listener, (const struct sockaddr*)at, sizeof *at) != 0) fail("bind");
  if (listen(listener, 4) != 0) fail("listen");
  puts("listening");
  fflush(stdout);
  const int peer = accept(listener, NULL, NULL);
  if (peer < 0) fail("accept");
  static char buffer[30000];
  ssize_t got;
  while ((got = read(peer, buffer, sizeof buffer)) > 0) {
    for (ssize_t sent = 0; sent < got;) {
      const size_t left = (size_t)(got - sent);
      const struct iovec pieces[2] = {{buffer + sent, left / 3}, {buffer + sent + left / 3, left - left / 3}};
      const ssize_t some = writev(peer, pieces, 2);
      if (some < 0) fail("writev");
      sent += some;
    }
  }
  if (got < 0) fail("read");
  return close(peer) + close(listener);
}

static int ask(const struct sockaddr_in* at, size_t bytes) {
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  if (peer < 0) fail("socket");
  if (connect(peer, (const struct sockaddr*)at, sizeof *at) != 0) fail("connect");
  struct sockaddr_in from;
  socklen_t length = sizeof from;
  if (getsockname(peer, (struct sockaddr*)&from, &length) != 0) fail("getsockname");
  printf("from %s\n", inet_ntoa(from.sin_addr));
  if (fcntl(peer, F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
  static unsigned char buffer[50000];
  size_t sent = 0, received = 0;
  for (;;) {
    struct pollfd entry = {peer, (short)(POLLIN | (sent < bytes ? POLLOUT : 0)), 0};
    if (poll(&entry, 1, 60000) != 1) fail("poll");
    if (entry.revents & POLLOUT) {
      const size_t some = bytes - sent < sizeof buffer ? bytes - sent : sizeof buffer;
      for (size_t i = 0; i < some; ++i) buffer[i] = byte_at(sent + i);
      const ssize_t moved = send(peer, buffer, some, 0);
      if (moved < 0 && errno != EAGAIN) fail("send");
      if (moved > 0) sent += (size_t)moved;
      if (sent == bytes && shutdown(peer, SHUT_WR) != 0) fail("shutdown");
    }
    if (entry.revents & ~POLLOUT) {
      const ssize_t moved = recv(peer, buffer, sizeof buffer, 0);
      if (moved < 0 && errno != EAGAIN) fail("recv");
      if (moved == 0) break;
      for (ssize_t i = 0; i < moved; ++i) {
        if (buffer[i] == byte_at(received + (size_t)i)) continue;
        fprintf(stderr, "byte %zu is wrong\n", received + (size_t)i);
        return 1;
      }
      if (moved > 0) received += (size_t)moved;
    }
  }
  printf("%zu of %zu bytes came back\n", received, bytes);
  return close(peer) + (received != bytes);
}

int main(int count, char** arguments) {
  if (count < 3) {
    fprintf(stderr, "usage: %s ADDRESS PORT [BYTES]\n", arguments[0]);
    return 2;
  }
  const struct sockaddr_in at = address_of(arguments + 1);
  return count == 3 ? serve(&at) : ask(&at, strtoul(arguments[3], NULL, 10));
}
