// Multicast groups: attaches the queue pair of an id to a group.
#include <algorithm>
#include <cerrno>

#include "rdmacm/addresses.hpp"
#include "rdmacm/id.hpp"

using namespace roci;          // NOLINT(google-build-using-namespace): this file defines the C API
using namespace roci::rdmacm;  // NOLINT(google-build-using-namespace): this file defines the C API

namespace {

constexpr uint32_t kGroupQpn = 0xffffff;

// Null if the address is not that of a multicast group.
std::optional<IpAddress> group_of(const sockaddr* address) {
  const auto ip = size_of(address) != 0 ? ip_of(*address) : std::nullopt;
  return ip && ip->is_multicast() ? ip : std::nullopt;
}

int join(Id& id, const sockaddr* address, bool full, void* context) {
  const auto group = group_of(address);
  if (!group || id.verbs.verbs == nullptr) return failed(EINVAL);
  const ibv_gid gid = gid_of(*group);
  const bool attached = full && id.verbs.qp != nullptr;
  if (attached) {
    if (const int code = ibv_attach_mcast(id.verbs.qp, &gid, 0xffff); code != 0) return failed(code);
  }
  id.groups.push_back(std::make_shared<Membership>(Membership{.group = *group, .attached = attached}));
  auto event = make_event(id, RDMA_CM_EVENT_MULTICAST_JOIN);
  event->membership = id.groups.back();
  rdma_ud_param& ud = event->verbs.param.ud;
  ud.private_data = context;
  ud.qp_num = kGroupQpn;
  ud.qkey = RDMA_UDP_QKEY;
  ud.ah_attr.is_global = 1;
  ud.ah_attr.port_num = 1;
  ud.ah_attr.grh.dgid = gid;
  ud.ah_attr.grh.sgid_index = id.sgid_index;
  ud.ah_attr.grh.hop_limit = 1;
  ud.ah_attr.grh.traffic_class = id.traffic_class;
  id.push(std::move(event));
  return complete(id);
}

}  // namespace

extern "C" {

int rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) {
  return join(Id::of(id), address, true, context);
}

int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attr, void* context) {
  constexpr uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED) return failed(ENOTSUP);
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
    return failed(EINVAL);
  return join(Id::of(id), attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
}

int rdma_leave_multicast(rdma_cm_id* verbs, sockaddr* address) {
  Id& id = Id::of(verbs);
  const auto group = group_of(address);
  const auto found =
      std::ranges::find_if(id.groups, [&](const auto& member) { return group && member->group == *group; });
  if (found == id.groups.end()) return failed(EADDRNOTAVAIL);
  const std::shared_ptr<Membership> left = std::move(*found);
  id.groups.erase(found);
  acknowledge_own_event(id);
  leave_events(id, *left);  // their context may be invalid after this call
  if (!left->attached || verbs->qp == nullptr) return 0;
  const ibv_gid gid = gid_of(*group);
  ibv_detach_mcast(verbs->qp, &gid, 0xffff);  // fails if the program has detached it
  return 0;
}

}  // extern "C"
