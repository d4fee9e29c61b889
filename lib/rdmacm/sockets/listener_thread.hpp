// Thread that answers the requests of a listening socket while the program makes no call for the socket. A client may
// wait for several connections before it sends, and the server may wait for the data of the first one before it accepts
// the second one.
#pragma once

#include <functional>
#include <thread>

namespace roci::rdmacm::sockets {

class ListenerThread {
 public:
  // Calls `serve` while the descriptor is readable, from 50 ms after the creation on. If no thread can be created, only calls of the program answer
  // requests.
  ListenerThread(int fd, std::function<void()> serve);
  // Waits until `serve` has returned; the caller holds no lock that `serve` requires.
  ~ListenerThread();
  ListenerThread(const ListenerThread&) = delete;
  ListenerThread& operator=(const ListenerThread&) = delete;

 private:
  void run(int fd, const std::function<void()>& serve) const;

  int stop_ = -1;  // eventfd
  std::thread thread_;
};

}  // namespace roci::rdmacm::sockets
