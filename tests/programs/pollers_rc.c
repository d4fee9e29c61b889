// Modes rc and epoll of pollers-check. Mode rc: commands, RDMA of the data by the server, and completions, as with an
// NVMe-oF target of SPDK. The server reads the data of every second command with RDMA READ and writes that of the
// others with RDMA WRITE. Mode epoll: requests and responses contain the data, and a process without completions
// sleeps, as in brpc.
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "pollers.h"

enum operation { kReceiveDone, kSendDone, kReadDone };  // upper half of wr_id; the lower half is an index

static uint32_t message_size(const struct options* o) { return o->mode->moves_data ? kCommand : o->size; }

// `depth` each of receive buffers, send buffers and, in mode rc, data buffers.
size_t rc_memory(const struct options* o) {
  return (size_t)o->depth * (2 * message_size(o) + (o->mode->moves_data ? o->size : 0));
}
static unsigned char* receive_buffer(const struct side* s, uint32_t i) {
  return s->memory + (size_t)i * message_size(&s->options);
}
static unsigned char* send_buffer(const struct side* s, uint32_t i) {
  return receive_buffer(s, s->options.depth + i);
}
static unsigned char* data_buffer(const struct side* s, uint32_t i) {
  return receive_buffer(s, 2 * s->options.depth) + (size_t)i * s->options.size;
}

static uint64_t id_of(enum operation operation, uint32_t i) { return (uint64_t)operation << 32 | i; }

