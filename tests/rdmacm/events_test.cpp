// Events of connections, requests and multicast groups, as programs get them from rdma_get_cm_event().
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <chrono>

#include "rdmacm/addresses.hpp"
#include "rdmacm/fake_device.hpp"
#include "rdmacm/id.hpp"

namespace roci::rdmacm {
namespace {

using namespace std::chrono_literals;
using fake::kOwn;
using fake::kPeer;

constexpr uint16_t kPort = 7174;
constexpr uint32_t kPeerId = 0x55, kPeerQpn = 0x999;

class CmEvents : public testing::Test {
 protected:
  void SetUp() override {
    device.messages.clear();
    channel = rdma_create_event_channel();
    ASSERT_NE(channel, nullptr);
    fcntl(channel->fd, F_SETFL, O_NONBLOCK);
  }
  void TearDown() override {
    rdma_destroy_event_channel(channel);
    device.pass(1h);
    device.messages.clear();
    EXPECT_TRUE(device.queues.empty() && device.queue_pairs.empty());
    EXPECT_EQ(device.agent().connections(), 0U);
  }

  // An id that is bound to this host.
  static rdma_cm_id* bound(rdma_event_channel* of, rdma_port_space space) {
    rdma_cm_id* id = nullptr;
    sockaddr_storage address{};
    write_address(kOwn, kPort, false, address);
    EXPECT_EQ(rdma_create_id(of, &id, nullptr, space), 0);
    EXPECT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)), 0);
    return id;
  }
  static rdma_cm_id* listener(rdma_event_channel* of, rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* const id = bound(of, space);
    EXPECT_EQ(rdma_listen(id, 8), 0);
    return id;
  }
  void request() { device.receive(kPeer, fake::request_of({.port = kPort, .id = kPeerId, .qpn = kPeerQpn})); }
  // A connection to the peer, which has answered with REP. Its event is not fetched.
  rdma_cm_id* answered_connection() {
    rdma_cm_id* id = nullptr;
    sockaddr_storage peer{};
    write_address(kPeer, kPort, false, peer);
    EXPECT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    EXPECT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&peer), 1000), 0);
    EXPECT_EQ(next(), RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
    EXPECT_EQ(next(), RDMA_CM_EVENT_ROUTE_RESOLVED);
    ibv_qp_init_attr attr{};
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    EXPECT_EQ(rdma_create_qp(id, nullptr, &attr), 0);
    EXPECT_EQ(rdma_connect(id, nullptr), 0);
    local = std::get<CmRequest>(device.messages.back().mad.message).local_id;
    device.receive(kPeer, CmReply{.local_id = kPeerId, .remote_id = local, .queue_pair = Qpn{kPeerQpn}});
    return id;
  }
  // The id of the request that the next event of a channel reports.
  static rdma_cm_id* requested_in(rdma_event_channel* of) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(of, &event) != 0) return nullptr;
    rdma_cm_id* const id = event->id;
    EXPECT_EQ(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
    return id;
  }
  void destroy(rdma_cm_id* id) {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
  // The next event, which is acknowledged; -1 if there is none.
  int next() {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event) != 0) {
      EXPECT_EQ(errno, EAGAIN);
      return -1;
    }
    const int type = event->event;
    status = event->status;
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
    return type;
  }

  fake::Device& device = fake::Device::instance();
  rdma_event_channel* channel = nullptr;
  uint32_t local = 0;
  int status = 0;
};

