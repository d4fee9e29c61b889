// C++ API of Rocinante: an RDMA device on a DPDK port. Names, value types and return codes are those of rdma-core's
// verbs (`ibv_*`). Objects are C++ objects that release their resources in the destructor.
//
// Threads: every call may come from any thread, also concurrently on one object, except that
// - an object must not be destroyed during another call on it,
// - MemoryRegion::reregister() must not overlap with other calls on the region,
// - QueuePair::bind_window() must not overlap with other calls on the window.
// Objects may be destroyed in any order: each object keeps the objects that it requires alive, and the port is closed
// with the last one.
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
#include "roci/flow_rule.hpp"
#include "roci/flush.hpp"
#include "roci/memory.hpp"
#include "roci/poller.hpp"
#include "roci/port.hpp"
#include "roci/progress.hpp"
#include "roci/result.hpp"
#include "roci/shared_receive_queue.hpp"
#include "roci/telemetry_config.hpp"
#include "roci/xrc_domain.hpp"

namespace roci {

class CompletionRing;
class EventQueue;
class Host;
struct AttachedQueuePair;
struct XrcDomainCore;
struct Profile;

struct DeviceConfig {
  std::string name = "roci0";
  // IP addresses of the port with prefix length ("10.0.0.1/24", "fd00::1/64"). GID 0 is the link-local address derived
  // from the MAC; the addresses follow in this order, from GID 1.
  std::vector<std::string> addresses;
  std::vector<std::string> gateways;             // default gateways, at most one per IP version
  std::map<std::string, std::string> neighbors;  // static entries, IP to MAC
  uint16_t vlan = 0;                             // 1 to 4094; 0: untagged
  uint8_t priority = 0;                          // PCP of the VLAN tag, 0 to 7
  Progress progress = Progress::kApplication;
  // kDedicated: idle policy of its threads. kApplication: idle policy of the helper thread. With kSleep the helper
  // polls as long as there is work, then sleeps for `takeover`; it runs with the highest priority that the system
  // permits. This is for programs on few cores.
  IdlePolicy idle = IdlePolicy::kYield;
  // kApplication: time without a poll of the application after which the helper thread polls; nanoseconds::max():
  // never. With one worker on a shared-memory port the helper sleeps until a frame arrives; `takeover` and `idle` are
  // then not used.
  std::chrono::nanoseconds takeover = std::chrono::microseconds{500};
  // Number of poll loops, 1 to 16, each with its own queue pairs. The port should have as many queues; a worker without
  // a queue sends and receives through other workers.
  uint32_t workers = 1;
  // Only kDedicated, which has a thread per worker. `cpu`: core of the first thread, the others use the next cores; -1:
  // chosen by the system. `cpus`: the core of each thread.
  int cpu = -1;
  std::vector<int> cpus;
  // Frames in the device's own buffer pool; at least 1024 per worker if there are several.
  uint32_t tx_buffers = 4096;
  uint32_t window_bytes = 512 * 1024;  // unacknowledged request bytes of a queue pair
  // Maximum number of request packets, received together, that one acknowledgment covers; 1 to 1024 (m of LDCP).
  uint32_t packets_per_ack = 64;
  // Packets that a queue pair sends before the next one has its turn, 1 to 64; also the maximum number of packets that
  // wait for a full port. A small number shortens the wait of small messages for large ones, as in NICs with a
  // scheduler, and costs more work per packet. 0: 16 to 64, more with few queue pairs: least work per packet.
  uint32_t packets_per_turn = 0;
  // true: the ICRC of each packet is verified before any of its bytes are written to memory. false: payload within a
  // large message is written while the ICRC is computed, if that is faster. A packet with a wrong ICRC is still dropped
  // and retransmitted, but until then its bytes are in memory; they stay there if the message fails.
  bool check_before_placing = false;
  // true: if registered memory is later unmapped, protected or truncated with its file, the request that accesses it
  // fails as with a wrong key, and the program continues. The first device with this setting installs a process-wide
  // handler of SIGSEGV and SIGBUS (docs/robustness.md), which then applies to all devices.
  bool guard_memory = true;
  // For simulations: RC packets have real headers and lengths, but no payload. Nothing is copied, no ICRC is computed
  // or verified, and the content of memory regions does not change. Must be set on both peers; otherwise received data
  // is undefined.
  bool header_only = false;
  // Maximum numbers of objects, as query_device() reports them; creation beyond them fails with ENOMEM. At most 2^23
  // each.
  uint32_t max_qp = 1U << 18;
  uint32_t max_mr = 1U << 20;  // memory regions and windows together
  uint32_t max_pd = 1U << 16;
  uint32_t max_cq = 1U << 18;
  uint32_t max_srq = 1U << 18;
  uint32_t max_ah = 1U << 20;
  ExtensionConfig extensions;
  HostTelemetryConfig telemetry;
  FlowControlConfig flow_control;
  CongestionConfig congestion;
  CongestionControlConfig congestion_control;
  // Seed of QPNs, keys and PSNs, for replays; 0: they come from the operating system's random number generator.
  uint64_t seed = 0;
};

class Device;
class ProtectionDomain;
class QueuePair;

// Device: a port, its addresses and all objects created on it.
class Device {
 public:
  // Creates a device on a port of the program. Starts DPDK with the defaults of a configuration file if neither the
  // program nor an earlier device has started it; open_device() with other `eal` settings must therefore come first.
  // Fails on an invalid value, on a port whose MTU is not 576 to 65,385, if the buffers cannot be allocated, and with
  // EOPNOTSUPP in the portable build, whose DPDK cannot share packet buffers with the program. open_device()
  // (roci/open.hpp) creates devices on DPDK's ports and on those of registered factories.
  [[nodiscard]] static Result<std::unique_ptr<Device>> create(std::unique_ptr<ExternalPort> port,
                                                              const DeviceConfig& config);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Another handle of the same device, as a second ibv_open_device in a process. Asynchronous events of objects created
  // through it, and those of the port, are delivered to it; everything else is shared. Fails if no file descriptor is
  // available.
  [[nodiscard]] Result<std::unique_ptr<Device>> share() const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] ibv_device_attr query_device() const;
  // active_mtu: the largest path MTU that fits the port's MTU. State ACTIVE or DOWN as reported by the port; a change
  // raises an event.
  [[nodiscard]] ibv_port_attr query_port() const;
  [[nodiscard]] Result<ibv_gid> query_gid(int index) const;
  [[nodiscard]] Result<uint16_t> query_pkey(int index) const;  // the only one is 0xffff, in host order
  [[nodiscard]] int gid_count() const;

