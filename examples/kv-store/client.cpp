#include "client.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <thread>

#include "../common/tcp.h"
#include "connection.hpp"
#include "reader.hpp"

namespace kv {
namespace {

constexpr int kMaxRepeats = 10'000;       // retries of a READ
constexpr int kRoundsBetweenLooks = 512;  // without a completion, before the TCP connection is checked

roci::Status check_key(std::string_view key) {
  if (key.empty())
    return roci::fail("the key is empty; 1 to " + std::to_string(kMaxKey) + " bytes are allowed", EINVAL);
  if (key.size() <= kMaxKey) return {};
  return roci::fail("the key has " + std::to_string(key.size()) + " bytes; at most " +
                        std::to_string(kMaxKey) + " are allowed",
                    ENAMETOOLONG);
}

roci::Status check_value(std::string_view value) {
  if (value.size() <= kMaxValue) return {};
  return roci::fail("the value has " + std::to_string(value.size()) + " bytes; at most " +
                        std::to_string(kMaxValue) + " are allowed",
                    EMSGSIZE);
}

roci::Status missing() { return roci::fail("the key does not exist", ENOENT); }

roci::Status outcome(Status status) {
  switch (status) {
    case Status::kOk:
      return {};
    case Status::kMissing:
      return missing();
    case Status::kFull:
      return roci::fail("the table is full: neither bucket of the key has a free slot", ENOSPC);
    case Status::kBadKey:
    case Status::kBadValue:
    case Status::kBadRequest:
      break;
  }
  return roci::fail("the server rejected the request (" + std::to_string(static_cast<uint32_t>(status)) + ")",
                    EPROTO);
}

}  // namespace

roci::Result<std::unique_ptr<Client>> Client::connect(roci::Device& device, const ClientConfig& config) {
  std::unique_ptr<Client> client(new Client(device, config));
  ROCI_TRY(client->set_up());
  ROCI_TRY(client->greet());
  return client;
}

Client::~Client() {
  if (fd_ >= 0) close(fd_);
}

roci::Status Client::set_up() {
  auto pd = device_.allocate_pd();
  if (!pd) return roci::fail(pd.error());
  pd_ = std::move(*pd);
  auto region = pd_->register_memory(&buffers_, sizeof buffers_, IBV_ACCESS_LOCAL_WRITE);
  if (!region) return roci::fail(region.error());
  region_ = std::move(*region);
  auto cq = device_.create_cq(16);
  if (!cq) return roci::fail(cq.error());
  cq_ = std::move(*cq);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 2, 1, 1, 0};
  auto queue_pair = pd_->create_qp(&init, *cq_, *cq_);
  if (!queue_pair) return roci::fail(queue_pair.error());
  queue_pair_ = std::move(*queue_pair);
  return prepare(*queue_pair_, 0);  // the server has no access to the client's memory
}

roci::Status Client::greet() {
  const auto connect_timeout = static_cast<int>(config_.connect_timeout.count());
  const std::string where = config_.host + " port " + config_.port;
  fd_ = tcp_connect(config_.host.c_str(), config_.port.c_str(), connect_timeout);
  if (fd_ < 0) return roci::fail("no server at " + where + ": " + std::strerror(-fd_), -fd_);
  auto own = endpoint_of(device_, *queue_pair_, random_psn());
  if (!own) return roci::fail(own.error());
  const ClientHello hello{kMagic, *own};
  int status = tcp_send(fd_, &hello, sizeof hello, connect_timeout);
  if (status == 0) status = tcp_receive(fd_, &server_, sizeof server_, connect_timeout);
  if (status != 0) return roci::fail(where + " sent no greeting: " + std::strerror(-status), -status);
  if (server_.magic != kMagic) return roci::fail(where + " is not a server of this version", EPROTO);
  if (server_.refused != 0) {
    const auto code = static_cast<int>(server_.refused);
    return roci::fail(where + " rejected the client: " + std::strerror(code), code);
  }
  if (!std::has_single_bit(server_.buckets)) return roci::fail(where + " reported an invalid table", EPROTO);
  ROCI_TRY(device_.resolve(server_.endpoint.gid, config_.connect_timeout));
  return kv::connect(*queue_pair_, *own, server_.endpoint, config_.timeout);
}

