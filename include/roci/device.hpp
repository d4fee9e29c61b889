// The C++ API of Rocinante: an RDMA device made of a DPDK port. Names, value types and return codes are those of
// rdma-core's verbs (`ibv_*`); objects are C++ and free themselves.
//
// Threads: every call may come from any thread. Objects may be destroyed in any order: each keeps what it stands on
// alive, and the port is closed with the last of them.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roci/address_handle.hpp"
#include "roci/completion.hpp"
#include "roci/congestion_config.hpp"
#include "roci/congestion_control_config.hpp"
#include "roci/congestion_report.hpp"
#include "roci/events.hpp"
#include "roci/extension_config.hpp"
#include "roci/flow_control_config.hpp"
#include "roci/memory.hpp"
#include "roci/progress.hpp"
#include "roci/result.hpp"
#include "roci/shared_receive_queue.hpp"
#include "roci/telemetry_config.hpp"
#include "roci/xrc_domain.hpp"

namespace roci {

class CompletionRing;
class EventQueue;
class Host;
class MbufPool;
class Poller;
class Port;
struct AttachedQueuePair;
struct XrcDomainCore;
struct Profile;

struct DeviceConfig {
  std::string name = "roci0";
  // IP networks of the port ("10.0.0.1/24", "fd00::1/64"). GID 0 is the link-local address made from the MAC, the
  // addresses follow from GID 1 in this order.
  std::vector<std::string> addresses;
  std::vector<std::string> gateways;  // next hop of what no network above contains; at most one a family
  std::map<std::string, std::string> neighbours;  // static entries, IP to MAC
  uint16_t vlan = 0;                              // 1 to 4094; 0 sends untagged
  uint8_t priority = 0;                           // PCP of the VLAN tag, 0 to 7
  Progress progress = Progress::kApplication;
  // kDedicated: of its threads. kApplication: of the helper thread; with kSleep it looks after the device as long as there is
  // work, sleeps for `takeover` and looks again, with the highest priority that the system allows: for programs on few cores.
  IdlePolicy idle = IdlePolicy::kYield;
  // kApplication: how long nobody must have polled before the helper thread does. Not used, nor is `idle`, where the helper sleeps
  // until a frame arrives: one worker, on a shared-memory port.
  std::chrono::nanoseconds takeover = std::chrono::microseconds{500};
  // Poll loops that share the work, each with its own queue pairs; 1 to 16. The port should have as many queues: workers
  // without one send and receive through others.
  uint32_t workers = 1;
  // For kDedicated, which has a thread for each worker: the core to pin the first one to, the others follow on the next
  // ones; -1 leaves it to the system. Or the core of each.
  int cpu = -1;
  std::vector<int> cpus;
  uint32_t tx_buffers =
      4096;  // frames in the device's own buffer pool; at least 1024 for each of several workers
  uint32_t window_bytes = 512 * 1024;  // un-acknowledged request bytes a queue pair may have in flight
  // One acknowledgement stands for at most so many request packets that arrived together, 1 to 1024 (LDCP's m); 1
  // acknowledges each.
  uint32_t packets_per_ack = 64;
  // How many packets a queue pair sends before it is the next one's turn, 1 to 64; and no more than these wait for a port that is
  // full, so that small messages wait less for large ones, as in NICs with a scheduler, at more work for each packet. 0: 16 to 64,
  // with few queue pairs more: what costs least.
  uint32_t packets_per_turn = 0;
  // Whether the ICRC of every packet is checked before any byte of it is placed. Otherwise the payload in the middle of a
  // large message is placed while it is summed, where that is faster: a packet with a wrong ICRC is still dropped and sent
  // again, but until then, and for good if the message fails, its bytes lie where the right ones belong.
  bool check_before_placing = false;
  // Whether memory that was registered and is then unmapped, protected or cut off with its file costs the request that
  // touches it, with an error as a wrong key would have, and not the program. For that the process gets a handler of SIGSEGV
  // and SIGBUS (docs/robustness.md) with the first device that asks for it; it is there for all devices then.
  bool guard_memory = true;
  // For simulations: of RC packets lengths and headers are real, and payload is not there: it is neither copied nor summed, the
  // ICRC of no packet is looked at, and what memory regions hold stays as it is. At both ends, or what arrives is anything.
  bool without_payload = false;
  // Queue pairs, and memory regions and windows together, that may exist at a time: what more there would be is refused
  // with ENOMEM. At most 2^23 each.
  uint32_t max_qp = 1U << 23;
  uint32_t max_mr = 1U << 23;
  ExtensionConfig extensions;
  HostTelemetryConfig telemetry;
  FlowControlConfig flow_control;
  CongestionConfig congestion;
  CongestionControlConfig congestion_control;
  uint64_t seed = 0;  // 0: QPNs, keys and PSNs from the operating system's generator; else replayable ones
};

class Device;
class ProtectionDomain;
class QueuePair;

// A device: one port, its addresses and everything created on it.
class Device {
 public:
  // Makes a device of a port. Fails on a bad address, on a port whose MTU cannot carry a path MTU of 256, and when
  // memory for the buffers runs out.
  [[nodiscard]] static Result<std::unique_ptr<Device>> create(std::unique_ptr<Port> port,
                                                              const DeviceConfig& config);
  // The same with buffers of a pool that others use too, which hold a frame of the port's MTU each; tx_buffers says nothing then.
  [[nodiscard]] static Result<std::unique_ptr<Device>> create(std::unique_ptr<Port> port,
                                                              const DeviceConfig& config,
                                                              std::shared_ptr<MbufPool> buffers);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Another user of the same device, as a second ibv_open_device in a process: asynchronous events of what is made through it,
  // and those of the port, come here; everything else is shared. Fails when the system has no file descriptor to give.
  [[nodiscard]] Result<std::unique_ptr<Device>> share() const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] ibv_device_attr query_device() const;
  // active_mtu: the largest the port's MTU can carry. State ACTIVE or DOWN, as the port knows it; a change is an event.
  [[nodiscard]] ibv_port_attr query_port() const;
  [[nodiscard]] Result<ibv_gid> query_gid(int index) const;
  [[nodiscard]] Result<uint16_t> query_pkey(int index) const;  // there is one: 0xffff, in host order
  [[nodiscard]] int gid_count() const;

