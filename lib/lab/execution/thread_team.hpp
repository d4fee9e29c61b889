// A fixed number of threads that share the iterations of a loop. Replaces oneTBB in builds that link no shared libraries
// (ROCI_PORTABLE), and with ThreadSanitizer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace roci::lab {

class ThreadTeam {
 public:
  // `threads` includes the calling thread of parallel_for().
  explicit ThreadTeam(unsigned threads);
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  // Calls body(i) once for each i below `count`, in any order and thread, and returns after the last call. `body` must
  // not throw. Not reentrant, and for one calling thread at a time.
  void parallel_for(size_t count, const std::function<void(size_t)>& body);

 private:
  void work();
  void run_worker();

  const std::function<void(size_t)>* body_ = nullptr;  // null: the workers end
  size_t count_ = 0;
  std::atomic<size_t> next_ = 0;       // first iteration that no thread has started
  std::atomic<uint32_t> loop_ = 0;     // number of the loop; the workers wait for its change
  std::atomic<uint32_t> working_ = 0;  // workers that have not finished the loop
  std::vector<std::thread> workers_;
};

}  // namespace roci::lab
