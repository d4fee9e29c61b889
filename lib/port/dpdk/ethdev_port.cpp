#include "port/dpdk/ethdev_port.hpp"

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "base/log.hpp"
#include "port/dpdk/device_args.hpp"

namespace roci {
namespace {

constexpr uint16_t kMinMtu = RTE_ETHER_MIN_MTU;  // 68, RFC 791
// A frame with two tags must fit into the 16-bit lengths of an mbuf.
constexpr uint16_t kMaxMtu = UINT16_MAX - RTE_PKTMBUF_HEADROOM - 22;
constexpr size_t kMaxBurst = 128;

// Runs `work` on DPDK's interrupt thread and waits for it. The memif driver processes messages of its peer there,
// without a lock against a thread that stops the device: if both ends close at once, both threads free the same
// message. Alarms run on the interrupt thread, one after the other.
template <class Work>
void on_interrupt_thread(Work work) {
  struct Call {
    Work work;
    std::promise<void> done{};
  };
  const auto call = std::make_shared<Call>(Call{std::move(work)});
  const auto ring = [](void* passed) {
    // Keeps its own reference: the waiting thread may have returned before set_value() returns.
    const std::unique_ptr<std::shared_ptr<Call>> own_call(static_cast<std::shared_ptr<Call>*>(passed));
    (*own_call)->work();
    (*own_call)->done.set_value();
  };
  auto* reference = new std::shared_ptr<Call>(call);
  if (rte_eal_alarm_set(1, ring, reference) == 0) {
    MemifGate::instance().end_wait();
    call->done.get_future().wait();
  } else {
    delete reference;
    call->work();
  }
}

std::string reason(int code) {
  const std::string detail = last_dpdk_error();
  return detail.empty() ? rte_strerror(code) : detail;
}

// The largest MTU that the device allows. memif is exempt: it reports the classic Ethernet limit, but accepts frames of
// any length. af_packet is exempt: its limit follows from its options, which complete() has validated.
uint32_t largest_mtu(const std::string& driver, const rte_eth_dev_info& info) {
  if (driver == "net_memif" || driver == "net_af_packet") return kMaxMtu;
  uint32_t mtu = std::min<uint32_t>(info.max_mtu, kMaxMtu);
  if (info.max_rx_pktlen > 0 && info.max_rx_pktlen < UINT16_MAX && info.max_mtu == UINT16_MAX) {
    mtu = std::min<uint32_t>(mtu, info.max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
  }
  return mtu;
}

// Number of queue pairs of the device. Always 1 for memif: both ends must have the same number, but cannot negotiate
// it, and the driver (22.11) does not detect a mismatch.
uint16_t usable_queues(const EthdevConfig& config, const std::string& driver, const rte_eth_dev_info& info) {
  if (driver == "net_memif") return 1;
  if (driver == "net_af_packet") return info.max_rx_queues;  // the kernel distributes to all sockets
  return std::max<uint16_t>(1, std::min({config.queues, info.max_rx_queues, info.max_tx_queues}));
}

}  // namespace

class EthdevPort::Rings {
 public:
  static Result<std::shared_ptr<Rings>> create(const std::string& name, uint32_t size, uint16_t queues) {
    auto rings = std::make_shared<Rings>();
    for (unsigned i = 0; i < 2; ++i) {
      for (unsigned queue = 0; queue < queues; ++queue) {
        const std::string ring_name = name + (i == 0 ? "a" : "b") + std::to_string(queue);
        rte_ring* ring = rte_ring_create(ring_name.c_str(), size, SOCKET_ID_ANY,
                                         RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
        if (ring == nullptr) {
          return fail(
              "a ring of " + std::to_string(size) + " frames cannot be created: " + rte_strerror(rte_errno),
              rte_errno);
        }
        rings->rings_[i].push_back(ring);
      }
    }
    return rings;
  }
  Rings() = default;
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings() {
    for (const auto& direction : rings_) {
      for (rte_ring* ring : direction) {
        void* frame = nullptr;
        while (rte_ring_dequeue(ring, &frame) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
        rte_ring_free(ring);
      }
    }
  }
  // The rings from which port `i` of the pair receives, one per queue.
  rte_ring** operator[](size_t i) { return rings_[i].data(); }

 private:
  std::array<std::vector<rte_ring*>, 2> rings_;
};

EthdevPort::EthdevPort(std::string name, const EthdevConfig& config)
    : name_(std::move(name)),
      pool_(config.pool),
      connect_timeout_(config.connect_timeout),
      is_memif_client_(config.device.starts_with("net_memif") &&
                       config.device.find("role=server") == std::string::npos &&
                       config.device.find("role=master") == std::string::npos),
      pool_buffer_bytes_(
          static_cast<uint16_t>(rte_pktmbuf_data_room_size(config.pool->get()) - RTE_PKTMBUF_HEADROOM)) {}

uint16_t EthdevPort::data_room_for(const std::string& device, uint16_t mtu) {
  const uint32_t frame = uint32_t{mtu} + sizeof(EthernetHeader) + 2 * sizeof(VlanHeader);
  constexpr uint32_t kMinXdp = 2048;  // the kernel accepts no smaller chunks for XDP sockets
  uint32_t buffer_bytes = frame;
  if (device.starts_with("net_af_packet")) {
    buffer_bytes = af_packet_data_bytes(af_packet_frame_size(mtu));
  } else if (device.starts_with("net_af_xdp")) {
    buffer_bytes = std::max(frame, kMinXdp);
  }
  return static_cast<uint16_t>(std::min<uint32_t>(buffer_bytes, UINT16_MAX - RTE_PKTMBUF_HEADROOM));
}

Result<std::unique_ptr<EthdevPort>> EthdevPort::open(const EthdevConfig& config) {
  auto parsed = DeviceArgs::parse(config.device);
  if (!parsed) return fail(parsed.error());
  const std::string name = parsed->name;
  if (config.pool == nullptr) return fail(name + ": a packet pool is required");
  if (config.mtu < kMinMtu || config.mtu > kMaxMtu) {
    return fail(name + ": MTU " + std::to_string(config.mtu) + " is not supported; allowed are " +
                std::to_string(kMinMtu) + " to " + std::to_string(kMaxMtu) + " bytes");
  }
  // The kernel distributes packets to the sockets of a fan-out group; the driver creates one socket per queue pair.
  if (parsed->is_af_packet() && config.queues > 1 && !parsed->find("qpairs")) {
    parsed->add("qpairs", std::to_string(config.queues));
  }
  if (config.default_mac && name.starts_with("net_memif") && !parsed->find("mac")) {
    parsed->add("mac", config.default_mac->to_string());
  }
  auto args = complete(std::move(*parsed), config.mtu);
  if (!args) return fail(args.error());

  auto port = std::unique_ptr<EthdevPort>(new EthdevPort(name, config));
  clear_dpdk_error();
  uint16_t id = 0;
  const bool there = rte_eth_dev_get_port_by_name(name.c_str(), &id) == 0;
  if (there && !args->is_pci()) return fail("device " + name + " is already open; use another number", EBUSY);
  if (!there) {
    const int result = rte_dev_probe(args->to_string().c_str());
    if (result != 0 || rte_eth_dev_get_port_by_name(name.c_str(), &id) != 0) {
      return fail("device " + args->to_string() + " cannot be opened: " + reason(-result) +
                      (args->is_pci() ? " (PCI must be enabled and the device bound to a user-space driver)"
                                      : " (supported are DPDK's drivers, such as net_memif, net_af_packet, "
                                        "net_tap and net_null)"),
                  result == 0 ? ENODEV : -result);
    }
  }
  port->id_ = id;
  if (Status status = port->start(config); !status) return fail(status.error().within("device " + name));
  return port;
}

Status EthdevPort::start(const EthdevConfig& config) {
  ROCI_TRY(configure_queues(config));
  ROCI_TRY(set_mtu(config));
  ROCI_TRY(set_addresses(config));
  ROCI_TRY(start_device());
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP &&
      link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN) {
    capabilities_.link_rate = BitsPerSec{uint64_t{link.link_speed} * 1'000'000};
  }
  return {};
}

Status EthdevPort::start_device() {
  constexpr Nanos kStep = 20ms;
  for (Nanos waited{0};; waited += kStep) {
    clear_dpdk_error();
    const int result = rte_eth_dev_start(id_);
    if (result == 0) return {};
    // A memif client fails to start if its server does not listen yet, and the driver does not retry.
    if (!name_.starts_with("net_memif")) return fail("cannot be started: " + reason(-result), -result);
    if (waited >= connect_timeout_) {
      return fail("the memif server does not listen (" + reason(-result) +
                      "); start the process with role=server first",
                  ECONNREFUSED);
    }
    std::this_thread::sleep_for(kStep);
  }
}

Status EthdevPort::restart() {
  const auto stop = [id = id_] { rte_eth_dev_stop(id); };
  if (name_.starts_with("net_memif")) {
    on_interrupt_thread(stop);
  } else {
    stop();
  }
  if (Status status = start_device(); !status) return fail(status.error().within("device " + name_));
  return {};
}

Status EthdevPort::configure_queues(const EthdevConfig& config) {
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(id_, &info); result != 0) {
    return fail("the driver does not report its capabilities: " + reason(-result), -result);
  }
  const std::string driver = info.driver_name;
  if (const uint32_t largest = largest_mtu(driver, info); config.mtu > largest) {
    return fail("MTU " + std::to_string(config.mtu) + " is not supported; allowed are " +
                std::to_string(kMinMtu) + " to " + std::to_string(largest) + " bytes");
  }
  rte_eth_conf conf{};
  const uint32_t buffer_bytes = pool_buffer_bytes_;
  const uint32_t needed = data_room_for(config.device, config.mtu);
  if (buffer_bytes < needed) {
    if ((info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) != 0) {
      conf.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
    } else if (driver != "net_memif") {
      return fail("MTU " + std::to_string(config.mtu) + " requires packet buffers of " +
                  std::to_string(needed) + " bytes, and the pool's buffers have " +
                  std::to_string(buffer_bytes) + " bytes; increase them or reduce the MTU");
    }
    capabilities_.rx_multi_segment = true;
    log().info("{}: frames longer than a buffer ({} bytes) arrive in several segments", name_, buffer_bytes);
  }
  if (driver == "net_ring") capabilities_.rx_multi_segment = true;  // chains of the peer port
  if ((info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0) {
    conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    capabilities_.tx_multi_segment = true;
  } else {
    log().info("{}: multi-segment transmission is not supported; frames are copied into one segment", name_);
  }
  const uint16_t queues = usable_queues(config, driver, info);
  if (queues < config.queues) {
    log().info("{}: provides {} of {} requested queues", name_, queues, config.queues);
  }
  if (queues > 1) {
    conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
    if (conf.rx_adv_conf.rss_conf.rss_hf != 0) {
      conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    } else {
      log().info("{}: the driver does not report how packets are distributed over its {} queues", name_,
                 queues);
    }
  }
  if (const int result = rte_eth_dev_configure(id_, queues, queues, &conf); result != 0) {
    return fail("cannot be configured: " + reason(-result), -result);
  }
  for (uint16_t i = 0; i < queues; ++i) queues_.push_back(std::make_unique<Queue>(*this, i));
  if (driver == "net_memif") {
    // A server answers new clients, so its interrupt thread runs more often.
    const Nanos max_delay = is_memif_client_ ? Nanos{20ms} : Nanos{5ms};
    for (const auto& queue : queues_) {
      queue->gate_user_ = std::make_unique<MemifGate::QueueUser>();
      MemifGate::instance().add(*queue->gate_user_, max_delay);
    }
  }
  return set_up_queues(config);
}

Status EthdevPort::set_up_queues(const EthdevConfig& config) {
  uint16_t rx_descriptors = config.rx_descriptors;
  uint16_t tx_descriptors = config.tx_descriptors;
  rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_descriptors, &tx_descriptors);
  if (rx_descriptors != config.rx_descriptors || tx_descriptors != config.tx_descriptors) {
    log().info("{}: uses {} RX and {} TX descriptors instead of {} and {}", name_, rx_descriptors,
               tx_descriptors, config.rx_descriptors, config.tx_descriptors);
  }
  const unsigned socket = static_cast<unsigned>(rte_eth_dev_socket_id(id_));
  for (uint16_t i = 0; i < queues(); ++i) {
    int result = rte_eth_rx_queue_setup(id_, i, rx_descriptors, socket, nullptr, config.pool->get());
    if (result != 0) {
      return fail("receive queue " + std::to_string(i) + " cannot be set up: " + reason(-result), -result);
    }
    result = rte_eth_tx_queue_setup(id_, i, tx_descriptors, socket, nullptr);
    if (result != 0) {
      return fail("send queue " + std::to_string(i) + " cannot be set up: " + reason(-result), -result);
    }
  }
  return {};
}

Status EthdevPort::set_mtu(const EthdevConfig& config) {
  capabilities_.mtu = config.mtu;
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(id_, &info); result != 0) {
    return fail("the driver does not report its capabilities: " + reason(-result), -result);
  }
  const std::string_view driver = info.driver_name;
  // af_packet would change the MTU of the kernel's interface, which only the administrator may do.
  if (driver == "net_af_packet" || driver == "net_memif") return {};
  const int result = rte_eth_dev_set_mtu(id_, config.mtu);
  if (result == -ENOTSUP) {
    log().info("{}: setting the MTU is not supported; longer frames are dropped in software", name_);
    return {};
  }
  if (result != 0) {
    return fail("MTU " + std::to_string(config.mtu) + " is not supported: " + reason(-result) +
                    "; allowed are " + std::to_string(info.min_mtu) + " to " +
                    std::to_string(largest_mtu(std::string(driver), info)) + " bytes",
                -result);
  }
  return {};
}

Status EthdevPort::set_addresses(const EthdevConfig& config) {
  rte_ether_addr address{};
  if (const int result = rte_eth_macaddr_get(id_, &address); result != 0) {
    return fail("the driver does not report its MAC address: " + reason(-result), -result);
  }
  std::copy_n(address.addr_bytes, mac_.bytes.size(), mac_.bytes.begin());
  bool promiscuous = config.promiscuous;
  if (config.mac || mac_.is_zero()) {
    static std::atomic<uint64_t> serial{1};
    mac_ = config.mac.value_or(MacAddress::local(serial++));
    std::copy_n(mac_.bytes.begin(), mac_.bytes.size(), address.addr_bytes);
    if (rte_eth_dev_default_mac_addr_set(id_, &address) != 0) {
      log().info("{}: the address {} cannot be set in hardware; promiscuous mode is enabled", name_,
                 mac_.to_string());
      promiscuous = true;
    }
  }
  if (promiscuous && rte_eth_promiscuous_enable(id_) != 0) {
    log().info("{}: promiscuous mode is not supported; only frames that the driver delivers are received",
               name_);
  }
  // Neighbor solicitations are multicast.
  if (!promiscuous && rte_eth_allmulticast_enable(id_) != 0) {
    log().info("{}: all-multicast mode is not supported; only frames that the driver delivers are received",
               name_);
  }
  return {};
}

EthdevPort::~EthdevPort() {
  for (const auto& queue : queues_) {
    if (queue->gate_user_ != nullptr) MemifGate::instance().remove(*queue->gate_user_);
  }
  if (id_ == RTE_MAX_ETHPORTS) return;
  rte_eth_dev_info info{};
  const bool known = rte_eth_dev_info_get(id_, &info) == 0;
  const auto close = [id = id_] {
    rte_eth_dev_stop(id);
    rte_eth_dev_close(id);
  };
  if (name_.starts_with("net_memif")) {
    on_interrupt_thread(close);
  } else {
    close();
  }
  if (known && info.device != nullptr && rte_dev_remove(info.device) != 0) {
    log().info("{}: cannot be removed: {}", name_, last_dpdk_error());
  }
}

PortStats EthdevPort::stats() const {
  PortStats sum;
  for (const auto& queue : queues_) sum.add(queue->stats());
  return sum;
}

uint16_t EthdevPort::Queue::receive_from_device(rte_mbuf** out, uint16_t capacity) {
  if (gate_user_ == nullptr) return rte_eth_rx_burst(port_.id_, index_, out, capacity);
  if (!gate_user_->enter()) return 0;
  const uint16_t received = rte_eth_rx_burst(port_.id_, index_, out, capacity);
  gate_user_->leave();
  return received;
}

uint16_t EthdevPort::Queue::send_by_device(rte_mbuf** frames, uint16_t count) {
  if (gate_user_ == nullptr) return rte_eth_tx_burst(port_.id_, index_, frames, count);
  if (!gate_user_->enter()) return 0;
  const uint16_t accepted = rte_eth_tx_burst(port_.id_, index_, frames, count);
  gate_user_->leave();
  return accepted;
}

uint16_t EthdevPort::Queue::rx_burst(std::span<rte_mbuf*> out, Nanos) {
  const auto capacity = static_cast<uint16_t>(std::min<size_t>(out.size(), UINT16_MAX));
  const uint16_t received = receive_from_device(out.data(), capacity);
  uint16_t kept = 0;
  uint64_t bytes = 0;
  for (uint16_t i = 0; i < received; ++i) {
    if (exceeds_mtu(*out[i], port_.capabilities_.mtu)) [[unlikely]] {
      rte_pktmbuf_free(out[i]);
      continue;
    }
    bytes += out[i]->pkt_len;
    out[kept++] = out[i];
  }
  if (received == 0) return 0;
  bump(stats_.rx_packets, kept);
  bump(stats_.rx_bytes, bytes);
  if (kept != received) bump(stats_.rx_dropped, uint64_t{received} - kept);
  return kept;
}

// The memif, af_packet, tap and ring drivers do not support it.
std::optional<uint32_t> EthdevPort::Queue::waiting() const {
  const int frames = rte_eth_rx_queue_count(port_.id_, index_);
  return frames < 0 ? std::nullopt : std::optional(static_cast<uint32_t>(frames));
}

uint16_t EthdevPort::Queue::tx_burst(std::span<rte_mbuf*> frames, Nanos) {
  uint16_t done = 0;
  while (done < frames.size()) {
    const auto batch = frames.subspan(done, std::min<size_t>(frames.size() - done, kMaxBurst));
    bool plain = true;
    uint64_t bytes = 0;
    for (const rte_mbuf* frame : batch) {
      plain = plain && !port_.is_unsendable(*frame) && !port_.needs_copy(*frame);
      bytes += frame->pkt_len;
    }
    const uint16_t accepted = plain ? send(batch, bytes) : tx_checked(batch);
    done = static_cast<uint16_t>(done + accepted);
    if (accepted < batch.size()) break;
  }
  if (done < frames.size()) bump(stats_.tx_refused, frames.size() - done);
  return done;
}

bool EthdevPort::needs_copy(const rte_mbuf& frame) const {
  return frame.nb_segs > 1 && !capabilities_.tx_multi_segment;
}

bool EthdevPort::is_unsendable(const rte_mbuf& frame) const {
  return exceeds_mtu(frame, capabilities_.mtu) || (needs_copy(frame) && frame.pkt_len > pool_buffer_bytes_);
}

// Passes sendable frames, with `bytes` in total, to the device.
uint16_t EthdevPort::Queue::send(std::span<rte_mbuf*> frames, uint64_t bytes) {
  const uint16_t accepted = send_by_device(frames.data(), static_cast<uint16_t>(frames.size()));
  for (const rte_mbuf* refused : frames.subspan(accepted)) bytes -= refused->pkt_len;
  bump(stats_.tx_packets, accepted);
  bump(stats_.tx_bytes, bytes);
  return accepted;
}

// The same for a batch with frames to drop or to copy. A frame is dropped only after all frames before it were
// accepted, and a chain is freed only after its copy was accepted. Refused frames are therefore unchanged.
uint16_t EthdevPort::Queue::tx_checked(std::span<rte_mbuf*> frames) {
  rte_mbuf* staged[kMaxBurst];
  uint16_t origin[kMaxBurst];
  size_t count = 0;
  uint64_t bytes = 0;
  auto end = static_cast<uint16_t>(frames.size());
  for (uint16_t i = 0; i < end; ++i) {
    if (port_.is_unsendable(*frames[i])) continue;
    rte_mbuf* frame = port_.needs_copy(*frames[i]) ? port_.copy_to_one_segment(frames[i]) : frames[i];
    if (frame == nullptr) {
      end = i;  // no free buffer: refused, the caller may offer it again
      break;
    }
    bytes += frame->pkt_len;
    staged[count] = frame;
    origin[count++] = i;
  }
  const size_t accepted = count == 0 ? 0 : send({staged, count}, bytes);
  const uint16_t done = accepted == count ? end : origin[accepted];
  for (size_t s = 0; s < count; ++s) {
    rte_mbuf* original = frames[origin[s]];
    if (staged[s] != original) rte_pktmbuf_free(s < accepted ? original : staged[s]);
  }
  for (uint16_t i = 0; i < done; ++i) {
    if (std::find(origin, origin + count, i) != origin + count) continue;
    rte_pktmbuf_free(frames[i]);
    bump(stats_.tx_dropped);
  }
  return done;
}

rte_mbuf* EthdevPort::copy_to_one_segment(rte_mbuf* chain) const {
  rte_mbuf* copy = rte_pktmbuf_alloc(pool_->get());
  if (copy == nullptr) return nullptr;
  char* where = rte_pktmbuf_append(copy, static_cast<uint16_t>(chain->pkt_len));  // fits: see is_unsendable()
  for (const rte_mbuf* segment = chain; segment != nullptr; segment = segment->next) {
    std::copy_n(rte_pktmbuf_mtod(segment, const char*), segment->data_len, where);
    where += segment->data_len;
  }
  return copy;
}

bool EthdevPort::link_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

Status EthdevPort::wait_for_link(Nanos timeout) {
  constexpr Nanos kStep = 5ms;
  // The server rejects a memif client that connects while the server is being set up or has not yet noticed the exit of
  // its previous client, and the driver does not retry. A server may be slow, so the time between attempts doubles.
  Nanos max_delay = 200ms;
  Nanos call_again = max_delay;
  for (Nanos waited{0}; !link_up(); waited += kStep) {
    if (is_memif_client_ && waited >= call_again) {
      ROCI_TRY(restart());
      max_delay *= 2;
      call_again = waited + max_delay;
    }
    if (waited >= timeout) {
      return fail("device " + name_ + " has no link after " +
                      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()) +
                      " ms; check that the peer is up",
                  ETIMEDOUT);
    }
    std::this_thread::sleep_for(kStep);
  }
  return {};
}

