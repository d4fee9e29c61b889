// XRC on the hosts of two_hosts.hpp and lone_host.hpp: domains, shared receive queues, initiators and targets.
#pragma once

#include <memory>

#include "support/hosts/services.hpp"

namespace roci::test {

std::unique_ptr<SharedReceiveQueue> make_xrc_srq(Side& side, XrcDomain& domain, CompletionQueue& cq,
                                                 uint32_t max_wr = 16, uint32_t max_sge = 2);
std::unique_ptr<QueuePair> make_target(XrcDomain& domain, void* context = nullptr);

// Like SendOptions of services.hpp, for shared receive queue `srq`. Also atomics, with `compare_add` and `swap`.
struct XrcOptions {
  SendOptions request;
  uint32_t srq = 0;
  uint64_t compare_add = 0;
  uint64_t swap = 0;
};
int send_xrc(Side& side, QueuePair& qp, const XrcOptions& options);

// The completions of one queue since the last call: "7 SUCCESS 300" with the length, or "7 status 5".
Lines completion_lines_of(CompletionQueue& cq);

}  // namespace roci::test
