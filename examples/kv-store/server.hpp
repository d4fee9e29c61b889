// The server: owns the table, answers PUT and DELETE. It hears nothing of GETs.
//
//   a client connects over TCP, says hello -> a Session with a queue pair of its own, all on one completion queue
//   a request arrives                      -> the table is changed, the answer leaves
//   the client is gone (TCP is closed), breaks the rules, or a completion has an error
//                                          -> its Session goes, and nobody else notices
//
// One thread. It polls while there is work and sleeps on the completion channel when there is none.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol.hpp"
#include "roci/device.hpp"
#include "table.hpp"

namespace kv {

class Session;

struct ServerConfig {
  std::string address = "127.0.0.1";
  std::string port = "7471";
  uint64_t buckets = 4096;  // a power of two
  uint32_t clients = 64;    // at a time
  uint8_t timeout = 0;      // ibv_qp_attr::timeout
};

class Server {
 public:
  static roci::Result<std::unique_ptr<Server>> open(roci::Device& device, const ServerConfig& config);
  ~Server();
  // Until `stop`, or until the device or the socket fails.
  roci::Status run(const std::atomic<bool>& stop);

 private:
  Server(roci::Device& device, const ServerConfig& config);
  roci::Status set_up();
  roci::Status accept_clients();
  void hear(Session& session);
  void greet(Session& session);
  roci::Result<bool> serve_completions();  // whether there was one
  void serve(Session& session, uint32_t slot, uint32_t length);
  void end(const Session& session, const std::string& why);
  roci::Status sleep();

  roci::Device& device_;
  ServerConfig config_;
  int listener_ = -1;
  std::vector<Bucket> buckets_;
  Table table_;
  std::unique_ptr<roci::ProtectionDomain> pd_;
  std::unique_ptr<roci::MemoryRegion> region_;
  std::unique_ptr<roci::CompletionChannel> channel_;
  std::unique_ptr<roci::CompletionQueue> cq_;
  std::map<uint32_t, std::unique_ptr<Session>> sessions_;  // by queue pair number
};

}  // namespace kv