  [[nodiscard]] Result<std::unique_ptr<ProtectionDomain>> allocate_pd();
  // `entries`: 1 to max_cqe of query_device(). `context` is returned in the queue's events; completion events go to
  // `channel`.
  [[nodiscard]] Result<std::unique_ptr<CompletionQueue>> create_cq(int entries, void* context = nullptr,
                                                                   CompletionChannel* channel = nullptr,
                                                                   TimeStamps stamps = TimeStamps::kNone);
  // As ibv_open_xrcd without a file: the domain is not shared with other processes.
  [[nodiscard]] Result<std::unique_ptr<XrcDomain>> open_xrc_domain();
  // Fails if no file descriptor is available.
  [[nodiscard]] Result<std::unique_ptr<CompletionChannel>> create_channel();

  // As ibv_get_async_event without blocking: returns the oldest asynchronous event, or nullopt. At most 1024 are
  // queued. An event that is already queued is not queued again; one that finds the queue full is dropped and counted
  // (events_lost). Destruction of an object removes its events.
  [[nodiscard]] std::optional<AsyncEvent> get_async_event();
  // Readable while events are pending, for poll() etc.; the caller must not read or close it, and may set O_NONBLOCK.
  [[nodiscard]] int async_fd() const;

  // Resolves the MAC address of a peer and waits for it up to `timeout`; polls the device meanwhile under
  // Progress::kApplication. ENETUNREACH: the peer is in no subnet of the device and behind no gateway. At the end of
  // `timeout`, ETIMEDOUT while requests are being sent, EHOSTUNREACH if they remained unanswered for 3 s; they are sent
  // again 5 s later. Under Progress::kExternal the call does not wait: EAGAIN while requests are being sent; poll the
  // device and call again.
  [[nodiscard]] Status resolve(const ibv_gid& peer, std::chrono::nanoseconds timeout);

