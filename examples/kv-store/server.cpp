#include "server.hpp"

#include <poll.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstring>

#include "../common/tcp.h"
#include "session.hpp"

namespace kv {
namespace {

constexpr int kBatch = 32;
constexpr int kIdleRounds = 1000;            // before the server sleeps
constexpr int kMaxSleep = 200;               // ms
constexpr int kBusyRoundsBetweenLooks = 64;  // before it checks the sockets
constexpr int kSendTimeout = 1000;           // ms, for a greeting
constexpr std::chrono::seconds kHelloTimeout{5};

}  // namespace

Server::Server(roci::Device& device, const ServerConfig& config)
    : device_(device), config_(config), buckets_(config.buckets), table_(buckets_) {}

Server::~Server() {
  if (listener_ >= 0) close(listener_);
}

roci::Result<std::unique_ptr<Server>> Server::open(roci::Device& device, const ServerConfig& config) {
  if (!std::has_single_bit(config.buckets) || config.buckets > 1U << 20)
    return roci::fail("the number of buckets must be a power of two up to 1048576");
  if (config.clients == 0 || config.clients > 1024) return roci::fail("1 to 1024 clients are allowed");
  std::unique_ptr<Server> server(new Server(device, config));
  ROCI_TRY(server->set_up());
  return server;
}

roci::Status Server::set_up() {
  auto pd = device_.allocate_pd();
  if (!pd) return roci::fail(pd.error());
  pd_ = std::move(*pd);
  // Clients have read access to the table only.
  auto region =
      pd_->register_memory(buckets_.data(), buckets_.size() * sizeof(Bucket), IBV_ACCESS_REMOTE_READ);
  if (!region) return roci::fail(region.error().within("the table"));
  region_ = std::move(*region);
  auto channel = device_.create_channel();
  if (!channel) return roci::fail(channel.error());
  channel_ = std::move(*channel);
  // For each session its receives and its answers. The device removes the completions of a closed session.
  const auto entries = static_cast<int>(config_.clients * 2 * kCredits);
  auto cq = device_.create_cq(entries, nullptr, channel_.get());
  if (!cq) return roci::fail(cq.error());
  cq_ = std::move(*cq);
  listener_ = tcp_listen(config_.address.c_str(), config_.port.c_str());
  if (listener_ < 0) {
    return roci::fail(
        "cannot listen on " + config_.address + " port " + config_.port + ": " + std::strerror(-listener_),
        -listener_);
  }
  return {};
}

roci::Status Server::run(const std::atomic<bool>& stop) {
  int idle = 0, busy = 0;
  while (!stop) {
    const auto served = serve_completions();
    if (!served) return roci::fail(served.error());
    if (*served) {
      idle = 0;
      if (++busy % kBusyRoundsBetweenLooks != 0) continue;
    } else if (++idle < kIdleRounds) {
      continue;
    } else {
      ROCI_TRY(sleep());
      idle = 0;
    }
    ROCI_TRY(accept_clients());
    // end() removes the session from the map.
    for (auto next = sessions_.begin(); next != sessions_.end();) read_hello(*(next++)->second);
  }
  return {};
}

roci::Status Server::accept_clients() {
  if (std::chrono::steady_clock::now() < accepts_from_) return {};
  for (;;) {
    const int fd = tcp_accept(listener_);
    if (fd == -EAGAIN) return {};
    if (fd < 0) return pause_accepting(-fd);
    accept_failed_ = false;
    if (sessions_.size() >= config_.clients) {
      const ServerHello full{kMagic, EUSERS, {}, 0, 0, 0};
      if (tcp_send(fd, &full, sizeof full, kSendTimeout) != 0)
        std::fprintf(stderr, "a client disconnected before its rejection was sent\n");
      close(fd);
      continue;
    }
    auto session = Session::open(fd, *pd_, *cq_);
    if (!session) {
      std::fprintf(stderr, "cannot accept a client: %s\n", session.error().message.c_str());
      continue;
    }
    const uint32_t number = (*session)->number();
    sessions_.emplace(number, std::move(*session));
  }
}

// Existing clients are served meanwhile. The first of several errors is printed.
roci::Status Server::pause_accepting(int error) {
  const std::string why = std::string("cannot accept clients: ") + std::strerror(error);
  if (tcp_accept_is_over(-error) != 0) return roci::fail(why, error);
  if (!accept_failed_) std::fprintf(stderr, "%s; trying again\n", why.c_str());
  accept_failed_ = true;
  accepts_from_ = std::chrono::steady_clock::now() + std::chrono::milliseconds{ACCEPT_PAUSE_MS};
  return {};
}

// Reads a session's TCP connection: the hello, afterwards only its close.
void Server::read_hello(Session& session) {
  if (session.greeted()) {
    if (tcp_is_closed(session.fd()) != 0) end(session, "it disconnected");
    return;
  }
  const auto whole = session.receive_hello();
  if (!whole) return end(session, whole.error().message);
  if (*whole) return greet(session);
  if (std::chrono::steady_clock::now() - session.since() > kHelloTimeout) end(session, "no hello message");
}

void Server::greet(Session& session) {
  if (session.hello().magic != kMagic) return end(session, "it is not a client of this version");
  auto own = endpoint_of(device_, session.queue_pair(), random_psn());
  if (!own) return end(session, own.error().message);
  if (auto connected = connect(session.queue_pair(), *own, session.hello().endpoint, config_.timeout);
      !connected)
    return end(session, connected.error().message);
  const ServerHello hello{
      kMagic, 0, *own, region_->rkey(), reinterpret_cast<uint64_t>(buckets_.data()), buckets_.size()};
  if (tcp_send(session.fd(), &hello, sizeof hello, kSendTimeout) != 0) return end(session, "it disconnected");
  session.set_greeted();
}

roci::Result<bool> Server::serve_completions() {
  std::array<ibv_wc, kBatch> completions;
  const int count = cq_->poll(kBatch, completions.data());
  if (count < 0) return roci::fail("the completion queue has overflowed", ENOBUFS);
  for (int i = 0; i < count; ++i) {
    const ibv_wc& wc = completions[static_cast<size_t>(i)];
    const auto found = sessions_.find(wc.qp_num);
    if (found == sessions_.end()) continue;  // closed for an earlier completion of this batch
    Session& session = *found->second;
    if (wc.status != IBV_WC_SUCCESS) {
      end(session, "its connection failed: " + completion_text(wc.status));
    } else if ((wc.wr_id & kAnswerFlag) != 0) {
      if (auto posted = session.post_receive(static_cast<uint32_t>(wc.wr_id & ~kAnswerFlag)); !posted)
        end(session, posted.error().message);
    } else {
      serve(session, static_cast<uint32_t>(wc.wr_id), wc.byte_len);
    }
  }
  return count > 0;
}

void Server::serve(Session& session, uint32_t slot, uint32_t length) {
  const std::span<const char> bytes = session.request(slot, length);
  Request request{};
  Answer answer{Status::kBadRequest, 0};
  if (bytes.size() >= sizeof request) {
    std::memcpy(&request, bytes.data(), sizeof request);
    answer.id = request.id;
    const std::string_view rest(bytes.data() + sizeof request, bytes.size() - sizeof request);
    // The client's lengths are not trusted; their sum cannot overflow in 64 bits.
    if (uint64_t{request.key_length} + request.value_length == rest.size()) {
      const std::string_view key = rest.substr(0, request.key_length),
                             value = rest.substr(request.key_length);
      if (request.operation == Operation::kPut) answer.status = table_.put(key, value);
      if (request.operation == Operation::kRemove) answer.status = table_.remove(key);
    }
  }
  if (auto sent = session.send(slot, answer); !sent) end(session, sent.error().message);
}

void Server::end(const Session& session, const std::string& why) {
  std::printf("client %u: %s\n", session.number(), why.c_str());
  std::fflush(stdout);
  sessions_.erase(session.number());
}

// Requests an event and polls once more before sleeping, so that no completion is missed.
roci::Status Server::sleep() {
  cq_->request_notify(false);
  const auto served = serve_completions();
  if (!served) return roci::fail(served.error());
  if (*served) return {};
  // poll() ignores negative descriptors.
  const bool accepts = std::chrono::steady_clock::now() >= accepts_from_;
  std::vector<pollfd> descriptors{{accepts ? listener_ : -1, POLLIN, 0}, {channel_->fd(), POLLIN, 0}};
  for (const auto& [number, session] : sessions_) descriptors.push_back({session->fd(), POLLIN, 0});
  const int longest = accepts ? kMaxSleep : ACCEPT_PAUSE_MS;
  if (poll(descriptors.data(), descriptors.size(), longest) < 0 && errno != EINTR)
    return roci::fail(std::string("cannot sleep: ") + std::strerror(errno), errno);
  uint32_t events = 0;
  if ((descriptors[1].revents & POLLIN) != 0) {
    while (channel_->get_event()) ++events;
  }
  cq_->ack_events(events);
  return {};
}

}  // namespace kv