  [[nodiscard]] Result<std::unique_ptr<ProtectionDomain>> allocate_pd();
  // `entries`: at least 1, at most max_cqe of query_device(). `context` comes back in the queue's events, which go to
  // `channel` when they are about completions.
  [[nodiscard]] Result<std::unique_ptr<CompletionQueue>> create_cq(int entries, void* context = nullptr,
                                                                   CompletionChannel* channel = nullptr,
                                                                   TimeStamps stamps = TimeStamps::kNone);
  // As ibv_open_xrcd without a file: nobody else has the domain.
  [[nodiscard]] Result<std::unique_ptr<XrcDomain>> open_xrc_domain();
  // Fails when the system has no file descriptor to give.
  [[nodiscard]] Result<std::unique_ptr<CompletionChannel>> create_channel();

  // As ibv_get_async_event without waiting: the oldest asynchronous event, none when none waits. At most 1024 wait;
  // one that waits already is not queued again, and one that finds the queue full is lost and counted (events_lost).
  // Those of an object disappear with it.
  std::optional<AsyncEvent> get_async_event();
  // Readable while events wait, for poll() and its kin; not to be read or closed. O_NONBLOCK on it is the caller's.
  [[nodiscard]] int async_fd() const;

  // Finds the MAC of a peer and waits for it up to `timeout`, driving the device meanwhile unless progress is
  // kExternal. Fails when nobody answers.
  [[nodiscard]] Status resolve(const ibv_gid& peer, std::chrono::nanoseconds timeout);

  // One round of the poll loop under Progress::kApplication; for applications that wait without polling a
  // completion queue. Returns whether anything was done.
  bool progress();
  // What the caller's runner polls under Progress::kExternal.
  [[nodiscard]] Poller& poller();
  // The same for one worker alone, for runners that give each a thread; `worker` is below DeviceConfig::workers.
  [[nodiscard]] Poller& poller(uint32_t worker);

