// Base class: two connected devices of one process in real time with real threads, and connections between them.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/api/create_device.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "roci/device.hpp"
#include "support/must.hpp"
#include "support/ports/byte_link.hpp"
#include "support/ports/locked_pool.hpp"
#include "support/sanitizer.hpp"

namespace roci::test {

inline constexpr size_t kSlot = 8192;
inline constexpr auto kPatience = std::chrono::seconds{60};

struct Node {
  std::unique_ptr<Device> device;
  std::unique_ptr<CompletionChannel> channel;
  std::unique_ptr<ProtectionDomain> pd;
};

// One end of a connection: a queue pair with its memory and completion queue.
struct End {
  std::unique_ptr<CompletionQueue> cq;
  std::vector<uint8_t> memory;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<QueuePair> qp;
  uint32_t first_psn = 0;  // of sent packets
};

class RealHosts {
 protected:
  // Call before anything else.
  static void start() {
    must(start_eal());
    if (kThreadSanitizer) use_locked_pools();
  }

  // Creates the device of one node. `config` contains the other settings.
  static void make(Node& node, std::unique_ptr<Port> port, const std::string& address, DeviceConfig config) {
    config.name = "t" + address.substr(7, 1);
    config.addresses = {address};
    config.tx_buffers = 2048;
    node.device = must(create_device(std::move(port), config));
    node.channel = must(node.device->create_channel());
    node.pd = must(node.device->allocate_pd());
  }

  // With a completion queue of its own unless `cq` is given.
  static End make_end(Node& node, size_t bytes, CompletionQueue* cq = nullptr) {
    End end;
    if (cq == nullptr) {
      end.cq = must(node.device->create_cq(256, nullptr, node.channel.get()));
      cq = end.cq.get();
    }
    end.memory.resize(bytes);
    end.region = must(node.pd->register_memory(
        end.memory.data(), bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap = {
        .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    init.sq_sig_all = 1;
    end.qp = must(node.pd->create_qp(&init, *cq, *cq));
    draw_psn(end);
    return end;
  }

  // Call before every connection. Packets of an earlier connection of the same queue pair may still be in flight, and
  // must have PSNs far from the expected ones: with the same PSNs the queue pair would accept them.
  static void draw_psn(End& end) {
    static std::atomic<uint32_t> drawn{0};
    constexpr uint32_t kApart = 0x10000;
    end.first_psn = (drawn.fetch_add(kApart) + kApart / 2) & 0xffffff;
  }

  static void connect(End& end, const End& peer, Node& peer_node) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    must(end.qp->modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qp->qp_num();
    attr.rq_psn = peer.first_psn;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.sgid_index = 1;
    attr.ah_attr.grh.dgid = must(peer_node.device->query_gid(1));
    must(end.qp->modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = end.first_psn;
    // 2.1 s: a slow machine loses no packets, and a response requires several threads to run.
    attr.timeout = 19;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    must(end.qp->modify(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
  }

  std::pair<End, End> make_connection(size_t bytes) {
    std::pair<End, End> ends{make_end(a_, bytes), make_end(b_, bytes)};
    connect(ends.first, ends.second, b_);
    connect(ends.second, ends.first, a_);
    return ends;
  }

  static int post(End& end, ibv_wr_opcode opcode, uint64_t id, size_t offset, uint32_t length,
                  const End& peer) {
    return post(end, opcode, id, offset, length, peer, offset);
  }
  static int post(End& end, ibv_wr_opcode opcode, uint64_t id, size_t offset, uint32_t length,
                  const End& peer, size_t peer_offset, uint32_t immediate = 0) {
    ibv_sge sge{reinterpret_cast<uint64_t>(end.memory.data()) + offset, length, end.region->lkey()};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(peer.memory.data()) + peer_offset;
    wr.wr.rdma.rkey = peer.region->rkey();
    wr.imm_data = immediate;
    ibv_send_wr* bad = nullptr;
    return end.qp->post_send(&wr, &bad);
  }
  static int post_receive(End& end, uint64_t id, size_t offset, uint32_t length) {
    ibv_sge sge{reinterpret_cast<uint64_t>(end.memory.data()) + offset, length, end.region->lkey()};
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return end.qp->post_recv(&wr, &bad);
  }

  // The next completion, or a failed one after a long time.
  static ibv_wc await(CompletionQueue& cq) {
    ibv_wc wc{};
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (cq.poll(1, &wc) == 1) return wc;
    }
    wc.status = IBV_WC_GENERAL_ERR;
    return wc;
  }

  Node a_, b_;
};

}  // namespace roci::test
