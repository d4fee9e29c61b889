#include "engine/management/multicast_table.hpp"

#include <algorithm>

namespace roci {

Status MulticastTable::attach(const Gid& group, AttachedQueuePair& qp) {
  auto found = groups_.find(group);
  if (found == groups_.end()) {
    if (groups_.size() == kMaxGroups) {
      return fail("multicast: group " + group.to_string() + " exceeds the device's limit on groups, " +
                      std::to_string(kMaxGroups),
                  ENOMEM);
    }
    found = groups_.emplace(group, std::vector<AttachedQueuePair*>()).first;
  }
  std::vector<AttachedQueuePair*>& members = found->second;
  if (std::ranges::find(members, &qp) != members.end()) return {};
  if (members.size() == kMaxMembers) {
    return fail("multicast: group " + group.to_string() + " has " + std::to_string(kMaxMembers) +
                    " queue pairs attached, the maximum",
                ENOMEM);
  }
  members.push_back(&qp);
  return {};
}

Status MulticastTable::detach(const Gid& group, AttachedQueuePair& qp) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || std::erase(found->second, &qp) == 0)
    return fail("multicast: the queue pair is not attached to group " + group.to_string());
  if (found->second.empty()) groups_.erase(found);
  return {};
}

void MulticastTable::detach_all(const AttachedQueuePair& qp) {
  for (auto group = groups_.begin(); group != groups_.end();) {
    std::erase(group->second, &qp);
    group = group->second.empty() ? groups_.erase(group) : std::next(group);
  }
}

}  // namespace roci
