// Sockets over RDMA (rsockets) with peers and unauthenticated senders that violate the protocol or send without limit.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rdmacm/addresses.hpp"
#include "rdmacm/fake_device.hpp"
#include "rdmacm/sockets/socket.hpp"

namespace roci::rdmacm::sockets {
namespace {

using namespace std::chrono_literals;
using fake::kOwn;
using fake::kPeer;

constexpr uint8_t kMaxTimeCodeOfPeer = 31;
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

// ---- Streams.

struct Connected {
  std::shared_ptr<Socket> socket;
  fake::QueuePair* pair = nullptr;
  ConnectionData local{};  // what the peer got in the REP

  [[nodiscard]] Area& grant(uint32_t index) const {
    return reinterpret_cast<Area*>(local.grants.address)[index];
  }
};

class HostileStream : public HostileSockets {
 protected:
  std::shared_ptr<Socket> listener(int backlog) {
    auto socket = make_stream(AF_INET);
    port = bind(*socket);
    EXPECT_EQ(socket->listen(backlog), 0);
    return socket;
  }
  // A peer that exists: it confirms the reply.
  Connected connect(Socket& listening, fake::StreamRequest request) {
    request.port = port;
    device.receive(request.from, fake::request_of(request));
    EXPECT_EQ(listening.poll_events(POLLIN), POLLIN);
    Connected out{.socket = listening.accept()};
    if (out.socket == nullptr) {
      ADD_FAILURE() << "no stream";
      return out;
    }
    const auto& reply = std::get<CmReply>(device.messages.back().mad.message);
    out.local = from_wire(reply.private_data).value_or(ConnectionData{});
    out.pair = device.made.back();
    device.receive(request.from, CmReady{.local_id = request.id, .remote_id = reply.local_id});
    EXPECT_EQ(out.socket->poll_events(POLLOUT), POLLOUT);
    return out;
  }
  static ssize_t send(Socket& socket, size_t bytes) {
    std::vector<uint8_t> content(bytes);
    const iovec piece{content.data(), content.size()};
    return socket.send({&piece, 1}, 0, nullptr, 0);
  }

