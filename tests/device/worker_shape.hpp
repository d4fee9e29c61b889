// Numbers of workers and receive queues of two hosts, for tests in virtual time.
#pragma once

#include <array>
#include <cstdint>

#include "support/hosts/two_hosts.hpp"

namespace roci::test {

struct WorkerShape {
  const char* name;
  std::array<uint32_t, 2> workers;
  std::array<uint16_t, 2> queues;
  bool apart = false;  // workers are polled separately
};

inline TwoHostsOptions options_for(const WorkerShape& shape) {
  TwoHostsOptions options;
  options.workers = shape.workers;
  options.queues = shape.queues;
  options.poll_workers_apart = shape.apart;
  options.cq_entries = 4096;
  return options;
}

inline uint32_t worker_of_qp(const Side& side, const QueuePair& qp) {
  return worker_of(Qpn{qp.qp_num()}, side.device->host().workers());
}

}  // namespace roci::test
