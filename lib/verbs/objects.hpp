// Objects of the handles that programs hold. Each object starts with rdma-core's struct, whose layout is the ABI,
// followed by the object of the C++ API.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "roci/device.hpp"

namespace roci::verbs {

// The object of a handle, which must have been created by this library.
template <class Object, class Handle>
Object& of(Handle* handle) {
  return *reinterpret_cast<Object*>(handle);
}

struct Context {
  verbs_context verbs{};  // first; its last field is the ibv_context that programs hold
  std::unique_ptr<Device> device;
  // Held while an event is fetched and counted, and while an object and its events are removed.
  std::mutex async_events;

  static Context& of(ibv_context* context) {
    return *reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) -
                                       offsetof(verbs_context, context));
  }
  ibv_context* handle() { return &verbs.context; }
};

// Number of objects that refer to this object, which cannot be destroyed before them.
using ReferenceCount = std::atomic<uint32_t>;

struct Td {
  ibv_td verbs{};
  ReferenceCount users{0};
};

// Imported handles (ibv_import_pd, ibv_import_mr, ibv_import_dm) share the object of the handle with the same number.
struct Pd {
  ibv_pd verbs{};
  std::shared_ptr<ProtectionDomain> domain;  // a parent domain shares that of its base domain
  Pd* made_from = nullptr;
  Td* thread_domain = nullptr;
  ReferenceCount users{0};
};

struct Dm {
  ibv_dm verbs{};
  size_t length = 0;
  std::shared_ptr<uint8_t[]> bytes;
  ReferenceCount users{0};
};

struct Mr {
  ibv_mr verbs{};
  std::shared_ptr<MemoryRegion> region;
  Dm* of_dm = nullptr;
};

struct Mw {
  ibv_mw verbs{};
  std::unique_ptr<MemoryWindow> window;
};

struct Cq;

struct Channel {
  ibv_comp_channel verbs{};
  std::unique_ptr<CompletionChannel> channel;
  // Protects the following fields. Held while an event is fetched and counted, and while a queue and its events are
  // removed.
  std::mutex mutex;
  std::vector<Cq*> queues;
  uint32_t readers = 0;    // threads in ibv_get_cq_event()
  bool destroyed = false;  // the last reader frees the channel
};

// Counts delivered asynchronous and completion events, which must be acknowledged before their object is destroyed.
// rdma-core's fields for this are mutex, cond and *_completed of the handles.
class UnackedEvents {
 public:
  UnackedEvents(pthread_mutex_t& mutex, pthread_cond_t& cond, uint32_t& completed)
      : mutex_(mutex), cond_(cond), completed_(completed) {}
  void count_delivered();
  void note_acknowledged(uint32_t count);
  void wait_acknowledged();

 private:
  pthread_mutex_t& mutex_;
  pthread_cond_t& cond_;
  uint32_t& completed_;
  uint32_t unacknowledged_ = 0;  // protected by the mutex
};

struct Cq {
  ibv_cq_ex verbs{};  // starts like ibv_cq
  std::unique_ptr<CompletionQueue> queue;
  Channel* channel = nullptr;
  UnackedEvents completion_events{verbs.mutex, verbs.cond, verbs.comp_events_completed};
  UnackedEvents async_events{verbs.mutex, verbs.cond, verbs.async_events_completed};
  ReferenceCount users{0};
  std::atomic<bool> polled_one_by_one{false};  // polled with ibv_start_poll
  // State between ibv_start_poll and ibv_end_poll.
  std::mutex polling;
  ibv_wc current{};
  uint64_t current_stamp = 0;
  int64_t realtime_ahead = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC, ns; 0: not measured

  ibv_cq* handle() { return ibv_cq_ex_to_cq(&verbs); }
};

struct Xrcd {
  ibv_xrcd verbs{};
  std::unique_ptr<XrcDomain> domain;
};

struct Srq {
  ibv_srq verbs{};
  std::unique_ptr<SharedReceiveQueue> queue;
  UnackedEvents async_events{verbs.mutex, verbs.cond, verbs.events_completed};
  Pd* pd = nullptr;
  Cq* cq = nullptr;  // only for XRC
};

// Work requests between ibv_wr_start and ibv_wr_complete. The mutex is held meanwhile.
struct SendList {
  std::mutex mutex;
  std::vector<ibv_send_wr> requests;
  // Per request: index of its first piece in `pieces`. Pointers are set when the list is complete.
  std::vector<uint32_t> first_piece;
  std::vector<ibv_sge> pieces;
  std::vector<uint8_t> inline_bytes;  // pieces of inline data have an offset into it instead of an address
  int error = 0;                      // of the first request that cannot be built
};

// Receive work queue: the receive side of a raw packet queue pair, which sends nothing.
struct Wq {
  ibv_wq verbs{};
  std::unique_ptr<QueuePair> queue_pair;
  UnackedEvents async_events{verbs.mutex, verbs.cond, verbs.events_completed};
  ReferenceCount users{0};  // tables, each as often as it names the queue
};

// Indirection table of receive side scaling.
struct IndirectionTable {
  ibv_rwq_ind_table verbs{};
  std::vector<Wq*> queues;
  ReferenceCount users{0};
};

struct Qp;

struct Flow {
  ibv_flow verbs{};
  std::unique_ptr<FlowRule> rule;
  Qp* qp = nullptr;
};

// The member with which newer headers end ibv_qp_ex, for programs that were compiled with them.
struct FlushCall {
  void (*wr_flush)(ibv_qp_ex*, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
                   uint8_t level) = nullptr;
};
template <class QpEx>
struct WithFlush : QpEx, FlushCall {};
template <class QpEx>
requires requires(QpEx qp) { qp.wr_flush; }
struct WithFlush<QpEx> : QpEx {};

struct Qp {
  WithFlush<ibv_qp_ex> verbs{};  // starts like ibv_qp
  std::unique_ptr<QueuePair> queue_pair;
  UnackedEvents async_events{verbs.qp_base.mutex, verbs.qp_base.cond, verbs.qp_base.events_completed};
  // Null if the queue pair's type has none.
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  std::unique_ptr<SendList> list;  // only if the program has requested the extended calls
  ReferenceCount flows{0};
  // Receive side scaling: the table, and the queues and the hash of its flow rules. Null without.
  IndirectionTable* table = nullptr;
  std::unique_ptr<RssTable> rss;

  ibv_qp* handle() { return &verbs.qp_base; }
};

// A mutex has 40 bytes on x86-64 and 48 on arm64.
static_assert(sizeof(ibv_device) == 664 && sizeof(verbs_context) == 608 + sizeof(pthread_mutex_t) &&
              sizeof(ibv_cq_ex) == 248 + sizeof(pthread_mutex_t));
// Newer versions than 44 have one more member, at the end.
static_assert(sizeof(ibv_qp_ex) == 312 + sizeof(pthread_mutex_t) ||
              sizeof(ibv_qp_ex) == 320 + sizeof(pthread_mutex_t));

}  // namespace roci::verbs