  uint16_t port = 0;
};

// A request costs its sender one frame, with any source address.
TEST_F(HostileStream, requests_make_at_most_16_streams_before_they_are_accepted) {
  const auto listening = listener(64);
  const uint64_t dropped_before = device.agent().counts().overflowed;
  for (uint32_t i = 1; i <= 300; ++i) {
    device.receive(host(i), fake::request_of({.from = host(i), .port = port, .id = i, .qpn = i}));
    listening->poll_events(POLLIN);
  }
  EXPECT_EQ(device.queue_pairs.size(), 16U);
  EXPECT_EQ(device.channels, 16);
  EXPECT_EQ(device.agent().unanswered(), 64U) << "the backlog";
  EXPECT_EQ(device.agent().counts().overflowed - dropped_before, 300U - 64 - 16);
  // The requesters do not confirm the replies. Their streams end, and the program gets none of them.
  for (int i = 0; i < 6; ++i) {
    device.pass(100s);
    EXPECT_LE(device.queue_pairs.size(), 16U);
    listening->poll_events(POLLIN);
  }
  EXPECT_EQ(listening->poll_events(POLLIN), 0);
  EXPECT_EQ(listening->accept(), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(device.queue_pairs.empty());
  const Connected real = connect(*listening, {.id = 1000});
  EXPECT_EQ(send(*real.socket, 10), 10);
}

TEST_F(HostileStream, small_backlog_also_limits_the_streams_before_they_are_accepted) {
  const auto listening = listener(2);
  for (uint32_t i = 1; i <= 5; ++i)
    device.receive(host(i), fake::request_of({.from = host(i), .port = port, .id = i, .qpn = i}));
  EXPECT_EQ(listening->poll_events(POLLIN), POLLIN);
  EXPECT_EQ(device.queue_pairs.size(), 2U);
  // The others are answered as the program accepts.
  std::vector<std::shared_ptr<Socket>> accepted;
  while (auto stream = listening->accept()) accepted.push_back(std::move(stream));
  EXPECT_EQ(accepted.size(), 5U);
}

TEST_F(HostileStream, request_whose_sender_has_given_up_is_not_answered) {
  const auto listening = listener(1);
  for (const uint32_t i : {1U, 2U})
    device.receive(host(i), fake::request_of({.from = host(i), .port = port, .id = i, .qpn = i}));
  EXPECT_EQ(listening->poll_events(POLLIN), POLLIN);
  EXPECT_EQ(device.agent().unanswered(), 1U);
  device.receive(host(2), CmRejected{.local_id = 2, .reason = CmRejected::kTimeout});
  EXPECT_NE(listening->accept(), nullptr);
  EXPECT_EQ(listening->accept(), nullptr);
  EXPECT_EQ(device.agent().connections(), 0U);
}

// The peer chooses how long it may take to confirm: with these times, 16 minutes.
TEST_F(HostileStream, stream_whose_peer_does_not_confirm_blocks_no_call_without_limit) {
  const auto listening = listener(1);
  CmRequest request = fake::request_of({.port = port});
  request.local_response_timeout = kMaxTimeCodeOfPeer;
  request.max_cm_retries = 15;
  device.receive(kPeer, request);
  ASSERT_EQ(listening->poll_events(POLLIN), POLLIN);
  const auto stream = listening->accept();
  ASSERT_NE(stream, nullptr);
  stream->set_status_flags(0);  // blocking
  const timeval soon{.tv_sec = 0, .tv_usec = 1000};
  ASSERT_EQ(stream->set_option(SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
  ASSERT_EQ(stream->set_option(SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
  uint8_t byte = 0;
  const iovec piece{&byte, 1};
  EXPECT_EQ(stream->receive({&piece, 1}, 0, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(send(*stream, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(stream->set_option(SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  EXPECT_EQ(stream->close(), 0);
}

TEST_F(HostileStream, service_request_to_a_stream_port_is_refused_without_an_event) {
  const auto listening = listener(1);
  const CmRequest of_stream = fake::request_of({.port = port});
  CmServiceRequest request{.request_id = 5, .service_id = of_stream.service_id};
  std::copy_n(of_stream.private_data.begin(), CmIpHeader::kBytes, request.private_data.begin());
  device.receive(kPeer, request);
  EXPECT_EQ(listening->poll_events(POLLIN), 0);
  EXPECT_TRUE(device.queue_pairs.empty());
  ASSERT_EQ(device.messages.size(), 1U);
  EXPECT_NE(std::get<CmServiceReply>(device.messages[0].mad.message).status, CmServiceReply::kValid);
}

TEST_F(HostileStream, accepted_stream_knows_the_path_mtu) {
  const auto listening = listener(1);
  const Connected peer = connect(*listening, {});
  int bytes = 0;
  socklen_t length = sizeof bytes;
  EXPECT_EQ(peer.socket->get_option(IPPROTO_TCP, TCP_MAXSEG, &bytes, &length), 0);
  EXPECT_EQ(bytes, 1024) << "of the request";
}

TEST_F(HostileStream, error_of_a_stream_is_reported_once_by_so_error) {
  const auto listening = listener(4);
  const Connected peer = connect(*listening, {});
  ASSERT_TRUE(peer.pair->receive_immediate(word(Operation::kData, 1U << 17)));
  peer.socket->poll_events(POLLIN);
  ASSERT_TRUE(peer.pair->receive_immediate(word(Operation::kData, 1)));
  peer.socket->poll_events(POLLIN);
  const auto error = [&] {
    int code = -1;
    socklen_t length = sizeof code;
    EXPECT_EQ(peer.socket->get_option(SOL_SOCKET, SO_ERROR, &code, &length), 0);
    return code;
  };
  EXPECT_EQ(error(), EPROTO);
  EXPECT_EQ(error(), 0);
}

TEST_F(HostileStream, request_of_another_protocol_is_rejected_without_a_stream) {
  const auto listening = listener(4);
  CmRequest request = fake::request_of({.port = port});
  request.private_data[CmIpHeader::kBytes] = 9;  // version
  device.receive(kPeer, request);
  EXPECT_EQ(listening->poll_events(POLLIN), 0);
  EXPECT_TRUE(device.queue_pairs.empty());
  ASSERT_EQ(device.messages.size(), 1U);
  EXPECT_EQ(std::get<CmRejected>(device.messages[0].mad.message).reason, CmRejected::kConsumer);
}

TEST_F(HostileStream, listener_that_is_closed_rejects_its_requests) {
  auto listening = listener(1);
  for (const uint32_t i : {1U, 2U})
    device.receive(host(i), fake::request_of({.from = host(i), .port = port, .id = i, .qpn = i}));
  EXPECT_EQ(listening->poll_events(POLLIN), POLLIN);
  EXPECT_EQ(listening->close(), 0);
  listening.reset();
  ASSERT_EQ(device.messages.size(), 3U);
  EXPECT_EQ(cm_message_name(device.messages[1].mad.message), "REJ");
  EXPECT_EQ(cm_message_name(device.messages[2].mad.message), "REJ");
}

// A credit message may bring a grant. A peer that grants without end must not fill the memory.
TEST_F(HostileStream, more_grants_than_the_list_of_a_peer_has_are_an_error) {
  const auto listening = listener(4);
  const Connected peer = connect(*listening, {});
  uint32_t messages = 0;
  const auto grant = [&](uint32_t length) {
    peer.grant((1 + messages++) % kGrants) = {.address = 0x30000, .key = 2, .length = length};
    EXPECT_TRUE(peer.pair->receive_immediate(word(Operation::kCredits, 384)));
    return peer.socket->poll_events(POLLOUT);
  };
  EXPECT_EQ(grant(65536), POLLOUT);
  EXPECT_EQ(grant(65536), POLLOUT) << "one more than an honest peer has";
  // When one is used up, the peer grants again.
  EXPECT_EQ(send(*peer.socket, 65536), 65536);
  EXPECT_EQ(grant(1), POLLOUT);
  EXPECT_NE(grant(1) & POLLERR, 0);
  EXPECT_EQ(send(*peer.socket, 1), -1);
  EXPECT_EQ(errno, EPROTO);
}

TEST_F(HostileStream, more_data_than_granted_is_an_error) {
  const auto listening = listener(4);
  const Connected peer = connect(*listening, {});
  ASSERT_TRUE(peer.pair->receive_immediate(word(Operation::kData, 1U << 17)));  // the whole ring
  EXPECT_EQ(peer.socket->poll_events(POLLIN), POLLIN);
  ASSERT_TRUE(peer.pair->receive_immediate(word(Operation::kData, 1)));
  EXPECT_NE(peer.socket->poll_events(POLLIN) & POLLERR, 0);
}

TEST_F(HostileStream, more_messages_than_credits_are_an_error) {
  const auto listening = listener(4);
  const Connected peer = connect(*listening, {});
  for (uint32_t i = 0; i < peer.local.credits; ++i) {
    ASSERT_TRUE(peer.pair->receive_immediate(word(Operation::kData, 1)));
    EXPECT_EQ(peer.socket->poll_events(POLLIN), POLLIN);
  }
  ASSERT_TRUE(peer.pair->receive_immediate(word(Operation::kData, 1)));
  EXPECT_NE(peer.socket->poll_events(POLLIN) & POLLERR, 0);
}

// The peer changes the table of mappings while it is searched.
TEST(SocketMappings, found_mapping_contains_the_offset_while_the_peer_changes_the_table) {
  std::vector<uint64_t> table(3);
  std::atomic<bool> done = false;
  std::thread peer([&] {
    constexpr uint64_t kLength = uint64_t{1000} << 32;  // in the high half of the word, after the key
    const std::atomic_ref<uint64_t> length(table[2]);
    while (!done) {
      length.store(kLength, std::memory_order_relaxed);
      length.store(0, std::memory_order_relaxed);
    }
  });
  uint64_t found = 0, missed = 0, wrong = 0;
  while (found < 100'000 || missed < 100'000) {
    const auto mapping = find_mapping(table, 500);
    ++(mapping ? found : missed);
    if (mapping && mapping->area.length != 1000) ++wrong;
  }
  done = true;
  peer.join();
  EXPECT_EQ(wrong, 0U);
}

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

class WaitingDatagrams : public HostileDatagrams {
 protected:
  ssize_t send_byte(const IpAddress& to, uint8_t byte) {
    const iovec piece{&byte, 1};
    sockaddr_storage address{};
    write_address(to, kPort, false, address);
    return socket->send({&piece, 1}, 0, reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in));
  }
  // Bytes sent to a host, in order.
  [[nodiscard]] std::string sent_to(const IpAddress& to) const {
    std::string bytes;
    for (const fake::Sent& one : pair->sent) {
      if (one.destination == to) bytes.push_back(static_cast<char>(one.content.back()));
    }
    return bytes;
  }
};

TEST_F(WaitingDatagrams, are_sent_in_order_as_soon_as_there_is_space) {
  constexpr size_t kSpace = 64;
  std::string bytes;
  for (char byte = '!'; bytes.size() < kSpace * 5 / 8; ++byte) bytes.push_back(byte);
  for (const uint32_t number : {1U, 2U}) {
    for (const char byte : bytes) ASSERT_EQ(send_byte(host(number), static_cast<uint8_t>(byte)), 1);
  }
  settle();
  EXPECT_EQ(resolve(kQpn), 2U);
  EXPECT_EQ(pair->sent.size(), kSpace);
  pair->complete_sends(1);
  EXPECT_EQ(send_byte(host(2), 'z'), -1) << "it would overtake the datagrams that wait";
  EXPECT_EQ(errno, EAGAIN);
  pair->complete_sends();
  settle();
  EXPECT_EQ(send_byte(host(2), 'z'), 1);
  EXPECT_EQ(sent_to(host(1)), bytes);
  EXPECT_EQ(sent_to(host(2)), bytes + 'z');
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
