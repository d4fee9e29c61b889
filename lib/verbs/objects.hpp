// What stands behind the handles that programs hold: each begins with rdma-core's own struct, whose layout is the ABI, and has
// the object of the C++ API behind it.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "roci/device.hpp"

namespace roci::verbs {

// A handle's own object. Only for handles that we gave out.
template <class Object, class Handle>
Object& of(Handle* handle) {
  return *reinterpret_cast<Object*>(handle);
}

struct Context {
  verbs_context verbs{};  // first; its last field is the ibv_context that programs hold
  std::unique_ptr<Device> device;
  std::mutex mutex;  // of what follows
  std::unordered_map<ibv_ah*, std::unique_ptr<AddressHandle>> addresses;

  static Context& of(ibv_context* context) {
    return *reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) -
                                       offsetof(verbs_context, context));
  }
  ibv_context* handle() { return &verbs.context; }
};

// How many objects stand on another one, which is not destroyed before they are.
using Users = std::atomic<uint32_t>;

struct Td {
  ibv_td verbs{};
  Users users{0};
};

struct Pd {
  ibv_pd verbs{};
  std::shared_ptr<ProtectionDomain> domain;  // a parent domain has that of the domain it was made from
  Pd* made_from = nullptr;
  Td* thread_domain = nullptr;
  Users users{0};
};

struct Dm {
  ibv_dm verbs{};
  size_t length = 0;
  std::unique_ptr<uint8_t[]> bytes;
  Users users{0};
};

struct Mr {
  ibv_mr verbs{};
  std::unique_ptr<MemoryRegion> region;
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
  std::mutex mutex;  // of what follows
  std::vector<Cq*> queues;
};

// Asynchronous and completion events that were given out and have to come back before their object goes: rdma-core's words for
// it are the fields mutex, cond and *_completed of the handles.
class EventDebt {
 public:
  EventDebt(pthread_mutex_t& mutex, pthread_cond_t& cond, uint32_t& completed)
      : mutex_(mutex), cond_(cond), completed_(completed) {}
  void note_given_out();
  void note_acknowledged(uint32_t count);
  void wait_until_paid();

 private:
  pthread_mutex_t& mutex_;
  pthread_cond_t& cond_;
  uint32_t& completed_;
  uint32_t given_out_ = 0;  // under the mutex
};

struct Cq {
  ibv_cq_ex verbs{};  // begins as ibv_cq does
  std::unique_ptr<CompletionQueue> queue;
  Channel* channel = nullptr;
  EventDebt completion_events{verbs.mutex, verbs.cond, verbs.comp_events_completed};
  EventDebt async_events{verbs.mutex, verbs.cond, verbs.async_events_completed};
  Users users{0};
  std::atomic<bool> looked_at_one_by_one{false};  // with ibv_start_poll
  // Between ibv_start_poll and ibv_end_poll.
  std::mutex polling;
  ibv_wc current{};
  uint64_t current_stamp = 0;

  ibv_cq* handle() { return ibv_cq_ex_to_cq(&verbs); }
};

struct Xrcd {
  ibv_xrcd verbs{};
  std::unique_ptr<XrcDomain> domain;
};

struct Srq {
  ibv_srq verbs{};
  std::unique_ptr<SharedReceiveQueue> queue;
  EventDebt async_events{verbs.mutex, verbs.cond, verbs.events_completed};
  Pd* pd = nullptr;
  Cq* cq = nullptr;  // of an XRC one
};

// Work requests between ibv_wr_start and ibv_wr_complete. The mutex is held in between.
struct SendList {
  std::mutex mutex;
  std::vector<ibv_send_wr> requests;
  // Of each request: where its pieces begin in `pieces`; pointers are set when all are there.
  std::vector<uint32_t> first_piece;
  std::vector<ibv_sge> pieces;
  std::vector<uint8_t> inline_bytes;  // whose pieces hold an offset here instead of an address
  int error = 0;                      // of the first request that cannot be built
};

struct Qp {
  ibv_qp_ex verbs{};  // begins as ibv_qp does
  std::unique_ptr<QueuePair> queue_pair;
  EventDebt async_events{verbs.qp_base.mutex, verbs.qp_base.cond, verbs.qp_base.events_completed};
  // Null where its type has none.
  Pd* pd = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  std::unique_ptr<SendList> list;  // where the program asked for the extended calls

  ibv_qp* handle() { return &verbs.qp_base; }
};

static_assert(sizeof(ibv_device) == 664 && sizeof(verbs_context) == 648 && sizeof(ibv_qp_ex) == 352 &&
              sizeof(ibv_cq_ex) == 288);

}  // namespace roci::verbs
