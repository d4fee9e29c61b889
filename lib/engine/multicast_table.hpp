// Which queue pairs of a host are attached to which multicast group (IBTA 10.5.2).
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "wire/address.hpp"

namespace roci {

struct AttachedQueuePair;

// Changed with all tokens in hand, read with any.
class MulticastTable {
 public:
  static constexpr size_t kMaxGroups = 8192;
  static constexpr size_t kMaxMembers = 240;  // of a group

  // Twice is as good as once: a queue pair gets one copy. ENOMEM when the table or the group is full.
  Status attach(const Gid& group, AttachedQueuePair& qp);
  // EINVAL when it is not attached.
  Status detach(const Gid& group, AttachedQueuePair& qp);
  void detach_all(const AttachedQueuePair& qp);

  // Empty for a group that nobody is attached to.
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
