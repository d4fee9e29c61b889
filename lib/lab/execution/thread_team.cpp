#include "lab/execution/thread_team.hpp"

namespace roci::lab {

ThreadTeam::ThreadTeam(unsigned threads) {
  for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this] { run_worker(); });
}

ThreadTeam::~ThreadTeam() {
  body_ = nullptr;
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadTeam::parallel_for(size_t count, const std::function<void(size_t)>& body) {
  body_ = &body;
  count_ = count;
  next_.store(0, std::memory_order_relaxed);
  working_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  work();
  for (uint32_t left = 0; (left = working_.load(std::memory_order_acquire)) != 0;)
    working_.wait(left, std::memory_order_acquire);
}

void ThreadTeam::work() {
  for (size_t i = 0; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) (*body_)(i);
}

// Each worker takes part in each loop, so the fields of a loop do not change before all workers have finished it.
void ThreadTeam::run_worker() {
  for (uint32_t seen = 0;; ++seen) {
    loop_.wait(seen, std::memory_order_acquire);
    if (body_ == nullptr) return;
    work();
    if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) working_.notify_one();
  }
}

}  // namespace roci::lab
