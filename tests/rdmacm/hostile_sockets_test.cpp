// Sockets over RDMA (rsockets) with peers and unauthenticated senders that violate the protocol or send without limit.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rdmacm/addresses.hpp"
#include "rdmacm/fake_device.hpp"
#include "rdmacm/sockets/socket.hpp"

namespace roci::rdmacm::sockets {
namespace {

using namespace std::chrono_literals;
using fake::kOwn;
using fake::kPeer;

const IpAddress kAttacker = IpAddress::from_v4(0x0a000009);

class HostileSockets : public testing::Test {
 protected:
  void TearDown() override {
    device.pass(1h);  // closed connections end
    device.messages.clear();
    EXPECT_TRUE(device.queue_pairs.empty() && device.queues.empty() && device.regions.empty());
    EXPECT_TRUE(device.address_handles.empty());
    EXPECT_EQ(device.channels, 0);
    EXPECT_EQ(device.agent().connections(), 0U);
  }

  static uint16_t bind(Socket& socket) {
    sockaddr_storage address{};
    write_address(kOwn, 0, false, address);
    EXPECT_EQ(socket.bind(reinterpret_cast<const sockaddr&>(address), sizeof(sockaddr_in)), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(socket.name(false, reinterpret_cast<sockaddr*>(&address), &length), 0);
    socket.set_status_flags(O_NONBLOCK);
    return port_of(reinterpret_cast<const sockaddr&>(address));
  }
  static IpAddress host(uint32_t number) { return IpAddress::from_v4(0x0b000000 + number); }

  fake::Device& device = fake::Device::instance();
};

// ---- Datagrams.

class HostileDatagrams : public HostileSockets {
 protected:
  static constexpr uint16_t kPort = 5000;
  static constexpr uint32_t kQpn = 0x777;

  HostileDatagrams() {
    bind(*socket);
    pair = device.made.back();
  }
  void TearDown() override {
    socket.reset();
    HostileSockets::TearDown();
  }
  // A datagram whose packet is from `sender` and whose header names `named`.
  void arrive(const IpAddress& sender, const IpAddress& named, uint16_t named_port = kPort,
              uint32_t qpn = kQpn) {
    std::vector<uint8_t> content(kV4DatagramHeader);
    write_datagram_header({named, named_port}, content);
    content.push_back('x');
    EXPECT_TRUE(pair->receive_datagram(fake::network_header(sender, kOwn), content, qpn));
    socket->poll_events(POLLIN);
  }
  // Name of the sender, or "none".
  std::string receive() {
    uint8_t byte = 0;
    const iovec piece{&byte, 1};
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    if (socket->receive({&piece, 1}, 0, reinterpret_cast<sockaddr*>(&from), &length) < 0)
      return errno == EAGAIN ? "none" : std::strerror(errno);
    return ip_of(reinterpret_cast<const sockaddr&>(from))->to_string();
  }
  ssize_t send(const IpAddress& to, uint16_t port = kPort) {
    uint8_t byte = 'y';
    const iovec piece{&byte, 1};
    sockaddr_storage address{};
    write_address(to, port, false, address);
    const ssize_t sent =
        socket->send({&piece, 1}, 0, reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in));
    const int code = errno;
    settle();
    errno = code;
    return sent;
  }
  void settle() {
    for (int i = 0; i < 4; ++i) socket->poll_events(POLLIN);
  }
  // Answers the requests for the queue pair of a service that were sent since the last call.
  unsigned resolve(uint32_t qpn) {
    unsigned answered = 0;
    const auto requests = std::exchange(device.messages, {});
    for (const auto& message : requests) {
      const auto* const request = std::get_if<CmServiceRequest>(&message.mad.message);
      if (request == nullptr) continue;
      device.receive(message.route.remote, CmServiceReply{.request_id = request->request_id,
                                                          .queue_pair = Qpn{qpn},
                                                          .service_id = request->service_id,
                                                          .qkey = RDMA_UDP_QKEY});
      ++answered;
    }
    settle();
    return answered;
  }

