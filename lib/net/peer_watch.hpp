// Notices the exit of processes that a shared-memory port has exchanged frames with, as soon as the kernel does (pidfd), and reports
// it to the port, with the frames that the process has left for this one (port/last_words.hpp). One thread, which sleeps all the
// time in between.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "port/shm_port.hpp"

namespace roci {

class PeerWatch final : public ShmPort::ContactListener {
 public:
  // `folder`: of the network. `outlived`: files of earlier owners of this slot, to be removed once their peers have had time to
  // read them. The port outlives it.
  static Result<std::unique_ptr<PeerWatch>> start(ShmPort& port, std::filesystem::path folder,
                                                  std::vector<std::filesystem::path> outlived);
  ~PeerWatch() override;

  void on_contact(uint32_t slot, const ShmPort::Owner& owner) override;

 private:
  struct Peer {
    uint32_t slot;
    ShmPort::Owner owner;
    int pidfd;
  };

  PeerWatch(ShmPort& port, std::filesystem::path folder, std::vector<std::filesystem::path> outlived,
            int event)
      : port_(port), folder_(std::move(folder)), outlived_(std::move(outlived)), event_(event) {}
  void run();
  void watch(uint32_t slot, const ShmPort::Owner& owner);
  void report(uint32_t slot, const ShmPort::Owner& owner);
  void remove_outlived();

  ShmPort& port_;
  const std::filesystem::path folder_;
  std::vector<std::filesystem::path> outlived_;
  const int event_;  // eventfd
  std::mutex contacts_mutex_;
  std::vector<std::pair<uint32_t, ShmPort::Owner>> contacts_;  // slots and their owners, not watched yet
  std::atomic<bool> stop_{false};
  std::vector<Peer> peers_;  // of the thread
  std::thread thread_;
};

}  // namespace roci
