#include "port/dpdk/memif_gate.hpp"

#include <pthread.h>
#include <rte_alarm.h>

#include <algorithm>
#include <csignal>

#include "base/log.hpp"
#include "base/os/waiting.hpp"

namespace roci {
namespace {

// Delay until the next callback. An alarm that is due when a callback
// returns runs at once, before the thread reads other events.
constexpr uint64_t kOutMicroseconds = 20;
constexpr Nanos kMaxCallbackTime = 20ms;

// A message of the driver to a closed peer would otherwise end the process.
void ignore_broken_pipes() {
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
}

}  // namespace

bool MemifGate::QueueUser::enter() {
  const MemifGate& gate = instance();
  // Sets `active_` before it reads `open_`; interrupt_callback() writes `open_` before
  // it reads `active_`. At least one of the two sees the other.
  active_.store(true, std::memory_order_seq_cst);
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

void MemifGate::add(QueueUser& user, Nanos max_delay) {
  const std::lock_guard guard(mutex_);
  users_.push_back({&user, max_delay});
  if (!armed_) arm();
}

void MemifGate::remove(QueueUser& user) {
  const std::lock_guard guard(mutex_);
  std::erase_if(users_, [&](const Known& known) { return known.user == &user; });
}

void MemifGate::end_wait() {
  const std::lock_guard guard(mutex_);
  wait_ended_ = true;
  wait_ended_event_.notify_all();
}

// Requires the mutex.
void MemifGate::arm() {
  armed_ = rte_eal_alarm_set(kOutMicroseconds, interrupt_callback, this) == 0;
  if (armed_) return;
  // Without an alarm the gate stays open: a race at a peer's exit is better than a port without traffic.
  log().error("DPDK's alarm cannot be set; the exit of a memif peer may terminate this process");
  open_.store(true, std::memory_order_seq_cst);
}

bool MemifGate::any_active() const {
  return std::any_of(users_.begin(), users_.end(),
                     [](const Known& known) { return known.user->active_.load(std::memory_order_seq_cst); });
}

void MemifGate::interrupt_callback(void* passed) {
  MemifGate& gate = *static_cast<MemifGate*>(passed);
  ignore_broken_pipes();
  std::unique_lock lock(gate.mutex_);
  if (gate.users_.empty()) {
    gate.armed_ = false;
    return;
  }
  Nanos stay = kMaxCallbackTime;
  for (const Known& known : gate.users_) stay = std::min(stay, known.max_delay);
  gate.open_.store(true, std::memory_order_seq_cst);
  gate.wait_ended_event_.wait_for(lock, stay, [&gate] { return gate.wait_ended_; });
  gate.wait_ended_ = false;
  gate.open_.store(false, std::memory_order_seq_cst);
  for (Backoff backoff; gate.any_active();) {
    lock.unlock();
    backoff.wait();
    lock.lock();
  }
  gate.arm();
}

}  // namespace roci
