// The client. GET reads the server's memory by RDMA READ; PUT and DELETE are requests to the server. Calls block until
// they are complete; used by one thread at a time. After a connection loss every call fails with the error in lost();
// create a new Client.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "connection.hpp"
#include "protocol.hpp"
#include "roci/device.hpp"

namespace kv {

struct ClientConfig {
  std::string host = "127.0.0.1";
  std::string port = "7471";
  std::chrono::milliseconds connect_timeout{10'000};  // for the server to start, and to answer the greeting
  uint8_t timeout = kDefaultTimeout;                  // ibv_qp_attr::timeout
};

class Client {
 public:
  static roci::Result<std::unique_ptr<Client>> connect(roci::Device& device, const ClientConfig& config);
  ~Client();

  // Errors: ENOENT if the key does not exist; EAGAIN if the server was writing to the bucket at every READ.
  roci::Result<std::string> get(std::string_view key);
  // Errors: ENAMETOOLONG (key), EMSGSIZE (value), ENOSPC (no free entry for the key).
  roci::Status put(std::string_view key, std::string_view value);
  // Error: ENOENT if the key does not exist.
  roci::Status remove(std::string_view key);

  // READs that were repeated because the server was writing to the bucket.
  [[nodiscard]] uint64_t repeated() const { return repeated_; }
  // The reason of a connection loss, if any.
  [[nodiscard]] const std::optional<roci::Error>& lost() const { return lost_; }

 private:
  // Memory that the device reads and writes.
  struct Buffers {
    Bucket bucket;
    std::array<char, kMaxRequest> request;
    Answer answer;
  };

  Client(roci::Device& device, const ClientConfig& config) : device_(device), config_(config) {}
  roci::Status set_up();
  roci::Status greet();
  roci::Status read_bucket(uint64_t bucket);
  roci::Result<Status> send_request(Operation operation, std::string_view key, std::string_view value);
  roci::Status post_receive();
  roci::Status post(ibv_wr_opcode opcode, const void* bytes, size_t length, uint64_t remote);
  // Waits for `count` completions.
  roci::Status wait(int count);
  [[nodiscard]] ibv_sge piece(const void* bytes, size_t length) const;
  roci::Status lose(std::string why, int code);

  roci::Device& device_;
  ClientConfig config_;
  int fd_ = -1;
  Buffers buffers_{};
  std::unique_ptr<roci::ProtectionDomain> pd_;
  std::unique_ptr<roci::MemoryRegion> region_;
  std::unique_ptr<roci::CompletionQueue> cq_;
  std::unique_ptr<roci::QueuePair> queue_pair_;
  ServerHello server_{};
  uint32_t next_id_ = 0;
  uint64_t repeated_ = 0;
  std::optional<roci::Error> lost_;
};

}  // namespace kv