  // Named counters with their values, in a fixed order: packets, retransmissions, NAKs, drops by reason.
  [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> counters() const;

  // What congestion control does with each flow that it has, by queue pair number.
  [[nodiscard]] std::vector<CongestionFlowReport> congestion_report() const;

  [[nodiscard]] Host& host() { return *host_; }  // the insides, for the layers of this project

 private:
  Device(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events);
  std::shared_ptr<Host> host_;
  std::shared_ptr<EventQueue> events_;  // of this user
};

// Memory and queue pairs that may be used together (IBTA 10.2.3).
class ProtectionDomain {
 public:
  ~ProtectionDomain();
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;
  // `access` is a set of ibv_access_flags; remote write needs local write (IBTA 11.2.8.2). The memory stays the
  // caller's and should outlive the region (DeviceConfig::guard_memory). It must be mapped, and writable for access other than
  // remote read: EFAULT otherwise, as from the Linux kernel; with IBV_ACCESS_ON_DEMAND it need not be yet, so all addresses
  // can be one region, from null on with a length of SIZE_MAX. Length 0 is allowed; address + length must not wrap.
  // Work requests name its bytes by address, or from 0 on with IBV_ACCESS_ZERO_BASED.
  [[nodiscard]] Result<std::unique_ptr<MemoryRegion>> register_memory(void* address, size_t length,
                                                                      int access);
  // The same, named from `iova` on (ibv_reg_mr_iova).
  [[nodiscard]] Result<std::unique_ptr<MemoryRegion>> register_memory(void* address, size_t length,
                                                                      uint64_t iova, int access);
  // As ibv_alloc_mw: a window that gives access to nothing until it is bound.
  [[nodiscard]] Result<std::unique_ptr<MemoryWindow>> allocate_window(ibv_mw_type type);
  // RC, UC, UD or XRC_SEND; capabilities come back in `init->cap` (at least what was asked). With a shared receive queue the
  // queue pair has none of its own, and init->cap.max_recv_* come back as 0; init->srq is not used and must be null.
  // XRC_SEND receives nothing: recv_cq is not used, and a shared receive queue not taken. XRC_RECV is made by an XrcDomain.
  [[nodiscard]] Result<std::unique_ptr<QueuePair>> create_qp(ibv_qp_init_attr* init, CompletionQueue& send_cq,
                                                             CompletionQueue& recv_cq,
                                                             SharedReceiveQueue* srq = nullptr);
  // What init->attr holds is what there is afterwards (max_sge at least 1). srq_limit is not looked at, as in
  // ibv_create_srq: an empty queue would be below any limit.
  [[nodiscard]] Result<std::unique_ptr<SharedReceiveQueue>> create_srq(ibv_srq_init_attr* init);
  // The same for the targets of an XRC domain, which messages name by its xrc_number(); what arrives completes in `cq`.
  [[nodiscard]] Result<std::unique_ptr<SharedReceiveQueue>> create_srq(ibv_srq_init_attr* init,
                                                                       XrcDomain& domain,
                                                                       CompletionQueue& cq);
  // Checks the address and does not wait for its MAC: the first datagram there starts the search and waits for it;
  // Device::resolve() does it beforehand. A group's GID is allowed.
  [[nodiscard]] Result<std::unique_ptr<AddressHandle>> create_address_handle(const ibv_ah_attr& attr);

 private:
  friend class Device;
  friend class MemoryRegion;
  ProtectionDomain(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events, uint32_t number);
  std::shared_ptr<Host> host_;
  std::shared_ptr<EventQueue> events_;  // of who made it
  uint32_t number_;
};

class QueuePair {
 public:
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  [[nodiscard]] uint32_t qp_num() const;
  [[nodiscard]] ibv_qp_state state() const;

  // As ibv_modify_qp: `mask` is a set of ibv_qp_attr_mask. The transition and its attributes are checked as IBTA
  // 11.2.5.2 says; nothing is changed on error. The move to RTR starts the search for the peer's MAC and does not
  // wait for it; Device::resolve() does. One that is reset and connected again to the same peer should begin with PSNs far
  // from those it had: packets of its former life that are still under way would pass for new ones, and a peer that has taken
  // such a packet acknowledges what was never sent, until the retries are spent (what TimeWait is for, IBTA 12.9).
  [[nodiscard]] Status modify(const ibv_qp_attr& attr, int mask);
  void query(ibv_qp_attr* attr, ibv_qp_init_attr* init) const;