// A PUT does not move keys between buckets. A key found in neither bucket was therefore missing at some time between
// the two READs.
roci::Result<std::string> Client::get(std::string_view key) {
  ROCI_TRY(check_key(key));
  const auto candidates = buckets_of(key, server_.buckets);
  const size_t count = candidates[0] == candidates[1] ? 1 : 2;
  std::string value;
  for (size_t i = 0; i < count; ++i) {
    Found found = Found::kChanging;
    for (int tries = 0; found == Found::kChanging; ++tries) {
      if (tries == kMaxRepeats) return roci::fail("the bucket was modified during each READ", EAGAIN);
      if (tries > 0) ++repeated_;
      ROCI_TRY(read_bucket(candidates[i]));
      found = find(buffers_.bucket, key, value);
    }
    if (found == Found::kValue) return value;
  }
  return roci::fail(missing().error());
}

roci::Status Client::put(std::string_view key, std::string_view value) {
  ROCI_TRY(check_key(key));
  ROCI_TRY(check_value(value));
  const auto status = send_request(Operation::kPut, key, value);
  if (!status) return roci::fail(status.error());
  return outcome(*status);
}

roci::Status Client::remove(std::string_view key) {
  ROCI_TRY(check_key(key));
  const auto status = send_request(Operation::kRemove, key, {});
  if (!status) return roci::fail(status.error());
  return outcome(*status);
}

roci::Status Client::read_bucket(uint64_t bucket) {
  ROCI_TRY(post(IBV_WR_RDMA_READ, &buffers_.bucket, sizeof(Bucket), server_.table + bucket * sizeof(Bucket)));
  return wait(1);
}

roci::Result<Status> Client::send_request(Operation operation, std::string_view key, std::string_view value) {
  const Request request{operation, ++next_id_, static_cast<uint32_t>(key.size()),
                        static_cast<uint32_t>(value.size())};
  char* out = buffers_.request.data();
  std::memcpy(out, &request, sizeof request);
  std::copy(key.begin(), key.end(), out + sizeof request);
  std::copy(value.begin(), value.end(), out + sizeof request + key.size());
  // The receive for the answer is posted before the request is sent.
  ROCI_TRY(post_receive());
  ROCI_TRY(post(IBV_WR_SEND, out, sizeof request + key.size() + value.size(), 0));
  ROCI_TRY(wait(2));
  if (buffers_.answer.id != request.id)
    return roci::fail(lose("unexpected response of the server", EPROTO).error());
  return buffers_.answer.status;
}

ibv_sge Client::piece(const void* bytes, size_t length) const {
  return {reinterpret_cast<uint64_t>(bytes), static_cast<uint32_t>(length), region_->lkey()};
}

roci::Status Client::post_receive() {
  if (lost_) return roci::fail(*lost_);
  ibv_sge sge = piece(&buffers_.answer, sizeof buffers_.answer);
  ibv_recv_wr request{0, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  const int error = queue_pair_->post_recv(&request, &bad);
  return error == 0 ? roci::Status{} : lose("posting a receive failed", error);
}

roci::Status Client::post(ibv_wr_opcode opcode, const void* bytes, size_t length, uint64_t remote) {
  if (lost_) return roci::fail(*lost_);
  ibv_sge sge = piece(bytes, length);
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = remote;
  request.wr.rdma.rkey = server_.rkey;
  ibv_send_wr* bad = nullptr;
  const int error = queue_pair_->post_send(&request, &bad);
  return error == 0 ? roci::Status{} : lose("posting a request failed", error);
}

// If the server has exited, the retries of a send expire, or the closed TCP connection is detected earlier. A receive
// alone has no time-out.
roci::Status Client::wait(int count) {
  for (int rounds = 1; count > 0; ++rounds) {
    std::array<ibv_wc, 2> completions;
    const int got = cq_->poll(static_cast<int>(completions.size()), completions.data());
    if (got < 0) return lose("the completion queue has overflowed", ENOBUFS);
    for (int i = 0; i < got; ++i) {
      const ibv_wc_status status = completions[static_cast<size_t>(i)].status;
      if (status != IBV_WC_SUCCESS)
        return lose("the connection failed: " + completion_text(status), ETIMEDOUT);
    }
    count -= got;
    if (got > 0) continue;
    std::this_thread::yield();
    if (rounds % kRoundsBetweenLooks == 0 && tcp_is_closed(fd_) != 0)
      return lose("the server closed the connection", ECONNRESET);
  }
  return {};
}

roci::Status Client::lose(std::string why, int code) {
  lost_ = roci::Error{std::move(why), code};
  return roci::fail(*lost_);
}

}  // namespace kv
