// Declarations that the sources of pollers-check share: state of a process, messages, setup.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

enum {
  kGrh = 40,      // bytes before a received UD payload
  kCommand = 64,  // bytes of a command and of its completion in mode rc
  kBatch = 16,    // completions per ibv_poll_cq
  kQkey = 0x11111111,
  kStall = 20,             // seconds without progress until the program fails
  kMillisecond = 1000000,  // in ns
};

struct mode;

struct options {
  const struct mode* mode;
  double seconds;
  uint32_t size;
  uint32_t depth;
  const char* server;  // NULL: this process is the server
  uint16_t port;
};

// Data that the processes exchange over the TCP socket before the first request.
struct peer {
  char mode[8];
  uint32_t size;
  uint32_t depth;
  uint32_t qpn;
  union ibv_gid gid;
};

// Header of each message. The rest of a message is a pattern of its sequence number and kind.
struct message {
  uint64_t sequence;
  uint32_t slot;  // of the client, which has `depth` slots
  uint32_t kind;
  uint64_t address;  // mode rc: data buffer of the slot
  uint32_t rkey;
  uint32_t length;
};

enum kind { kRequest = 1, kResponse, kDataToServer, kDataToClient };

// Histogram of durations in ns: exact below 128, then 64 buckets per power of two.
struct histogram {
  uint64_t buckets[128 + 57 * 64];
  uint64_t count;
  uint64_t max;
};

struct side {
  struct options options;
  int socket;  // TCP, to the peer process
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;  // mode epoll only
  int epoll;
  int armed;  // mode epoll: a completion event was requested and has not arrived
  struct ibv_cq* send_cq;
  struct ibv_cq* receive_cq;  // the same queue, except in mode ud
  struct ibv_qp* qp;
  struct ibv_ah* ah;  // mode ud only
  unsigned char* memory;
  struct ibv_mr* mr;
  struct peer peer;

  uint64_t now;  // ns; read once per iteration of the loop
  uint64_t begin;
  uint64_t end;  // of the client's last request
  uint64_t next_tick;
  uint64_t last_progress;
  uint64_t completed;   // requests
  int client_finished;  // server: the client has received all responses
  uint64_t reported;    // number of requests that the client reports
  uint64_t retransmitted;
  struct histogram latency;
};

struct mode {
  const char* name;
  uint32_t size;
  enum ibv_qp_type type;
  int pins_first;   // the thread is pinned before it opens the device, like a reactor of SPDK
  int pins_thread;  // a second thread is pinned after the device was opened, like one of eRPC
  int sleeps;       // completion channel and epoll
  int moves_data;   // RDMA of `size` bytes of data, and messages of kCommand bytes
  size_t (*memory)(const struct options*);  // bytes to register
  void (*receive)(struct side*);            // posts the first receive requests
  void (*client)(struct side*);
  void (*server)(struct side*);
};

// Prints one sentence and exits with status 1.
_Noreturn void fail(const struct side* s, const char* format, ...) __attribute__((format(printf, 2, 3)));
void require(const struct side* s, int condition, const char* sentence);

// Reads the clock. Returns 1 at most once per millisecond, after it has checked that the peer process still runs,
// whether the client has finished, and that there was progress.
int tick(struct side* s);
void count_completed(struct side* s);

void fill(void* bytes, uint32_t length, uint64_t sequence, enum kind kind);
void verify(const struct side* s, const void* bytes, uint32_t length, uint64_t sequence, enum kind kind);
void fill_message(struct message* m, uint32_t length);
void verify_message(const struct side* s, const struct message* m, uint32_t length);

void add_latency(struct side* s, uint64_t sent);

size_t ud_memory(const struct options* o);
void ud_receive(struct side* s);
void ud_client(struct side* s);
void ud_server(struct side* s);

size_t rc_memory(const struct options* o);
void rc_receive(struct side* s);
void rc_client(struct side* s);
void rc_server(struct side* s);