uint64_t EthdevPort::device_rx_missed() const {
  rte_eth_stats counters{};
  if (rte_eth_stats_get(id_, &counters) != 0) return 0;
  return counters.imissed + counters.ierrors + counters.rx_nombuf;
}

Result<EthdevPortPair> make_ring_pair(const std::string& name, const std::shared_ptr<MbufPool>& pool,
                                      uint16_t mtu, uint32_t ring_size, uint16_t queues) {
  static std::atomic<uint32_t> serial{0};
  if (pool == nullptr) return fail("ring pair " + name + ": a packet pool is required");
  const std::string unique = "roci" + std::to_string(serial++);
  auto rings = EthdevPort::Rings::create(unique, ring_size, queues);
  if (!rings) return fail(rings.error().within("ring pair " + name));
  EthdevPortPair pair;
  for (unsigned side = 0; side < 2; ++side) {
    const std::string device = unique + (side == 0 ? "a" : "b");
    EthdevConfig config;
    config.device = "net_ring_" + device;
    config.mtu = mtu;
    config.queues = queues;
    config.pool = pool;
    auto port = std::unique_ptr<EthdevPort>(new EthdevPort(name + (side == 0 ? ".a" : ".b"), config));
    port->rings_ = *rings;
    clear_dpdk_error();
    const int id =
        rte_eth_from_rings(device.c_str(), (**rings)[side], queues, (**rings)[1 - side], queues, 0);
    if (id < 0) return fail("ring pair " + name + " cannot be created: " + reason(rte_errno), rte_errno);
    port->id_ = static_cast<uint16_t>(id);
    if (Status status = port->start(config); !status) return fail(status.error().within("ring pair " + name));
    (side == 0 ? pair.first : pair.second) = std::move(port);
  }
  return pair;
}

}  // namespace roci
