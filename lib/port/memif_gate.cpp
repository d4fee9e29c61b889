#include "port/memif_gate.hpp"

#include <pthread.h>
#include <rte_alarm.h>

#include <algorithm>
#include <csignal>

#include "base/log.hpp"
#include "base/waiting.hpp"

namespace roci {
namespace {

// Until the next callback. DPDK calls at once what is due when a callback returns, and looks at nothing else meanwhile.
constexpr uint64_t kOutMicroseconds = 20;
constexpr Nanos kLongestStay = 20ms;

// The driver's messages to a side that has gone would end the process.
void ignore_broken_pipes() {
  sigset_t pipes;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
}

}  // namespace

bool MemifGate::Visitor::enter() {
  const MemifGate& gate = instance();
  // In this order, as the other side has its own two: one of both sees the other.
  inside_.store(true, std::memory_order_seq_cst);
  if (gate.open_.load(std::memory_order_seq_cst)) [[likely]]
    return true;
  leave();
  return false;
}

MemifGate& MemifGate::instance() {
  // Never destroyed: DPDK's threads come by while static objects are torn down.
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

// With the mutex in hand.
void MemifGate::arm() {
  armed_ = rte_eal_alarm_set(kOutMicroseconds, wait_inside, this) == 0;
  if (armed_) return;
  // Nothing will shut it any more: better a race with a peer's end than a port that carries nothing.
  log().error("DPDK's alarm cannot be set; the exit of a memif peer may terminate this process");
  open_.store(true, std::memory_order_seq_cst);
}

bool MemifGate::anybody_inside() const {
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
  Nanos stay = kLongestStay;
  for (const Known& known : gate.visitors_) stay = std::min(stay, known.patience);
  gate.open_.store(true, std::memory_order_seq_cst);
  gate.hurry_.wait_for(lock, stay, [&gate] { return gate.hurried_; });
  gate.hurried_ = false;
  gate.open_.store(false, std::memory_order_seq_cst);
  for (Backoff backoff; gate.anybody_inside();) {
    lock.unlock();
    backoff.wait();
    lock.lock();
  }
  gate.arm();
}

}  // namespace roci