  std::shared_ptr<Socket> socket = make_datagrams(AF_INET);
  fake::QueuePair* pair = nullptr;
};

TEST_F(HostileDatagrams, datagram_in_the_name_of_another_host_is_dropped_and_diverts_nothing) {
  arrive(kPeer, kPeer);
  EXPECT_EQ(receive(), "10.0.0.2");
  for (int i = 0; i < 100; ++i) arrive(kAttacker, kPeer, kPort, 0x666);
  EXPECT_EQ(receive(), "none");
  EXPECT_EQ(send(kPeer), 1);
  ASSERT_EQ(pair->sent.size(), 1U);
  EXPECT_EQ(pair->sent[0].destination, kPeer);
  EXPECT_EQ(pair->sent[0].destination_qpn, kQpn);
  EXPECT_EQ(pair->receives.size(), 64U) << "buffers of dropped datagrams are used again";
}

TEST_F(HostileDatagrams, connected_socket_also_drops_datagrams_in_the_name_of_its_peer) {
  sockaddr_storage address{};
  write_address(kPeer, kPort, false, address);
  ASSERT_EQ(socket->connect(reinterpret_cast<const sockaddr&>(address), sizeof(sockaddr_in)), 0);
  arrive(kAttacker, kPeer);
  EXPECT_EQ(receive(), "none");
  arrive(kPeer, kPeer);
  EXPECT_EQ(receive(), "10.0.0.2");
}

// The sender forges the address of its packets too. The peer is asked before the next datagram is sent.
TEST_F(HostileDatagrams, datagram_from_another_queue_pair_does_not_replace_a_known_one) {
  arrive(kPeer, kPeer);
  arrive(kPeer, kPeer, kPort, 0x666);
  EXPECT_EQ(send(kPeer), 1);
  EXPECT_TRUE(pair->sent.empty()) << "it waits for the resolution";
  EXPECT_EQ(resolve(kQpn), 1U);
  ASSERT_EQ(pair->sent.size(), 1U);
  EXPECT_EQ(pair->sent[0].destination_qpn, kQpn);
  // A new socket of the peer has the port.
  arrive(kPeer, kPeer, kPort, 0x778);
  EXPECT_EQ(send(kPeer), 1);
  EXPECT_EQ(resolve(0x778), 1U);
  ASSERT_EQ(pair->sent.size(), 2U);
  EXPECT_EQ(pair->sent[1].destination_qpn, 0x778U);
  EXPECT_EQ(send(kPeer), 1);
  EXPECT_EQ(pair->sent.size(), 3U) << "it is known again";
}

// Each port in a header is another peer.
TEST_F(HostileDatagrams, received_datagrams_make_at_most_4096_peers) {
  for (uint32_t port = 1; port <= 4'200; ++port) {
    arrive(kAttacker, kAttacker, static_cast<uint16_t>(port));
    EXPECT_EQ(receive(), "10.0.0.9");
  }
  EXPECT_EQ(device.address_handles.size(), 4096U);
  // The program answers some that were removed, and a new peer.
  for (uint32_t port = 1; port <= 100; ++port) {
    if (!pair->pending.empty()) pair->complete_sends();
    EXPECT_EQ(send(kAttacker, static_cast<uint16_t>(port)), 1);
    resolve(kQpn);
  }
  EXPECT_EQ(device.address_handles.size(), 4096U);
  pair->complete_sends();
  EXPECT_EQ(send(kPeer), 1);
  EXPECT_EQ(resolve(kQpn), 1U);
  EXPECT_EQ(pair->sent.back().destination, kPeer);
}

TEST_F(HostileDatagrams, unread_datagrams_occupy_the_receive_buffers_only) {
  for (int i = 0; i < 64; ++i) arrive(kPeer, kPeer);
  EXPECT_TRUE(pair->receives.empty());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(receive(), "10.0.0.2");
  EXPECT_EQ(receive(), "none");
  EXPECT_EQ(pair->receives.size(), 64U);
}

TEST_F(HostileDatagrams, peers_that_do_not_answer_are_limited_and_fail_with_enobufs) {
  constexpr uint32_t kPeers = 4096;
  for (uint32_t i = 0; i < kPeers; ++i) EXPECT_EQ(send(host(i)), 1);
  EXPECT_EQ(send(host(kPeers)), -1);
  EXPECT_EQ(errno, ENOBUFS);
  EXPECT_EQ(device.agent().connections(), kPeers);
}

TEST_F(HostileDatagrams, at_most_1024_datagrams_wait_for_resolutions) {
  for (uint32_t i = 0; i < 20; ++i) {
    for (int one = 0; one < 64; ++one) EXPECT_EQ(send(host(i)), 1);
  }
  for (auto& message : std::exchange(device.messages, {})) {
    device.messages = {message};
    resolve(kQpn);
    pair->complete_sends();
    settle();
  }
  EXPECT_EQ(pair->sent.size(), 1024U);
}

}  // namespace
}  // namespace roci::rdmacm::sockets
