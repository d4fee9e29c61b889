/* The TCP connection of both examples. The two sides exchange over it the parameters of RDMA (queue pair numbers,
 * GIDs, keys). Afterwards, its close indicates that the peer has exited. A real program would use the RDMA connection
 * manager or a cluster directory instead.
 *
 * Functions return a descriptor or 0 on success, otherwise -errno. */
#ifndef ROCI_EXAMPLE_TCP_H
#define ROCI_EXAMPLE_TCP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a listening socket that is nonblocking. */
int tcp_listen(const char* address, const char* port);
/* Accepts a connection, which is nonblocking. Returns -EAGAIN if there is none. */
int tcp_accept(int listener);
/* Whether this error of tcp_accept() is permanent. The others concern one connection, or have an external cause, such
 * as the limit of descriptors (EMFILE): the caller accepts again after ACCEPT_PAUSE_MS and does not wait for the
 * listener meanwhile. */
int tcp_accept_is_over(int status);
enum { ACCEPT_PAUSE_MS = 100 };
/* Retries for `timeout_ms`, since the peer may not have started yet. */
int tcp_connect(const char* host, const char* port, int timeout_ms);

/* Transfer all bytes. Errors: -ETIMEDOUT; -ECONNRESET if the peer has closed the connection. */
int tcp_send(int fd, const void* bytes, size_t size, int timeout_ms);
int tcp_receive(int fd, void* bytes, size_t size, int timeout_ms);
/* Receives available bytes, up to `size`. Returns 0 if there are none. */
int tcp_receive_some(int fd, void* bytes, size_t size);
/* Whether the peer has closed the connection. Discards received bytes. */
int tcp_is_closed(int fd);

#ifdef __cplusplus
}
#endif

#endif
