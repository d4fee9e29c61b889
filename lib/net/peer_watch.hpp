// Detection of peer exit for a shared-memory port. A pidfd reports the exit of each process with which the port has
// exchanged frames. The exit is reported to the port, together with the crash notifications of that process for this
// port (port/crash_notice.hpp). One thread, which sleeps between events.
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
#include "port/shm/shm_port.hpp"

namespace roci {

class PeerWatch final : public ShmPort::ContactListener {
 public:
  // `folder`: of the network. `stale_files`: files of earlier owners of this slot, which are removed after their peers had
  // time to read them. The port must outlive this object.
  static Result<std::unique_ptr<PeerWatch>> start(ShmPort& port, std::filesystem::path folder,
                                                  std::vector<std::filesystem::path> stale_files);
  ~PeerWatch() override;

  void on_contact(uint32_t slot, const ShmPort::Owner& owner) override;

 private:
  struct Peer {
    uint32_t slot;
    ShmPort::Owner owner;
    int pidfd;
  };

  PeerWatch(ShmPort& port, std::filesystem::path folder, std::vector<std::filesystem::path> stale_files,
            int event)
      : port_(port), folder_(std::move(folder)), stale_files_(std::move(stale_files)), event_(event) {}
  void run();
  void watch_contacts();
  // Watches the process, or reports that it has exited. An error means that neither is possible.
  Status watch(uint32_t slot, const ShmPort::Owner& owner);
  void report(uint32_t slot, const ShmPort::Owner& owner);
  void remove_stale_files();

  ShmPort& port_;
  const std::filesystem::path folder_;
  std::vector<std::filesystem::path> stale_files_;
  const int event_;  // eventfd
  std::mutex contacts_mutex_;
  std::vector<std::pair<uint32_t, ShmPort::Owner>> contacts_;  // slots and owners that are not watched yet
  std::atomic<bool> stop_{false};
  // Accessed by the thread only.
  std::vector<Peer> peers_;
  std::vector<std::pair<uint32_t, ShmPort::Owner>> unwatched_;  // for lack of descriptors; retried
  std::thread thread_;
};

}  // namespace roci