static void post_receive(struct side* s, uint32_t i) {
  struct ibv_sge buffer = {(uintptr_t)receive_buffer(s, i), message_size(&s->options), s->mr->lkey};
  struct ibv_recv_wr request = {.wr_id = id_of(kReceiveDone, i), .sg_list = &buffer, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  require(s, ibv_post_recv(s->qp, &request, &bad) == 0, "ibv_post_recv fails");
}

void rc_receive(struct side* s) {
  for (uint32_t i = 0; i < s->options.depth; i++) post_receive(s, i);
}

// Posts the message in send buffer i, after the request `before` if not NULL.
static void post_message(struct side* s, uint32_t i, const struct message* m, struct ibv_send_wr* before) {
  struct message* to = (struct message*)(void*)send_buffer(s, i);
  *to = *m;
  fill_message(to, message_size(&s->options));
  struct ibv_sge buffer = {(uintptr_t)to, message_size(&s->options), s->mr->lkey};
  struct ibv_send_wr request = {.wr_id = id_of(kSendDone, i),
                                .sg_list = &buffer,
                                .num_sge = 1,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED};
  if (before != NULL) before->next = &request;
  struct ibv_send_wr* bad = NULL;
  require(s, ibv_post_send(s->qp, before != NULL ? before : &request, &bad) == 0, "ibv_post_send fails");
}

static const struct message* received(const struct side* s, const struct ibv_wc* wc) {
  const struct message* m = (const struct message*)(const void*)receive_buffer(s, (uint32_t)wc->wr_id);
  if (wc->byte_len != message_size(&s->options)) fail(s, "a message has %u bytes", wc->byte_len);
  verify_message(s, m, message_size(&s->options));
  return m;
}

// ------------------------------------------------------------------------------------------------------ completions

// Like brpc: edge-triggered completion events are read until none is left, and requested again when the queue was
// empty.
static void sleep_until_event(struct side* s) {
  if (!s->armed) {
    require(s, ibv_req_notify_cq(s->send_cq, 0) == 0, "ibv_req_notify_cq fails");
    s->armed = 1;
    return;  // the caller now polls completions that arrived before the request
  }
  while (s->armed && !s->client_finished) {
    struct epoll_event events[2];
    const int found = epoll_wait(s->epoll, events, 2, 100);
    require(s, found >= 0 || errno == EINTR, "epoll_wait fails");
    struct ibv_cq* cq = NULL;
    void* user = NULL;
    while (ibv_get_cq_event(s->channel, &cq, &user) == 0) {
      require(s, cq == s->send_cq, "an event of another completion queue");
      ibv_ack_cq_events(cq, 1);
      s->armed = 0;
    }
    require(s, errno == EAGAIN, "ibv_get_cq_event fails");
    tick(s);
  }
}

static int poll_completions(struct side* s, struct ibv_wc* wc) {
  const int found = ibv_poll_cq(s->send_cq, kBatch, wc);
  require(s, found >= 0, "ibv_poll_cq fails");
  if (found == 0 && s->options.mode->sleeps) sleep_until_event(s);
  for (int i = 0; i < found; i++)
    if (wc[i].status != IBV_WC_SUCCESS) {
      static const char* const names[] = {"a receive", "a SEND", "an RDMA READ"};
      fail(s, "%s fails: %s", names[wc[i].wr_id >> 32], ibv_wc_status_str(wc[i].status));
    }
  return found;
}

// ----------------------------------------------------------------------------------------------------------- client

struct slot {
  uint64_t sequence;
  uint64_t sent;
  int waits;  // number of completions to wait for: SEND and response; then the buffers are reused
};

// Even commands transfer data to the server.
static int moves_to_server(uint64_t sequence) { return sequence % 2 == 0; }

static void send_command(struct side* s, struct slot* slots, uint32_t i, uint64_t sequence) {
  const struct options* o = &s->options;
  slots[i] = (struct slot){.sequence = sequence, .sent = s->now, .waits = 2};
  struct message m = {.sequence = sequence, .slot = i, .kind = kRequest, .length = o->size};
  if (o->mode->moves_data) {
    m.address = (uintptr_t)data_buffer(s, i);
    m.rkey = s->mr->rkey;
    if (moves_to_server(sequence)) fill(data_buffer(s, i), o->size, sequence, kDataToServer);
  }
  post_message(s, i, &m, NULL);
}

static void take_response(struct side* s, struct slot* slots, const struct message* m) {
  struct slot* slot = &slots[m->slot];
  if (slot->waits == 0 || m->sequence != slot->sequence)
    fail(s, "a response to request %llu in slot %u, which has request %llu", (unsigned long long)m->sequence,
         m->slot, (unsigned long long)slot->sequence);
  if (s->options.mode->moves_data && !moves_to_server(m->sequence))
    verify(s, data_buffer(s, m->slot), s->options.size, m->sequence, kDataToClient);
  slot->waits--;
  add_latency(s, slot->sent);
  count_completed(s);
}

void rc_client(struct side* s) {
  const uint32_t depth = s->options.depth;
  struct slot* slots = calloc(depth, sizeof *slots);
  require(s, slots != NULL, "no memory");
  uint64_t next = 0;
  for (; next < depth; next++) send_command(s, slots, (uint32_t)next, next);
  for (uint32_t busy = depth; busy > 0;) {
    struct ibv_wc wc[kBatch];
    const int found = poll_completions(s, wc);
    tick(s);
    for (int i = 0; i < found; i++) {
      uint32_t slot = (uint32_t)wc[i].wr_id;
      if (wc[i].wr_id >> 32 == kReceiveDone) {
        const struct message* m = received(s, &wc[i]);
        slot = m->slot;
        take_response(s, slots, m);
        post_receive(s, (uint32_t)wc[i].wr_id);
      } else {
        slots[slot].waits--;
      }
      if (slots[slot].waits > 0) continue;
      if (s->now < s->end)
        send_command(s, slots, slot, next++);
      else
        busy--;
    }
  }
  free(slots);
}

// ----------------------------------------------------------------------------------------------------------- server

// Commands from arrival to the completion of the SEND of their responses. There is one task per command in flight. A
// command without a free task waits in its receive buffer, so the receive queue is never empty when a command
// arrives.
struct server {
  uint32_t free_count;
  uint32_t* free;         // stack of tasks
  struct message* tasks;  // command of each task
  uint64_t first, last;   // range of receive buffers with commands that wait for a task
  uint32_t* waiting;      // their indices, in the order of arrival
};

static void respond(struct side* s, const struct server* server, uint32_t task, struct ibv_send_wr* before) {
  struct message m = server->tasks[task];
  m.kind = kResponse;
  post_message(s, task, &m, before);
}

static struct ibv_send_wr rdma(const struct message* command, enum ibv_wr_opcode opcode,
                               struct ibv_sge* data) {
  struct ibv_send_wr request = {.sg_list = data, .num_sge = 1, .opcode = opcode};
  request.wr.rdma.remote_addr = command->address;
  request.wr.rdma.rkey = command->rkey;
  return request;
}

static void start_task(struct side* s, struct server* server, uint32_t buffer) {
  const struct options* o = &s->options;
  const uint32_t task = server->free[--server->free_count];
  const struct message* command = &server->tasks[task];
  server->tasks[task] = *(const struct message*)(const void*)receive_buffer(s, buffer);
  post_receive(s, buffer);
  // The client sends commands in sequence, and RC preserves the order.
  if (command->sequence != s->completed)
    fail(s, "command %llu after %llu commands", (unsigned long long)command->sequence,
         (unsigned long long)s->completed);
  count_completed(s);
  if (!o->mode->moves_data) {
    respond(s, server, task, NULL);
    return;
  }
  struct ibv_sge data = {(uintptr_t)data_buffer(s, task), o->size, s->mr->lkey};
  if (moves_to_server(command->sequence)) {
    struct ibv_send_wr read = rdma(command, IBV_WR_RDMA_READ, &data);
    read.wr_id = id_of(kReadDone, task);
    read.send_flags = IBV_SEND_SIGNALED;
    struct ibv_send_wr* bad = NULL;
    require(s, ibv_post_send(s->qp, &read, &bad) == 0, "ibv_post_send fails");
  } else {
    fill(data_buffer(s, task), o->size, command->sequence, kDataToClient);
    struct ibv_send_wr write = rdma(command, IBV_WR_RDMA_WRITE, &data);
    respond(s, server, task, &write);
  }
}

void rc_server(struct side* s) {
  const uint32_t depth = s->options.depth;
  struct server server = {.free = calloc(depth, sizeof *server.free),
                          .tasks = calloc(depth, sizeof *server.tasks),
                          .waiting = calloc(depth, sizeof *server.waiting)};
  require(s, server.free != NULL && server.tasks != NULL && server.waiting != NULL, "no memory");
  while (server.free_count < depth) server.free[server.free_count] = server.free_count, server.free_count++;
  while (!s->client_finished || server.free_count < depth) {
    struct ibv_wc wc[kBatch];
    const int found = poll_completions(s, wc);
    tick(s);
    for (int i = 0; i < found; i++) {
      const uint32_t index = (uint32_t)wc[i].wr_id;
      switch (wc[i].wr_id >> 32) {
        case kReceiveDone:
          received(s, &wc[i]);
          server.waiting[server.last++ % depth] = index;
          break;
        case kReadDone:
          verify(s, data_buffer(s, index), s->options.size, server.tasks[index].sequence, kDataToServer);
          respond(s, &server, index, NULL);
          break;
        default:
          server.free[server.free_count++] = index;
      }
    }
    while (server.first < server.last && server.free_count > 0)
      start_task(s, &server, server.waiting[server.first++ % depth]);
  }
  free(server.free);
  free(server.tasks);
  free(server.waiting);
}
