// Mode ud of pollers-check, with the data path of eRPC: one credit per request in flight, bursts of sends that are
// rarely signaled, retransmission by the client, and a server that executes each request once.
#include <stdlib.h>

#include "pollers.h"

enum { kTimeout = 5 * kMillisecond };  // as in eRPC

// Send buffers and work requests are used cyclically. The last one of each half of the queue is signaled.
struct sender {
  uint32_t size;       // of the send queue
  uint32_t stride;     // between buffers
  uint32_t posted;     // since the start
  uint32_t completed;  // number of completed requests
  uint32_t count;      // in the burst
  struct ibv_send_wr burst[kBatch];
  struct ibv_sge buffers[kBatch];
};

struct request {
  uint64_t sequence;  // slot, slot + depth, slot + 2 * depth, ...
  uint64_t first_sent;
  uint64_t last_sent;
  int outstanding;
};

static uint32_t receives(const struct options* o) { return 4 * o->depth; }
static uint32_t sends(const struct options* o) { return 4 * o->depth; }
static uint32_t receive_stride(const struct options* o) { return (kGrh + o->size + 63) / 64 * 64; }

size_t ud_memory(const struct options* o) {
  return (size_t)receives(o) * receive_stride(o) + (size_t)sends(o) * o->size;
}

static void post_receive(struct side* s, uint64_t index) {
  // The payload starts at a multiple of 8 bytes.
  struct ibv_sge buffer = {(uintptr_t)s->memory + index * receive_stride(&s->options), kGrh + s->options.size,
                           s->mr->lkey};
  struct ibv_recv_wr request = {.wr_id = index, .sg_list = &buffer, .num_sge = 1};
  struct ibv_recv_wr* bad = NULL;
  require(s, ibv_post_recv(s->qp, &request, &bad) == 0, "ibv_post_recv fails");
}

void ud_receive(struct side* s) {
  for (uint32_t i = 0; i < receives(&s->options); i++) post_receive(s, i);
}

static struct sender make_sender(const struct side* s) {
  return (struct sender){.size = sends(&s->options), .stride = s->options.size};
}

static void flush(struct side* s, struct sender* q) {
  if (q->count == 0) return;
  q->burst[q->count - 1].next = NULL;
  struct ibv_send_wr* bad = NULL;
  require(s, ibv_post_send(s->qp, q->burst, &bad) == 0, "ibv_post_send fails");
  q->count = 0;
}

static uint32_t room(const struct sender* q) { return q->size - (q->posted - q->completed); }

static void poll_sends(struct side* s, struct sender* q) {
  struct ibv_wc wc[kBatch];
  const int found = ibv_poll_cq(s->send_cq, kBatch, wc);
  require(s, found >= 0, "ibv_poll_cq fails");
  for (int i = 0; i < found; i++) {
    if (wc[i].status != IBV_WC_SUCCESS) fail(s, "a SEND fails: %s", ibv_wc_status_str(wc[i].status));
    q->completed = (uint32_t)wc[i].wr_id;
  }
}

static void add_send(struct side* s, struct sender* q, uint64_t sequence, enum kind kind) {
  const struct options* o = &s->options;
  unsigned char* buffer =
      s->memory + (size_t)receives(o) * receive_stride(o) + (size_t)(q->posted % q->size) * q->stride;
  struct message* m = (struct message*)(void*)buffer;
  *m = (struct message){
      .sequence = sequence, .slot = (uint32_t)(sequence % o->depth), .kind = kind, .length = o->size};
  fill_message(m, o->size);
  q->posted++;
  q->buffers[q->count] = (struct ibv_sge){(uintptr_t)buffer, o->size, s->mr->lkey};
  struct ibv_send_wr* request = &q->burst[q->count];
  *request = (struct ibv_send_wr){.wr_id = q->posted,
                                  .next = request + 1,
                                  .sg_list = &q->buffers[q->count],
                                  .num_sge = 1,
                                  .opcode = IBV_WR_SEND,
                                  .send_flags = q->posted % (q->size / 2) == 0 ? IBV_SEND_SIGNALED : 0};
  request->wr.ud.ah = s->ah;
  request->wr.ud.remote_qpn = s->peer.qpn;
  request->wr.ud.remote_qkey = kQkey;
  if (++q->count == kBatch) flush(s, q);
}

