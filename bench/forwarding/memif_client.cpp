#include "forwarding/memif_client.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace roci::bench {
namespace {

constexpr auto kRetry = std::chrono::milliseconds{50};
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};  // for a reply

struct Message {
  MemifMessageType type{};
  std::array<uint8_t, kMemifMessageBytes - sizeof(MemifMessageType)> body{};
};
static_assert(sizeof(Message) == kMemifMessageBytes);

template <class Body>
Message message(MemifMessageType type, const Body& body) {
  Message out{.type = type};
  std::memcpy(out.body.data(), &body, sizeof body);
  return out;
}

Error system_error(const std::string& what) { return {what + ": " + std::strerror(errno), errno}; }

Status send_message(int socket, Message sent, int file = -1) {
  iovec part{&sent, sizeof sent};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (file >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* with = CMSG_FIRSTHDR(&header);
    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(with), &file, sizeof file);
  }
  if (sendmsg(socket, &header, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof sent))
    return fail(system_error("cannot send a message to the memif server"));
  return {};
}

// Returns false if the server does not have the interface yet.
Result<bool> expect(int socket, MemifMessageType type) {
  Message got;
  const ssize_t bytes = recv(socket, &got, sizeof got, 0);
  if (bytes == 0) return false;
  if (bytes != static_cast<ssize_t>(sizeof got))
    return fail(system_error("no message from the memif server"));
  if (got.type == MemifMessageType::kDisconnect) return false;
  if (got.type != type)
    return fail("the memif server sent message type " + std::to_string(static_cast<int>(got.type)) +
                " where type " + std::to_string(static_cast<int>(type)) + " is required");
  return true;
}

}  // namespace

Result<std::unique_ptr<MemifClient>> MemifClient::create(unsigned switch_queues) {
  std::unique_ptr<MemifClient> client{new MemifClient};
  ROCI_TRY(client->make_memory(switch_queues));
  return client;
}

MemifClient::~MemifClient() {
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  for (const FromServer& way : from_server_) close(way.event);
  for (const int file : {memory_file_, to_server_event_, socket_}) {
    if (file >= 0) close(file);
  }
}

Status MemifClient::make_memory(unsigned switch_queues) {
  constexpr size_t kRing = sizeof(MemifRing) + kSize * sizeof(MemifDescriptor);
  const size_t rings = 1 + switch_queues;
  memory_bytes_ = rings * (kRing + size_t{kSize} * kBufferBytes);
  memory_file_ = memfd_create("roci-forwarding-load", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory_file_ < 0 || ftruncate(memory_file_, static_cast<off_t>(memory_bytes_)) != 0)
    return fail(system_error("cannot create shared memory"));
  void* memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file_, 0);
  if (memory == MAP_FAILED) return fail(system_error("cannot create shared memory"));
  memory_ = static_cast<uint8_t*>(memory);
  // No ring uses its event, since both sides poll. The protocol requires one.
  for (size_t i = 0; i < rings; ++i) {
    const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (event < 0) return fail(system_error("cannot create an eventfd"));
    auto* ring =
        new (memory_ + i * kRing) MemifRing{.cookie = kMemifCookie, .flags = 0, .head = 0, .tail = 0};
    for (uint16_t d = 0; d < kSize; ++d) {
      const size_t offset = rings * kRing + (i * kSize + d) * kBufferBytes;
      descriptor(ring, d) = {0, 0, kBufferBytes, static_cast<uint32_t>(offset), 0};
    }
    if (i == 0) {
      to_server_ = ring;
      to_server_event_ = event;
    } else {
      from_server_.push_back({ring, event});
    }
  }
  start_rings();
  return {};
}

// Sets the state of a new connection: the server has reset all counters to 0.
void MemifClient::start_rings() {
  to_server_->head = to_server_->tail = 0;
  for (FromServer& way : from_server_) {
    way.ring->flags = kRingWithoutInterrupts;
    way.ring->tail = way.received = 0;
    publish(way.ring->head, kSize);
  }
}

