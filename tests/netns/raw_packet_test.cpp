// Test of raw packet queue pairs with the Linux kernel, which owns veth0; the device owns veth1. UDP datagrams of a
// kernel socket are received by a flow rule, and frames that the queue pair sends are received by the socket. Runs inside
// tests/tools/netns.sh.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <rte_ip.h>
#include <rte_udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "roci/open.hpp"
#include "support/must.hpp"
#include "wire/headers/headers.hpp"

namespace roci::test {
namespace {

using namespace std::chrono_literals;

constexpr uint16_t kOurPort = 5678;
constexpr size_t kSlot = 2048;

sockaddr_in endpoint(const char* address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  inet_pton(AF_INET, address, &out.sin_addr);
  return out;
}

MacAddress mac_of_interface(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  EXPECT_EQ(ioctl(any, SIOCGIFHWADDR, &request), 0);
  close(any);
  MacAddress mac;
  std::memcpy(&mac, request.ifr_hwaddr.sa_data, sizeof mac);
  return mac;
}

class KernelRawPacket : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::system("ip addr flush dev veth0 && ip addr add 10.9.0.1/24 dev veth0"), 0);
    device_ = must(open_device_from_text(
        "device: {port: {device: 'net_af_packet0,iface=veth1', mtu: 1500}, addresses: [10.9.0.2/24]}"));
    pd_ = must(device_->allocate_pd());
    cq_ = must(device_->create_cq(64));
    region_ = must(pd_->register_memory(memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE));
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RAW_PACKET;
    init.cap = {
        .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    init.sq_sig_all = 1;
    qp_ = must(pd_->create_qp(&init, *cq_, *cq_));
    ibv_qp_attr attr{};
    attr.port_num = 1;
    attr.qp_state = IBV_QPS_INIT;
    must(qp_->modify(attr, IBV_QP_STATE | IBV_QP_PORT));
    for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
      attr.qp_state = state;
      must(qp_->modify(attr, IBV_QP_STATE));
    }
    socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ASSERT_GE(socket_, 0);
    const sockaddr_in own = endpoint("10.9.0.1", 0);
    ASSERT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  }
  void TearDown() override { close(socket_); }

  std::unique_ptr<FlowRule> rule_for_our_port() {
    struct {
      ibv_flow_attr attr;
      ibv_flow_spec_ipv4 ip;
      ibv_flow_spec_tcp_udp udp;
    } rule{};
    rule.attr.num_of_specs = 2;
    rule.attr.port = 1;
    rule.ip.type = IBV_FLOW_SPEC_IPV4;
    rule.ip.size = sizeof rule.ip;
    rule.ip.val.src_ip = endpoint("10.9.0.1", 0).sin_addr.s_addr;
    rule.ip.mask.src_ip = UINT32_MAX;
    rule.udp.type = IBV_FLOW_SPEC_UDP;
    rule.udp.size = sizeof rule.udp;
    rule.udp.val.dst_port = htons(kOurPort);
    rule.udp.mask.dst_port = 0xffff;
    return must(qp_->create_flow(rule.attr));
  }
  [[nodiscard]] ibv_sge slot(size_t number, size_t length) const {
    return {reinterpret_cast<uint64_t>(memory_.data() + number * kSlot), static_cast<uint32_t>(length),
            region_->lkey()};
  }
  // The next completion; its status is a failure after 4 s without one.
  ibv_wc completion() {
    ibv_wc wc{};
    wc.status = IBV_WC_GENERAL_ERR;
    const auto end = std::chrono::steady_clock::now() + 4s;
    while (cq_->poll(1, &wc) == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(100us);
    return wc;
  }
  void kernel_sends(uint16_t port, const std::vector<uint8_t>& payload) const {
    const sockaddr_in to = endpoint("10.9.0.2", port);
    ASSERT_EQ(
        sendto(socket_, payload.data(), payload.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
        static_cast<ssize_t>(payload.size()));
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(16 * kSlot);
  std::unique_ptr<Device> device_;
  std::unique_ptr<ProtectionDomain> pd_;
  std::unique_ptr<CompletionQueue> cq_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<QueuePair> qp_;
  int socket_ = -1;
};

TEST_F(KernelRawPacket, datagrams_of_a_kernel_socket_are_received_and_answered) {
  const auto rule = rule_for_our_port();
  for (size_t i = 0; i < 8; ++i) {
    ibv_sge list = slot(i, kSlot);
    ibv_recv_wr wr{};
    wr.wr_id = i;
    wr.sg_list = &list;
    wr.num_sge = 1;
    ASSERT_EQ(qp_->post_recv(&wr, nullptr), 0);
  }
  for (size_t i = 0; i < 8; ++i) {
    const std::vector<uint8_t> payload(1 + i * 200, static_cast<uint8_t>(0x40 + i));
    kernel_sends(kOurPort + 1, {1, 2, 3});  // selected by no rule
    kernel_sends(kOurPort, payload);        // after an ARP request of the kernel, which the device answers
    const ibv_wc received = completion();
    ASSERT_EQ(received.status, IBV_WC_SUCCESS) << i;
    ASSERT_EQ(received.wr_id, i);
    ASSERT_EQ(received.opcode, IBV_WC_RECV);
    constexpr size_t kHeaders = sizeof(EthernetHeader) + sizeof(Ipv4Header) + sizeof(UdpHeader);
    ASSERT_GE(received.byte_len, kHeaders + payload.size());  // short frames may be padded
    uint8_t* const frame = memory_.data() + i * kSlot;
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), frame + kHeaders)) << i;

    // Sent back with the addresses and ports exchanged. The checksums of IP and UDP do not change, but the kernel may
    // have left the UDP checksum to its interface.
    auto& ethernet = *reinterpret_cast<EthernetHeader*>(frame);
    auto& ip = *reinterpret_cast<rte_ipv4_hdr*>(frame + sizeof ethernet);
    auto& udp = *reinterpret_cast<rte_udp_hdr*>(frame + sizeof ethernet + sizeof ip);
    EXPECT_EQ(ethernet.source, mac_of_interface("veth0"));
    std::swap(ethernet.source, ethernet.destination);
    const rte_be32_t from = ip.src_addr;
    ip.src_addr = ip.dst_addr;
    ip.dst_addr = from;
    const rte_be16_t from_port = udp.src_port;
    udp.src_port = udp.dst_port;
    udp.dst_port = from_port;
    udp.dgram_cksum = 0;
    udp.dgram_cksum = rte_ipv4_udptcp_cksum(&ip, &udp);
    ibv_sge list = slot(i, kHeaders + payload.size());
    ibv_send_wr wr{};
    wr.wr_id = 100 + i;
    wr.sg_list = &list;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ASSERT_EQ(qp_->post_send(&wr, nullptr), 0);
    const ibv_wc sent = completion();
    ASSERT_EQ(sent.status, IBV_WC_SUCCESS);
    ASSERT_EQ(sent.wr_id, 100 + i);
    std::vector<uint8_t> answer(2000);
    ssize_t length = -1;
    const auto end = std::chrono::steady_clock::now() + 4s;
    while ((length = recv(socket_, answer.data(), answer.size(), 0)) < 0 &&
           std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(100us);
    ASSERT_EQ(length, static_cast<ssize_t>(payload.size()));
    answer.resize(payload.size());
    EXPECT_EQ(answer, payload);
  }
}

}  // namespace
}  // namespace roci::test