// Returns the message of a receive completion.
static const struct message* received(const struct side* s, const struct ibv_wc* wc) {
  const uint32_t size = s->options.size;
  if (wc->status != IBV_WC_SUCCESS) fail(s, "a receive fails: %s", ibv_wc_status_str(wc->status));
  if (wc->byte_len != kGrh + size || wc->src_qp != s->peer.qpn)
    fail(s, "a datagram has %u bytes and is from queue pair %u, not %u from %u", wc->byte_len, wc->src_qp,
         kGrh + size, s->peer.qpn);
  const void* payload = s->memory + wc->wr_id * receive_stride(&s->options) + kGrh;
  const struct message* m = payload;
  verify_message(s, m, size);
  if (m->sequence % s->options.depth != m->slot)
    fail(s, "request %llu is of slot %u", (unsigned long long)m->sequence, m->slot);
  return m;
}

static void send_request(struct side* s, struct sender* q, struct request* r) {
  r->last_sent = s->now;
  add_send(s, q, r->sequence, kRequest);
}

static void take_response(struct side* s, struct request* requests, const struct message* m) {
  struct request* r = &requests[m->slot];
  if (m->sequence > r->sequence)
    fail(s, "a response to request %llu, which was not sent", (unsigned long long)m->sequence);
  if (m->sequence < r->sequence || !r->outstanding) return;  // response to a retransmitted request
  r->outstanding = 0;
  add_latency(s, r->first_sent);
  count_completed(s);
}

void ud_client(struct side* s) {
  const uint32_t depth = s->options.depth;
  struct sender q = make_sender(s);
  struct request* requests = calloc(depth, sizeof *requests);
  require(s, requests != NULL, "no memory");
  for (uint32_t i = 0; i < depth; i++) requests[i].sequence = i;
  int started = 0;
  for (uint32_t outstanding = 1; outstanding > 0;) {
    const int is_tick = tick(s);
    struct ibv_wc wc[kBatch];
    const int found = ibv_poll_cq(s->receive_cq, kBatch, wc);
    require(s, found >= 0, "ibv_poll_cq fails");
    for (int i = 0; i < found; i++) {
      take_response(s, requests, received(s, &wc[i]));
      post_receive(s, wc[i].wr_id);
    }
    if (room(&q) < q.size / 2) poll_sends(s, &q);
    outstanding = 0;
    for (uint32_t i = 0; i < depth; i++) {
      struct request* r = &requests[i];
      if (!r->outstanding && s->now < s->end && room(&q) > 0) {
        if (started) r->sequence += depth;
        r->outstanding = 1;
        r->first_sent = s->now;
        send_request(s, &q, r);
      } else if (is_tick && r->outstanding && s->now > r->last_sent + kTimeout && room(&q) > 0) {
        s->retransmitted++;
        send_request(s, &q, r);
      }
      outstanding += (uint32_t)r->outstanding;
    }
    started = 1;
    flush(s, &q);
  }
  free(requests);
}

void ud_server(struct side* s) {
  const uint32_t depth = s->options.depth;
  struct sender q = make_sender(s);
  uint64_t* expected = calloc(depth, sizeof *expected);  // next sequence number per slot
  require(s, expected != NULL, "no memory");
  for (uint32_t i = 0; i < depth; i++) expected[i] = i;
  while (!s->client_finished) {
    tick(s);
    if (room(&q) < q.size / 2) poll_sends(s, &q);
    struct ibv_wc wc[kBatch];
    const uint32_t limit = room(&q) < kBatch ? room(&q) : kBatch;  // each needs a response
    const int found = limit > 0 ? ibv_poll_cq(s->receive_cq, (int)limit, wc) : 0;
    require(s, found >= 0, "ibv_poll_cq fails");
    for (int i = 0; i < found; i++) {
      const struct message* m = received(s, &wc[i]);
      const uint64_t next = expected[m->slot];
      if (m->sequence > next)
        fail(s, "request %llu was sent before the response to request %llu", (unsigned long long)m->sequence,
             (unsigned long long)next);
      if (m->sequence == next) {
        expected[m->slot] += depth;
        count_completed(s);
      }
      // A retransmitted request is answered again. An older one is a late duplicate.
      if (m->sequence + depth >= next) add_send(s, &q, m->sequence, kResponse);
      post_receive(s, wc[i].wr_id);
    }
    flush(s, &q);
  }
  free(expected);
}