  // Runs one round of the poll loop under Progress::kApplication, for applications that wait without polling a
  // completion queue. Returns whether there was work.
  bool progress();
  // Poller of the device, for the caller's runner under Progress::kExternal.
  [[nodiscard]] Poller& poller();
  // Poller of one worker, for runners with a thread per worker; `worker` is below DeviceConfig::workers.
  [[nodiscard]] Poller& poller(uint32_t worker);

  // Counters with their names, in a fixed order: packets, retransmissions, NAKs, drops by reason.
  [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> counters() const;

  // Congestion control state of each flow, ordered by queue pair number.
  [[nodiscard]] std::vector<CongestionFlowReport> congestion_report() const;

  [[nodiscard]] Host& host() { return *host_; }                                  // internal
  [[nodiscard]] const std::shared_ptr<EventQueue>& events() { return events_; }  // internal

 private:
  friend struct DeviceCreation;
  Device(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events);
  std::shared_ptr<Host> host_;
  std::shared_ptr<EventQueue> events_;  // of this handle
};

// Protection domain: memory and queue pairs that may be used together (IBTA 10.2.3).
class ProtectionDomain {
 public:
  ~ProtectionDomain();
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;
  // Registers memory of the caller, which should remain mapped as long as the region exists
  // (DeviceConfig::guard_memory). `access` is a set of ibv_access_flags; remote write requires local write (IBTA
  // 11.2.8.2).
  // The memory must be mapped, and writable for local write, remote write, remote atomics and window bind; else EFAULT,
  // as in the Linux kernel.
  // With IBV_ACCESS_ON_DEMAND it need not be mapped yet. One region can then contain all addresses, from null with a
  // length of SIZE_MAX.
  // Length 0 is allowed; address + length must not wrap. Work requests address its bytes by virtual address, or from 0
  // with IBV_ACCESS_ZERO_BASED.
  [[nodiscard]] Result<std::unique_ptr<MemoryRegion>> register_memory(void* address, size_t length,
                                                                      int access);
  // The same, with addresses from `iova` in work requests (ibv_reg_mr_iova).
  [[nodiscard]] Result<std::unique_ptr<MemoryRegion>> register_memory(void* address, size_t length,
                                                                      uint64_t iova, int access);
  // As ibv_alloc_null_mr: a region without memory, whose L_Key is valid in scatter lists for any address. Reads return
  // zeros, and writes are discarded. It has no R_Key, and cannot be re-registered.
  [[nodiscard]] Result<std::unique_ptr<MemoryRegion>> allocate_null_region();
  // As ibv_alloc_mw: a window that permits no access until it is bound.
  [[nodiscard]] Result<std::unique_ptr<MemoryWindow>> allocate_window(ibv_mw_type type);
  // Creates a queue pair of type RC, UC, UD, RAW_PACKET or XRC_SEND. `init->cap` is set to the actual capabilities, at
  // least those requested. With a shared receive queue init->cap.max_recv_* are set to 0; init->srq is not used and must be null.
  // XRC_SEND does not receive: recv_cq is not used, and a shared receive queue is rejected. XRC_RECV is created by
  // XrcDomain.
  [[nodiscard]] Result<std::unique_ptr<QueuePair>> create_qp(ibv_qp_init_attr* init, CompletionQueue& send_cq,
                                                             CompletionQueue& recv_cq,
                                                             SharedReceiveQueue* srq = nullptr);
  // init->attr is set to the actual attributes (max_sge at least 1). As in ibv_create_srq, srq_limit is ignored,
  // because an empty queue is below any limit.
  [[nodiscard]] Result<std::unique_ptr<SharedReceiveQueue>> create_srq(ibv_srq_init_attr* init);
  // The same for the targets of an XRC domain; messages contain its xrc_number(). Its completions go to `cq`.
  [[nodiscard]] Result<std::unique_ptr<SharedReceiveQueue>> create_srq(ibv_srq_init_attr* init,
                                                                       XrcDomain& domain,
                                                                       CompletionQueue& cq);
  // Validates the address and does not wait for its MAC: the first datagram starts the resolution and waits for it;
  // Device::resolve() does it beforehand. The GID of a multicast group is allowed.
  [[nodiscard]] Result<std::unique_ptr<AddressHandle>> create_address_handle(const ibv_ah_attr& attr);

