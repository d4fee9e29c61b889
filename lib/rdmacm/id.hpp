// What stands behind the handles of librdmacm: identifiers, event channels and events. Each begins with rdma-core's own struct.
//
//   rdma_*() ── Id ──► cm::Service (in libibverbs.so.1) ──► queue pair 1
//                ▲                     │ events, by whoever drives the device
//                └──── Channel ◄───────┘ an eventfd that says there are some; rdma_get_cm_event() finishes what each needs of the program
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "cm/service.hpp"
#include "rdmacm/messages.hpp"

namespace roci::rdmacm {

struct Id;

struct CmEvent {
  rdma_cm_event verbs{};  // first: what programs hold
  Id* id = nullptr;       // whose acknowledgement it waits for: of a request the listener's
  std::array<uint8_t, 256> private_data{};
};

struct Channel {
  rdma_event_channel verbs{};  // first; its fd is readable while anything is queued
  std::mutex mutex;
  std::deque<std::unique_ptr<CmEvent>> events;
  std::atomic<cm::Service*> service{nullptr};  // of the ids that are or were of this channel
  // rdma_destroy_event_channel() was called while a thread was in rdma_get_cm_event(), as rping does. The thread has the
  // memory then, and does not return.
  std::atomic<bool> destroyed{false};
  uint32_t readers = 0;  // threads in rdma_get_cm_event(); under the mutex of the table of channels

  // Any thread, from within handlers too.
  void push(std::unique_ptr<CmEvent> event);
  static Channel& of(rdma_event_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
};

enum class Phase : uint8_t {
  kIdle,
  kBound,
  kAddressAsked,
  kAddressKnown,
  kRouteKnown,
  kListening,
  kConnecting,  // REQ or SIDR_REQ is under way, or a reply waits to be fetched
  kRequested,   // a peer wants to connect, or asks
  kAccepting,
  kConnected,
  kDisconnected,
};

// What programs hold of an identifier.
struct Handle {
  rdma_cm_id verbs{};  // first
  Id* id = nullptr;
};

struct Id final : cm::EventHandler, cm::AddressQuery {
  Handle handle{{}, this};
  rdma_cm_id& verbs = handle.verbs;
  cm::Service* service = nullptr;
  std::atomic<Phase> phase = Phase::kIdle;  // events of any thread move it too
  bool synchronous = false;                 // it has a channel of its own, and calls wait for their events
  uint16_t port = 0;                        // ours, in host order; 0: none yet
  uint8_t sgid_index = 0;
  uint8_t traffic_class = 0;
  uint8_t ack_timeout = 0;  // a code; 0: by default
  bool reuse_address = false, one_family = false;
  ibv_ece local_ece{}, remote_ece{};
  ibv_pd* asked_pd = nullptr;  // of rdma_create_ep() for ids of requests
  std::optional<ibv_qp_init_attr> asked_qp;
  Terms terms;
  cm::Connection* connection = nullptr;
  cm::Listener listener;
  bool of_listener = false;  // it came as a request: its port is the listener's

  // Events that programs have and have not acknowledged.
  std::mutex mutex;
  std::condition_variable acknowledged;
  uint32_t reported = 0;
  std::atomic<uint32_t> queued{0};  // that wait in its channel; changed with the channel's mutex in hand

  static Id& of(rdma_cm_id* id) { return *reinterpret_cast<Handle*>(id)->id; }
  [[nodiscard]] Channel& channel() const { return Channel::of(verbs.channel); }

  bool on_event(cm::Connection& from, const cm::Event& event) override;
  void on_answer(Status found) override;
};

// Of the one device that the process has, opened once and for good; null and errno when there is none.
ibv_context* open_device();
// Of programs that bring none of their own.
ibv_pd* default_pd();
ibv_xrcd* default_xrc_domain();
// Who hears what comes for listeners and for what became of it.
cm::EventHandler& requests();
uint8_t path_mtu_of(const Id& id);  // ibv_mtu

// Calls return -1 and say why in errno.
int failed(int code);
int failed(const Error& error);

std::unique_ptr<CmEvent> make_event(Id& id, rdma_cm_event_type type, int status = 0);
// Puts it where the program finds it.
void report(Id& id, rdma_cm_event_type type, int status = 0);
// In synchronous mode: waits for the answer, which stays with the id. 0, or -1 and errno.
int complete(Id& id);

}  // namespace roci::rdmacm
