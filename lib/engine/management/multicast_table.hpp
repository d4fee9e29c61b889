// Table of the queue pairs that are attached to each multicast group of a host (IBTA 10.5.2).
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "wire/headers/address.hpp"

namespace roci {

struct AttachedQueuePair;

// Modified while all tokens are held, read with any token.
class MulticastTable {
 public:
  static constexpr size_t kMaxGroups = 8192;
  static constexpr size_t kMaxMembers = 240;  // per group

  // A second attach of the same queue pair has no effect: it gets one copy. ENOMEM if the table or the group is full.
  Status attach(const Gid& group, AttachedQueuePair& qp);
  // EINVAL if the queue pair is not attached.
  Status detach(const Gid& group, AttachedQueuePair& qp);
  void detach_all(const AttachedQueuePair& qp);

  // Empty for a group without attached queue pairs.
  [[nodiscard]] std::span<AttachedQueuePair* const> members(const Gid& group) const {
    const auto found = groups_.find(group);
    if (found == groups_.end()) return {};
    return found->second;
  }
  [[nodiscard]] size_t groups() const { return groups_.size(); }

 private:
  std::unordered_map<Gid, std::vector<AttachedQueuePair*>> groups_;
};

}  // namespace roci