Status MemifClient::connect(const std::string& path, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto done = handshake(path);
    if (!done) return fail(done.error().within(path));
    if (*done) break;
    if (std::chrono::steady_clock::now() > deadline)
      return fail("no memif server at '" + path + "'", ECONNREFUSED);
    std::this_thread::sleep_for(kRetry);
  }
  start_rings();
  return {};
}

Result<bool> MemifClient::handshake(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail("the path is too long for a UNIX socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  // An abstract socket name has no terminating zero; a path has one.
  const bool is_file = !path.starts_with('@');
  if (!is_file) address.sun_path[0] = '\0';
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (is_file ? 1 : 0));
  if (socket_ >= 0) close(socket_);
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return fail(system_error("cannot create a socket"));
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return false;  // the server has not started yet
    return fail(system_error("cannot connect"));
  }
  using Type = MemifMessageType;
  const auto offset = [this](const MemifRing* ring) {
    return static_cast<uint32_t>(reinterpret_cast<const uint8_t*>(ring) - memory_);
  };
  const auto ring = [&](const MemifRing* which, uint16_t flags, size_t index) {
    return message(Type::kAddRing, MemifAddRing{.flags = flags,
                                                .index = static_cast<uint16_t>(index),
                                                .offset = offset(which),
                                                .log2_size = kLog2Size});
  };
  std::vector<std::pair<Message, int>> messages{
      {message(Type::kInit, MemifInit{}), -1},
      {message(Type::kAddRegion, MemifAddRegion{.index = 0, .size = memory_bytes_}), memory_file_},
      {ring(to_server_, kRingOfClientsFrames, 0), to_server_event_},
  };
  for (size_t i = 0; i < from_server_.size(); ++i)
    messages.emplace_back(ring(from_server_[i].ring, 0, i), from_server_[i].event);
  messages.emplace_back(message(Type::kConnect, MemifConnect{}), -1);
  auto reply = expect(socket_, Type::kHello);
  for (const auto& [text, file] : messages) {
    if (!reply || !*reply) break;
    ROCI_TRY(send_message(socket_, text, file));
    reply = expect(socket_, text.type == Type::kConnect ? Type::kConnected : Type::kAck);
  }
  return reply;
}

bool MemifClient::connected() const {
  if (socket_ < 0) return true;  // always, with a device in this process
  char byte = 0;
  const ssize_t bytes = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void MemifClient::prepare(uint16_t buffer, std::span<const uint8_t> frame) {
  MemifDescriptor& d = descriptor(to_server_, buffer);
  std::copy(frame.begin(), frame.end(), memory_ + d.offset);
  d.length = static_cast<uint32_t>(frame.size());
}

void MemifClient::give_back(FromServer& way, uint16_t count) {
  for (uint16_t i = 0; i < count; ++i) {
    MemifDescriptor& d = descriptor(way.ring, way.received++);
    d.length = kBufferBytes;
    d.flags = 0;
  }
  publish(way.ring->head, static_cast<uint16_t>(way.ring->head + count));
}

uint16_t MemifClient::receive(const std::function<void(std::span<const uint8_t>)>& look) {
  uint16_t sum = 0;
  for (FromServer& way : from_server_) {
    const uint16_t count = arrived(way);
    for (unsigned i = 0; i < count; ++i) {
      const MemifDescriptor& d = descriptor(way.ring, way.received + i);
      look({memory_ + d.offset, std::min(d.length, kBufferBytes)});
    }
    give_back(way, count);
    sum = static_cast<uint16_t>(sum + count);
  }
  return sum;
}

uint16_t MemifClient::take_all() {
  const uint16_t head = read(to_server_->head);
  const auto count = static_cast<uint16_t>(head - to_server_->tail);
  if (count > 0) publish(to_server_->tail, head);
  return count;
}

uint16_t MemifClient::answer(uint16_t count, uint32_t length) {
  MemifRing* ring = from_server_.front().ring;
  const uint16_t tail = ring->tail;
  count = std::min(count, static_cast<uint16_t>(read(ring->head) - tail));
  for (unsigned i = 0; i < count; ++i) descriptor(ring, tail + i).length = length;
  publish(ring->tail, static_cast<uint16_t>(tail + count));
  return count;
}

}  // namespace roci::bench