// Programs take REJECTED of an id with the context of the listener for a failure of the listener.
TEST_F(CmEvents, withdrawn_request_makes_accept_fail_and_reports_nothing) {
  rdma_cm_id* const listening = listener(channel);
  request();
  rdma_cm_id* const requested = requested_in(channel);
  ASSERT_NE(requested, nullptr);
  device.receive(kPeer, CmRejected{.local_id = kPeerId, .reason = CmRejected::kTimeout});
  EXPECT_EQ(next(), -1);
  EXPECT_EQ(rdma_accept(requested, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  destroy(requested);
  destroy(listening);
}

TEST_F(CmEvents, request_has_a_path_record) {
  rdma_cm_id* const listening = listener(channel);
  request();
  rdma_cm_id* const requested = requested_in(channel);
  ASSERT_NE(requested, nullptr);
  ASSERT_EQ(requested->route.num_paths, 1);
  EXPECT_EQ(requested->route.path_rec->mtu, IBV_MTU_1024);
  destroy(requested);
  destroy(listening);
}

TEST_F(CmEvents, request_to_a_datagram_listener_is_rejected) {
  rdma_cm_id* const id = listener(channel, RDMA_PS_UDP);
  CmRequest wrong = fake::request_of({.port = kPort});
  wrong.service_id = cm_service_id(CmPortSpace::kUdp, kPort);
  device.receive(kPeer, wrong);
  EXPECT_EQ(next(), -1);
  ASSERT_EQ(device.messages.size(), 1U);
  EXPECT_EQ(cm_message_name(device.messages[0].mad.message), "REJ");
  destroy(id);
}

TEST_F(CmEvents, request_of_a_synchronous_listener_has_its_own_channel) {
  rdma_cm_id* const listening = listener(nullptr);
  request();
  rdma_cm_id* const requested = requested_in(listening->channel);
  ASSERT_NE(requested, nullptr);
  EXPECT_NE(requested->channel, listening->channel);
  EXPECT_TRUE(Id::of(requested).synchronous);
  destroy(requested);
  destroy(listening);
}

TEST_F(CmEvents, connect_error_is_the_last_event_of_its_connection) {
  rdma_cm_id* const id = answered_connection();
  device.receive(kPeer, CmRejected{.local_id = kPeerId, .remote_id = local, .reason = CmRejected::kTimeout});
  EXPECT_EQ(next(), RDMA_CM_EVENT_CONNECT_ERROR);
  EXPECT_EQ(next(), -1);
  destroy(id);
}

TEST_F(CmEvents, unanswered_disconnection_has_the_status_of_a_timeout) {
  rdma_cm_id* const id = answered_connection();
  EXPECT_EQ(next(), RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(rdma_disconnect(id), 0);
  device.pass(10min);
  EXPECT_EQ(next(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(status, -ETIMEDOUT);
  EXPECT_EQ(next(), RDMA_CM_EVENT_TIMEWAIT_EXIT);
  destroy(id);
}

// The program may free the context of the join after the call.
TEST_F(CmEvents, join_that_was_left_reports_nothing) {
  rdma_cm_id* const id = bound(channel, RDMA_PS_UDP);
  sockaddr_storage group{};
  write_address(IpAddress::from_v4(0xe0000105), 0, false, group);
  ASSERT_EQ(rdma_join_multicast(id, reinterpret_cast<sockaddr*>(&group), this), 0);
  EXPECT_EQ(rdma_leave_multicast(id, reinterpret_cast<sockaddr*>(&group)), 0);
  EXPECT_EQ(next(), -1);
  destroy(id);
}

// ---- Completion queues that the program stores in the id.

class IdQueues : public CmEvents {
 protected:
  void SetUp() override {
    CmEvents::SetUp();
    id = bound(channel, RDMA_PS_TCP);
    id->send_cq_channel = id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
    id->send_cq = id->recv_cq = ibv_create_cq(id->verbs, 8, nullptr, id->send_cq_channel, 0);
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  }

  rdma_cm_id* id = nullptr;
  ibv_qp_init_attr attr{};
};

TEST_F(IdQueues, are_used_and_destroyed_once) {
  ibv_cq* const queue = id->send_cq;
  ASSERT_EQ(rdma_create_qp(id, nullptr, &attr), 0);
  EXPECT_EQ(id->qp->send_cq, queue);
  EXPECT_EQ(id->qp->recv_cq, queue);
  EXPECT_EQ(device.queues.size(), 1U);
  destroy(id);
  EXPECT_EQ(device.channels, 0);
}

TEST_F(IdQueues, that_differ_from_those_of_the_call_are_invalid) {
  ibv_cq* const other = ibv_create_cq(id->verbs, 8, nullptr, id->send_cq_channel, 0);
  attr.send_cq = other;
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attr), -1);
  EXPECT_EQ(errno, EINVAL);
  ibv_destroy_cq(other);
  ibv_destroy_cq(id->send_cq);
  ibv_destroy_comp_channel(id->send_cq_channel);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(CmEvents, failed_shared_receive_queue_leaves_no_completion_queue) {
  rdma_cm_id* const id = bound(channel, RDMA_PS_TCP);
  ibv_xrcd domain{};
  ibv_srq_init_attr_ex attr{};
  attr.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  EXPECT_EQ(rdma_create_srq_ex(id, &attr), -1) << "no type";
  EXPECT_EQ(errno, EINVAL);
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD;
  attr.srq_type = IBV_SRQT_XRC;
  attr.xrcd = &domain;
  EXPECT_EQ(rdma_create_srq_ex(id, &attr), -1) << "the device has no such call";
  EXPECT_TRUE(device.queues.empty());
  EXPECT_EQ(device.channels, 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

}  // namespace
}  // namespace roci::rdmacm
