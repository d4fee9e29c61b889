// Objects of librdmacm: identifiers, event channels and events. Each starts with the struct of rdma-core.
//
//   rdma_*() ── Id ──► cm::Service (in libibverbs.so.1) ──► queue pair 1
//                ▲                     │ events, in the thread that drives the device
//                └──── Channel ◄───────┘ an eventfd signals events
//
// rdma_get_cm_event() completes the handling of events that must run in a thread of the program.
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
#include <vector>

#include "base/os/event_descriptor.hpp"
#include "cm/service.hpp"
#include "rdmacm/messages.hpp"

namespace roci::rdmacm {

struct Id;

// Multicast group that an identifier has joined.
struct Membership {
  IpAddress group;
  bool attached = false;  // receives its datagrams
  uint32_t reported =
      0;  // events that the program has fetched and not acknowledged; under the mutex of the id
};

struct CmEvent {
  rdma_cm_event verbs{};  // first member: the pointer that programs hold
  Id* id = nullptr;       // the id that waits for the acknowledgment; for a connection request, the listener
  std::shared_ptr<Membership> membership{};  // of a join
  std::array<uint8_t, 256> private_data{};
};

struct Channel {
  rdma_event_channel verbs{};  // first member; the fd is readable while events are queued
  std::mutex mutex;
  std::deque<std::unique_ptr<CmEvent>> events;
  BlockedThreads blocked;  // in rdma_get_cm_event()
  // Of the ids that use or used this channel. Stores release and loads acquire the object.
  std::atomic<cm::Service*> service{nullptr};
  // rdma_destroy_event_channel() was called while a thread was in rdma_get_cm_event(), as rping does. That thread then owns
  // the memory and does not return.
  std::atomic<bool> destroyed{false};
  uint32_t readers = 0;  // threads in rdma_get_cm_event(); under the mutex of the table of channels

  // Any thread, also from handlers.
  void push(std::unique_ptr<CmEvent> event);
  static Channel& of(rdma_event_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
};

enum class Phase : uint8_t {
  kIdle,
  kBound,
  kAddressRequested,
  kAddressResolved,
  kRouteResolved,
  kListening,
  kConnecting,  // REQ or SIDR_REQ was sent, or a reply was not fetched yet
  kRequested,   // a peer requested a connection or a service
  kAccepting,
  kConnected,
  kDisconnected,
};

// The part of an identifier that programs hold.
struct Handle {
  rdma_cm_id verbs{};  // first member
  Id* id = nullptr;
};

struct Id final : cm::EventHandler, cm::AddressQuery {
  Handle handle{{}, this};
  rdma_cm_id& verbs = handle.verbs;
  cm::Service* service = nullptr;
  std::atomic<Phase> phase = Phase::kIdle;  // also changed by events in any thread
  bool synchronous = false;                 // has its own channel; calls wait for their events
  uint16_t port = 0;                        // local port in host byte order; 0: none yet
  // Port space of the port: that of the id, but for RDMA_PS_IB and addresses of AF_IB, that of the service ID.
  rdma_port_space service_space = RDMA_PS_TCP;
  uint8_t sgid_index = 0;
  uint8_t traffic_class = 0;
  uint8_t ack_timeout = 0;  // time code; 0: default
  bool reuse_address = false, one_family = false;
  ibv_ece local_ece{}, remote_ece{};
  ibv_pd* requested_pd = nullptr;  // from rdma_create_ep(), for ids of requests
  std::optional<ibv_qp_init_attr> requested_qp;
  Terms terms;
  cm::Connection* connection = nullptr;
  cm::Listener listener;
  std::vector<std::shared_ptr<Membership>> groups;
  bool of_listener = false;    // created by a request: uses the port of the listener
  bool connect_error = false;  // RDMA_CM_EVENT_CONNECT_ERROR was reported, which ends the connection

  // Events that programs have fetched and not acknowledged.
  std::mutex mutex;
  std::condition_variable acknowledged;
  uint32_t reported = 0;
  std::atomic<uint32_t> queued{0};  // events in the channel; changed with the channel's mutex held
  std::mutex channel_mutex;         // held by handlers that use the channel, and while it changes

  static Id& of(rdma_cm_id* id) { return *reinterpret_cast<Handle*>(id)->id; }
  // Requests between addresses of AF_IB have no IP header in their private data (Linux: cma_user_data_offset).
  [[nodiscard]] bool uses_ib_addresses() const { return verbs.route.addr.src_addr.sa_family == AF_IB; }
  // Of the local port.
  [[nodiscard]] uint64_t service_id() const {
    return cm_service_id(static_cast<CmPortSpace>(service_space), port);
  }
  // For the thread of the program. Handlers use push().
  [[nodiscard]] Channel& channel() const { return Channel::of(verbs.channel); }
  // Queues an event in the channel. Any thread.
  void push(std::unique_ptr<CmEvent> event);

  bool on_event(cm::Connection& from, const cm::Event& event) override;
  void on_resolved(Status found) override;
};

// The device of the process. It is opened once and never closed. Null with errno if no device exists.
ibv_context* open_device();
// Used if the program does not specify its own.
ibv_pd* default_pd();
ibv_xrcd* default_xrc_domain();
// Handler of events for listeners and for connections from their requests.
cm::EventHandler& requests();
uint8_t path_mtu_of(const Id& id);  // ibv_mtu
// Sets the path record of the route to the peer. Each peer has one route.
void set_path(Id& id, uint8_t mtu);

// Set errno and return -1.
int failed(int code);
int failed(const Error& error);

std::unique_ptr<CmEvent> make_event(Id& id, rdma_cm_event_type type, int status = 0);
// Creates an event and queues it in the channel of the id.
void report(Id& id, rdma_cm_event_type type, int status = 0);
// In synchronous mode, waits for the event and stores it in the id. Returns 0, or -1 with errno.
int complete(Id& id);
// In synchronous mode, acknowledges the event that is stored in the id.
void acknowledge_own_event(Id& id);

}  // namespace roci::rdmacm
