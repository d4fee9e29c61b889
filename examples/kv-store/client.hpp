// The client: GET by RDMA READ of the server's memory, PUT and DELETE by asking the server. Calls wait for their end; one
// thread at a time. After a lost connection every call fails with ECONNRESET or ETIMEDOUT, and a new Client is needed.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol.hpp"
#include "roci/device.hpp"

namespace kv {

struct ClientConfig {
  std::string host = "127.0.0.1";
  std::string port = "7471";
  std::chrono::milliseconds patience{10'000};  // for the server to be there, and to answer a greeting
  uint8_t timeout = 0;                         // ibv_qp_attr::timeout
};

class Client {
 public:
  static roci::Result<std::unique_ptr<Client>> connect(roci::Device& device, const ClientConfig& config);
  ~Client();

  // ENOENT when there is no such key. EAGAIN when the bucket was being written each time it was read.
  roci::Result<std::string> get(std::string_view key);
  // ENAMETOOLONG, EMSGSIZE, ENOSPC: the key is too long, the value is, the table has no place for the key.
  roci::Status put(std::string_view key, std::string_view value);
  // ENOENT when there is no such key.
  roci::Status remove(std::string_view key);

  // READs that came while the server was writing, and were repeated.
  [[nodiscard]] uint64_t repeated() const { return repeated_; }
  // Why the connection is lost, once it is.
  [[nodiscard]] const std::optional<roci::Error>& lost() const { return lost_; }

 private:
  // What the device reads from and writes to.
  struct Buffers {
    Bucket bucket;
    std::array<char, kMaxRequest> request;
    Answer answer;
  };

  Client(roci::Device& device, const ClientConfig& config) : device_(device), config_(config) {}
  roci::Status set_up();
  roci::Status greet();
  roci::Status read_bucket(uint64_t bucket);
  roci::Result<Status> ask(Operation operation, std::string_view key, std::string_view value);
  roci::Status post_receive();
  roci::Status post(ibv_wr_opcode opcode, const void* bytes, size_t length, uint64_t remote);
  // Waits for so many completions.
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