 private:
  friend class Device;
  friend class MemoryRegion;
  ProtectionDomain(std::shared_ptr<Host> host, std::shared_ptr<EventQueue> events, uint32_t number);
  std::shared_ptr<Host> host_;
  std::shared_ptr<EventQueue> events_;  // of the Device that created the domain
  uint32_t number_;
};

class QueuePair {
 public:
  // Removes the completions of this queue pair that were not polled from its completion queues, as the transition to
  // RESET does (IBTA 11.2.5.4).
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  [[nodiscard]] uint32_t qp_num() const;
  [[nodiscard]] ibv_qp_state state() const;

  // As ibv_modify_qp: `mask` is a set of ibv_qp_attr_mask. The transition and its attributes are validated according to
  // IBTA 11.2.5.2; on error nothing changes. Exception: without memory for congestion control (ENOMEM), the transition
  // to RTR moves the queue pair to the error state. The transition to RTR starts the resolution of the peer's MAC and
  // does not wait for it; Device::resolve() does.
  // A queue pair that is reset and connected to the same peer again should start with PSNs far from the previous ones.
  // Otherwise packets of the previous connection that are still in flight are accepted as new ones. The peer then
  // acknowledges packets that were never sent, until the retries are exhausted (purpose of TimeWait, IBTA 12.9).
  [[nodiscard]] Status modify(const ibv_qp_attr& attr, int mask);
  void query(ibv_qp_attr* attr, ibv_qp_init_attr* init) const;

  // Selects the congestion control: a profile of the device, an algorithm, "window" or "none". On a connected queue
  // pair (from RTR) the algorithm restarts. Fails, without a change, on an unknown name, on UD, and if the peer does
  // not meet the requirements and the profile has no fallback. Also fails if it selects an algorithm for a queue pair
  // that was connected with "window" or "none".
  [[nodiscard]] Status set_congestion_control(const std::string& name);
  // Name of the selected congestion control.
  [[nodiscard]] std::string congestion_control() const;

  // As ibv_post_send and ibv_post_recv: 0, or an errno with *bad at the first request not accepted; those before it
  // were accepted. Send opcodes: SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ,
  // ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD and ATOMIC_WRITE (of 8 aligned bytes), FLUSH (roci/flush.hpp), BIND_MW,
  // LOCAL_INV; others: EOPNOTSUPP. Requests that the type does not have complete with IBV_WC_LOC_QP_OP_ERR: UC has no
  // READ, atomics, FLUSH and SEND_WITH_INV; UD has only SENDs, RAW_PACKET only SEND. UD and RAW_PACKET: EINVAL for
  // BIND_MW and LOCAL_INV. XRC_RECV has no send queue (EINVAL). XRC_SEND has the opcodes of RC except ATOMIC_WRITE and
  // FLUSH; qp_type.xrc.remote_srqn specifies the peer's shared receive queue. Atomics of another length than 8 bytes,
  // datagrams longer than a packet, and raw frames of less than 14 bytes or more than the port's MTU and 18 bytes,
  // complete with IBV_WC_LOC_LEN_ERR.
  [[nodiscard]] int post_send(ibv_send_wr* list, ibv_send_wr** bad);
  [[nodiscard]] int post_recv(ibv_recv_wr* list, ibv_recv_wr** bad);
  // As post_send, but posts the whole list or nothing (ibv_wr_complete).
  [[nodiscard]] int post_send_all(ibv_send_wr* list);
  // Whether all packets that may be sent now have been passed to the port: requests as far as the window allows, and
  // responses. If the peer may still wait for an acknowledgment, poll the device until this is true before destroying
  // the queue pair.
  [[nodiscard]] bool settled() const;
  // As ibv_bind_mw, for windows of type 1: posts a bind, which gives the window its next key; 0 or an errno. Length 0
  // unbinds.
  [[nodiscard]] int bind_window(MemoryWindow& window, const ibv_mw_bind& bind);

