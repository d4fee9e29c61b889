/* What both examples need of TCP: a connection over which the two sides tell each other what RDMA needs to know (queue pair
 * numbers, GIDs, keys), and that says afterwards, by closing, that the other side is gone. Replace it by the RDMA connection
 * manager, by a cluster's directory, or by whatever your program has.
 *
 * Functions return a descriptor or 0, and otherwise an errno with a minus. */
#ifndef ROCI_EXAMPLE_TCP_H
#define ROCI_EXAMPLE_TCP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Listens; accepting on the descriptor does not wait. */
int tcp_listen(const char* address, const char* port);
/* The next one who came, or -EAGAIN. Receiving on it does not wait. */
int tcp_accept(int listener);
/* Tries until `timeout_ms` is over: the other side may be about to start. */
int tcp_connect(const char* host, const char* port, int timeout_ms);

/* All bytes, or an error: -ETIMEDOUT, or -ECONNRESET when the other side is gone. */
int tcp_send(int fd, const void* bytes, size_t size, int timeout_ms);
int tcp_receive(int fd, void* bytes, size_t size, int timeout_ms);
/* What is there now, up to `size` bytes; 0 when there is nothing yet. */
int tcp_receive_some(int fd, void* bytes, size_t size);
/* Whether the other side has closed the connection. Bytes that it sends are thrown away. */
int tcp_is_closed(int fd);

#ifdef __cplusplus
}
#endif

#endif