  // Which congestion control it has: a profile of the device, an algorithm, "window" or "none". Once it is connected (from RTR on) its
  // algorithm begins anew with it. Fails, with everything as it was, on a name that there is not; on UD, which has none; where the
  // peer does not give what is needed and the profile has no fallback; and on one that was connected with "window" or "none".
  [[nodiscard]] Status set_congestion_control(const std::string& name);
  // The name of what it has.
  [[nodiscard]] std::string congestion_control() const;

  // As ibv_post_send and ibv_post_recv: 0, or an errno with *bad at the request that was not taken (those before it
  // were). Send opcodes: SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ,
  // ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD (of 8 aligned bytes), BIND_MW, LOCAL_INV; others EOPNOTSUPP. UC has no
  // READ, no atomics and no SEND_WITH_INV, UD only has SENDs, of one packet, XRC_RECV has nothing to post: EINVAL otherwise.
  // XRC_SEND has what RC has; each request names in qp_type.xrc.remote_srqn the peer's shared receive queue.
  [[nodiscard]] int post_send(ibv_send_wr* list, ibv_send_wr** bad);
  [[nodiscard]] int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad);
  // As post_send, but all of the list or nothing (ibv_wr_complete).
  [[nodiscard]] int post_send_all(ibv_send_wr* list);
  // Whether everything that it has to send at once has been handed to the port: requests as far as its window allows, and
  // answers. To be waited for, driving the device, before a queue pair is destroyed whose peer may still wait for an
  // acknowledgement.
  [[nodiscard]] bool settled() const;
  // As ibv_bind_mw, for windows of type 1: posts a bind, after which the window has its next key; 0 or an errno. A
  // length of 0 unbinds.
  [[nodiscard]] int bind_window(MemoryWindow& window, const ibv_mw_bind& bind);

  // As ibv_attach_mcast and ibv_detach_mcast, for UD: a copy of each datagram to the group comes here, also of those
  // that this host sends. The group's GID is an IPv6 one, or an IPv4 one in mapped form. ENOMEM when the device is in
  // 8192 groups, or the group has 240 members here. Who sends needs not be attached. Nothing tells the network: a
  // switch that filters multicast must be told by IGMP or MLD from outside.
  [[nodiscard]] Status attach_multicast(const ibv_gid& group);
  [[nodiscard]] Status detach_multicast(const ibv_gid& group);

 private:
  friend class ProtectionDomain;
  friend class XrcDomain;
  QueuePair(std::shared_ptr<Host> host, std::unique_ptr<AttachedQueuePair> attached,
            std::shared_ptr<CompletionRing> send_cq, std::shared_ptr<CompletionRing> recv_cq,
            std::shared_ptr<SharedReceiveRing> srq, std::shared_ptr<XrcDomainCore> domain = nullptr);
  template <class Change>
  [[nodiscard]] Status change_group(const ibv_gid& group, Change change);
  [[nodiscard]] Status modify_with_token(const ibv_qp_attr& attr, int mask);
  void meet_peer();
  [[nodiscard]] Status change_state(ibv_qp_state to, const ibv_qp_attr& attr, int mask);

  std::shared_ptr<Host> host_;
  std::shared_ptr<CompletionRing> send_cq_, recv_cq_;
  std::shared_ptr<SharedReceiveRing> srq_;
  std::shared_ptr<XrcDomainCore> xrc_domain_;  // of an XRC target
  std::unique_ptr<AttachedQueuePair> attached_;
  // For query(): as last set, and what the maker's ibv_qp_init_attr held.
  ibv_ah_attr path_{};
  ibv_mtu path_mtu_{};
  ibv_cq* verbs_send_cq_ = nullptr;
  ibv_cq* verbs_recv_cq_ = nullptr;
  const Profile* profile_ = nullptr;
};

}  // namespace roci
