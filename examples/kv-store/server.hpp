// The server: owns the table and processes PUT and DELETE requests. GETs do not involve it.
//
//   a client connects over TCP and sends hello -> a Session with its own queue pair; all share one completion queue
//   a request arrives                          -> the table is changed, the answer is sent
//   the client closes TCP, violates the protocol, or a completion has an error
//                                              -> its Session is closed, without effect on other sessions
//
// Used by one thread. It polls while there is work, otherwise it sleeps on the completion channel.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "connection.hpp"
#include "protocol.hpp"
#include "roci/device.hpp"
#include "table.hpp"

namespace kv {

class Session;

struct ServerConfig {
  std::string address = "127.0.0.1";
  std::string port = "7471";
  uint64_t buckets = 4096;            // a power of two
  uint32_t clients = 64;              // maximum of concurrent clients
  uint8_t timeout = kDefaultTimeout;  // ibv_qp_attr::timeout
};

class Server {
 public:
  static roci::Result<std::unique_ptr<Server>> open(roci::Device& device, const ServerConfig& config);
  ~Server();
  // Runs until `stop` is set, or until the device or the socket fails.
  roci::Status run(const std::atomic<bool>& stop);

 private:
  Server(roci::Device& device, const ServerConfig& config);
  roci::Status set_up();
  roci::Status accept_clients();
  roci::Status pause_accepting(int error);
  void read_hello(Session& session);
  void greet(Session& session);
  roci::Result<bool> serve_completions();  // returns whether there was a completion
  void serve(Session& session, uint32_t slot, uint32_t length);
  void end(const Session& session, const std::string& why);
  roci::Status sleep();

  roci::Device& device_;
  ServerConfig config_;
  int listener_ = -1;
  std::chrono::steady_clock::time_point accepts_from_{};  // after an error of the listener
  bool accept_failed_ = false;
  std::vector<Bucket> buckets_;
  Table table_;
  std::unique_ptr<roci::ProtectionDomain> pd_;
  std::unique_ptr<roci::MemoryRegion> region_;
  std::unique_ptr<roci::CompletionChannel> channel_;
  std::unique_ptr<roci::CompletionQueue> cq_;
  std::map<uint32_t, std::unique_ptr<Session>> sessions_;  // by queue pair number
};

}  // namespace kv