  // As ibv_attach_mcast and ibv_detach_mcast, for UD: the queue pair receives a copy of each datagram to the group,
  // including those of this host. The GID is an IPv6 address or a mapped IPv4 address. A sender need not be attached.
  // ENOMEM if the device is in 8192 groups, or the group has 240 members on this device.
  // Not implemented: IGMP and MLD. A switch that filters multicast must be configured separately.
  [[nodiscard]] Status attach_multicast(const ibv_gid& group);
  [[nodiscard]] Status detach_multicast(const ibv_gid& group);
  // As ibv_create_flow, for RAW_PACKET: the queue pair receives the frames that match all specifications of the rule:
  // ETH (the EtherType is that after the VLAN tags, vlan_tag that of the outermost one), IPV4, IPV4_EXT, IPV6, TCP, UDP.
  // The specifications follow `attr` in memory. ACTION_DROP: such frames are dropped. The matching rule with the lowest
  // priority value receives a frame, and so do rules of that priority with the same fields; ALL_DEFAULT and MC_DEFAULT
  // are last. With DONT_TRAP the next rules are compared too.
  // Frames for the device's own protocols never match: RoCEv2, ARP, ND, ICMP echo, PFC, telemetry, CNMs. A SNIFFER
  // receives a copy of every received frame, not of sent ones, and requires a device with one worker.
  // Frames with a multicast destination that this device sends raw are compared too. Whether frames to other
  // destination addresses than the device's arrive depends on the port and on the switch.
  // ENOMEM if the device has 256 rules. With `rss` its queue pairs receive the frames instead of this one; not for a
  // SNIFFER.
  [[nodiscard]] Result<std::unique_ptr<FlowRule>> create_flow(const ibv_flow_attr& attr,
                                                              const RssTable* rss = nullptr);

 private:
  friend class ProtectionDomain;
  friend class XrcDomain;
  QueuePair(std::shared_ptr<Host> host, std::unique_ptr<AttachedQueuePair> attached,
            std::shared_ptr<CompletionRing> send_cq, std::shared_ptr<CompletionRing> recv_cq,
            std::shared_ptr<SharedReceiveRing> srq, std::shared_ptr<XrcDomainCore> domain = nullptr);
  template <class Change>
  [[nodiscard]] Status change_group(const ibv_gid& group, Change change);
  [[nodiscard]] Status modify_with_token(const ibv_qp_attr& attr, int mask);
  void negotiate_with_peer();
  [[nodiscard]] Status change_state(ibv_qp_state to, const ibv_qp_attr& attr, int mask);

  std::shared_ptr<Host> host_;
  std::shared_ptr<CompletionRing> send_cq_, recv_cq_;
  std::shared_ptr<SharedReceiveRing> srq_;
  std::shared_ptr<XrcDomainCore> xrc_domain_;  // of an XRC target
  std::unique_ptr<AttachedQueuePair> attached_;
  // For query(): the values last set, and the queues of the ibv_qp_init_attr at creation.
  ibv_ah_attr path_{};
  ibv_mtu path_mtu_{};
  ibv_cq* verbs_send_cq_ = nullptr;
  ibv_cq* verbs_recv_cq_ = nullptr;
  const Profile* profile_ = nullptr;
};

}  // namespace roci
