#include "roci-perf/connection/exchange.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "roci-perf/output/completion_status.hpp"

namespace roci::perf {
namespace {

// Returns the next message. Waits for at most about 2 s.
Result<Json> next(Channel& channel) {
  for (int i = 0; i < 2000; ++i) {
    auto message = channel.poll();
    if (!message) return fail(message.error());
    if (*message) return **message;
    std::this_thread::sleep_for(1ms);
  }
  return fail("nothing came");
}

// Returns a free TCP port: bound once, then released.
uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  socklen_t length = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  close(fd);
  return ntohs(address.sin_port);
}

void talk(Channel& a, Channel& b) {
  const Json large{{"text", std::string(50'000, 'x')}};
  ASSERT_TRUE(a.send({{"n", 1}}));
  ASSERT_TRUE(a.send(large));
  ASSERT_TRUE(b.send({{"n", 2}}));
  EXPECT_EQ(next(b).value(), (Json{{"n", 1}}));
  EXPECT_EQ(next(b).value(), large);
  EXPECT_EQ(next(a).value(), (Json{{"n", 2}}));
  EXPECT_FALSE(a.poll().value());
}

// Messages sent before the close still arrive. The close is then reported as a separate error.
void end(std::unique_ptr<Channel> a, Channel& b) {
  ASSERT_TRUE(a->send({{"last", true}}));
  a.reset();
  EXPECT_EQ(next(b).value(), (Json{{"last", true}}));
  const auto after = next(b);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, ECONNRESET);
}

TEST(MemoryChannel, carries_messages_in_both_directions_and_closes) {
  auto [a, b] = make_memory_channel();
  talk(*a, *b);
  end(std::move(a), *b);
}

TEST(TcpChannel, carries_messages_in_both_directions_and_closes) {
  const uint16_t port = free_port();
  auto listener = Listener::open("127.0.0.1", port);
  ASSERT_TRUE(listener) << listener.error().message;
  auto client = connect_to("127.0.0.1", port, 2s);
  ASSERT_TRUE(client) << client.error().message;
  auto server = listener->accept(2s);
  ASSERT_TRUE(server) << server.error().message;
  talk(**client, **server);
  end(std::move(*server), **client);
}

// The functions of a JSON value are recursive: a deeply nested one would overflow the stack.
TEST(TcpChannel, deeply_nested_message_is_rejected) {
  for (const size_t depth : {size_t{3}, size_t{100}, size_t{500'000}}) {
    const uint16_t port = free_port();
    auto listener = Listener::open("127.0.0.1", port);
    ASSERT_TRUE(listener) << listener.error().message;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    auto server = listener->accept(2s);
    ASSERT_TRUE(server) << server.error().message;
    const std::string line = "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}\n";
    std::thread sender(
        [&] { EXPECT_EQ(send(fd, line.data(), line.size(), MSG_NOSIGNAL), ssize_t(line.size())); });
    const auto message = next(**server);
    sender.join();
    close(fd);
    EXPECT_EQ(message.has_value(), depth == 3) << depth;
    EXPECT_TRUE(message || message.error().code == EPROTO) << message.error().message;
  }
}

TEST(TcpChannel, client_may_start_before_server) {
  const uint16_t port = free_port();
  std::thread late([&] {
    std::this_thread::sleep_for(200ms);
    auto listener = Listener::open("127.0.0.1", port);
    ASSERT_TRUE(listener);
    EXPECT_TRUE(listener->accept(2s));
  });
  EXPECT_TRUE(connect_to("127.0.0.1", port, 5s));
  late.join();
}

TEST(TcpChannel, error_names_unresponsive_host) {
  const uint16_t port = free_port();
  const auto none = connect_to("127.0.0.1", port, 100ms);
  ASSERT_FALSE(none);
  EXPECT_NE(
      none.error().message.find("HOST 127.0.0.1:" + std::to_string(port) + " does not answer within 0.1 s"),
      std::string::npos)
      << none.error().message;
}

TEST(TcpChannel, error_names_port_in_use) {
  const uint16_t port = free_port();
  const auto first = Listener::open("127.0.0.1", port);
  ASSERT_TRUE(first);
  const auto second = Listener::open("127.0.0.1", port);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("cannot listen on 127.0.0.1:" + std::to_string(port)),
            std::string::npos);
}

TEST(TcpChannel, accept_times_out_without_clients) {
  auto listener = Listener::open("127.0.0.1", free_port());
  ASSERT_TRUE(listener);
  EXPECT_EQ(listener->accept(50ms).error().code, ETIMEDOUT);
}

// A client of another protocol connects, for example a web browser.
TEST(TcpChannel, rejects_other_protocols) {
  const uint16_t port = free_port();
  auto listener = Listener::open("127.0.0.1", port);
  ASSERT_TRUE(listener);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  auto server = listener->accept(2s);
  ASSERT_TRUE(server);
  ASSERT_EQ(write(fd, "GET / HTTP/1.1\n", 15), 15);
  const auto message = next(**server);
  close(fd);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, EPROTO);
}

TEST(CompletionStatus, every_verbs_status_has_name_and_hint) {
  EXPECT_EQ(status_name(IBV_WC_RETRY_EXC_ERR), "IBV_WC_RETRY_EXC_ERR");
  for (int status = IBV_WC_SUCCESS; status <= IBV_WC_GENERAL_ERR; ++status) {
    EXPECT_TRUE(status_name(static_cast<ibv_wc_status>(status)).starts_with("IBV_WC_")) << status;
    EXPECT_FALSE(status_hint(static_cast<ibv_wc_status>(status)).empty()) << status;
  }
}

TEST(CompletionStatus, failure_message_names_queue_pair_message_and_status) {
  ibv_wc completion{};
  completion.qp_num = 0x12;
  completion.status = IBV_WC_RETRY_EXC_ERR;
  EXPECT_EQ(failure_sentence(completion, 5),
            "queue pair 0x000012 failed at message 5: the peer does not respond (IBV_WC_RETRY_EXC_ERR)");
}

}  // namespace
}  // namespace roci::perf
