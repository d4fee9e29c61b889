#include "port/memif_gate.hpp"

#include <pthread.h>
#include <rte_alarm.h>

#include <algorithm>
#include <csignal>

#include "base/log.hpp"
#include "base/waiting.hpp"

namespace roci {
namespace {

// Delay until the next callback. An alarm that is due when a callback
// returns runs at once, before the thread reads other events.
constexpr uint64_t kOutMicroseconds = 20;
constexpr Nanos kMaxStay = 20ms;

// A message of the driver to a closed peer would otherwise end the process.
void ignore_broken_pipes() {
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
}

}  // namespace

bool MemifGate::Visitor::enter() {
  const MemifGate& gate = instance();
  // Sets `inside_` before it reads `open_`; wait_inside() writes `open_` before
  // it reads `inside_`. At least one of the two sees the other.
  inside_.store(true, std::memory_order_seq_cst);
  if (gate.open_.load(std::memory_order_seq_cst)) [[likely]]
    return true;
  leave();
  return false;
}

MemifGate& MemifGate::instance() {
  // Never destroyed: DPDK's threads may run while static objects are destroyed.
  static auto& gate = *new MemifGate;
  return gate;
}

void MemifGate::add(Visitor& visitor, Nanos patience) {
  const std::lock_guard guard(mutex_);
  visitors_.push_back({&visitor, patience});
  if (!armed_) arm();
}

void MemifGate::remove(Visitor& visitor) {
  const std::lock_guard guard(mutex_);
  std::erase_if(visitors_, [&](const Known& known) { return known.visitor == &visitor; });
}

void MemifGate::hurry() {
  const std::lock_guard guard(mutex_);
  hurried_ = true;
  hurry_.notify_all();
}

// Requires the mutex.
void MemifGate::arm() {
  armed_ = rte_eal_alarm_set(kOutMicroseconds, wait_inside, this) == 0;
  if (armed_) return;
  // Without an alarm the gate stays open: a race at a peer's exit is better than a port without traffic.
  log().error("DPDK's alarm cannot be set; the exit of a memif peer may terminate this process");
  open_.store(true, std::memory_order_seq_cst);
}

bool MemifGate::is_occupied() const {
  return std::any_of(visitors_.begin(), visitors_.end(), [](const Known& known) {
    return known.visitor->inside_.load(std::memory_order_seq_cst);
  });
}

void MemifGate::wait_inside(void* passed) {
  MemifGate& gate = *static_cast<MemifGate*>(passed);
  ignore_broken_pipes();
  std::unique_lock lock(gate.mutex_);
  if (gate.visitors_.empty()) {
    gate.armed_ = false;
    return;
  }
  Nanos stay = kMaxStay;
  for (const Known& known : gate.visitors_) stay = std::min(stay, known.patience);
  gate.open_.store(true, std::memory_order_seq_cst);
  gate.hurry_.wait_for(lock, stay, [&gate] { return gate.hurried_; });
  gate.hurried_ = false;
  gate.open_.store(false, std::memory_order_seq_cst);
  for (Backoff backoff; gate.is_occupied();) {
    lock.unlock();
    backoff.wait();
    lock.lock();
  }
  gate.arm();
}

}  // namespace roci
