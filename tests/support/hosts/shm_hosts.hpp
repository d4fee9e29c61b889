// Hosts on shared-memory ports of one segment (port/shm/shm_port.hpp), in virtual time. Each represents a process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/api/create_device.hpp"
#include "port/shm/shm_port.hpp"
#include "port/sim/borrowed_port.hpp"
#include "support/hosts/two_hosts.hpp"
#include "support/must.hpp"

namespace roci::test {

struct ShmPortOfHost {
  std::unique_ptr<ShmPort> shm;
};
// The port must outlive the device.
struct ShmHost : ShmPortOfHost, Side {};

// `slots` hosts have the addresses 10.0.0.1 and following.
inline ShmPortConfig shm_port_config(uint32_t slot, uint32_t slots) {
  ShmPortConfig config;
  config.slot = slot;
  config.pool = must(MbufPool::create("shm_host", 2048, 4600));
  for (uint32_t i = 0; i < slots; ++i)
    config.slots.push_back({MacAddress::local(1 + i), {IpAddress::from_v4(0x0a000001 + i)}});
  return config;
}

// Device configuration that a test may change before open_shm_host().
inline DeviceConfig shm_device_config(uint32_t slot) {
  DeviceConfig device;
  device.name = "host" + std::to_string(slot);
  device.addresses = {"10.0.0." + std::to_string(slot + 1) + "/24"};
  device.progress = Progress::kExternal;
  device.extensions.selective_repeat = true;
  device.tx_buffers = 1024;
  return device;
}

template <class PortOfDevice = BorrowedPort>
void open_shm_host(ShmHost& host, const std::shared_ptr<ShmSegment>& segment, ShmPortConfig port,
                   const DeviceConfig& device, size_t memory) {
  host.shm = must(ShmPort::open(segment, std::move(port)));
  host.device = must(create_device(std::make_unique<PortOfDevice>(*host.shm), device));
  host.pd = must(host.device->allocate_pd());
  host.cq = must(host.device->create_cq(256));
  host.memory.resize(memory);
  host.region = must(host.pd->register_memory(
      host.memory.data(), memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
}

// An RC queue pair with `depth` send requests, all of them signaled.
inline std::unique_ptr<QueuePair> create_rc(Side& host, uint32_t depth) {
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {
      .max_send_wr = depth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  init.sq_sig_all = 1;
  return must(host.pd->create_qp(&init, *host.cq, *host.cq));
}

// Connects two queue pairs. `timeout` is the code of the local ACK timeout (IBTA 9.7.6.1.3).
inline void connect_rc(Side& a, QueuePair& qp_a, Side& b, QueuePair& qp_b, uint8_t timeout) {
  const ConnectOptions options{
      .rq_psn = 100, .sq_psn = 100, .path_mtu = IBV_MTU_4096, .timeout = timeout, .retry_count = 7};
  connect_to(qp_a, IBV_QPT_RC, must(b.device->query_gid(1)), qp_b.qp_num(), options);
  connect_to(qp_b, IBV_QPT_RC, must(a.device->query_gid(1)), qp_a.qp_num(), options);
}

// Posts a WRITE or READ between the starts of the two memories. Returns whether it was accepted.
inline bool post_rdma(Side& from, QueuePair& qp, const Side& to, ibv_wr_opcode opcode, uint32_t length) {
  ibv_sge sge = from.sge(0, length);
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = to.address(0);
  wr.wr.rdma.rkey = to.region->rkey();
  return qp.post_send(&wr, nullptr) == 0;
}

}  // namespace roci::test
