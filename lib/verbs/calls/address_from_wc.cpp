// Address handles for the senders of received datagrams.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

#include "verbs/calls/reply_route.hpp"
#include "verbs/compatibility/gid_type.hpp"

namespace {

constexpr int kIndices = 256;  // size of a GID table: ibv_global_route has one byte for the index

// Returns the index of a GID in the port's table, or -1 with errno set.
int find_gid(ibv_context* context, uint8_t port, const ibv_gid& wanted, int type) {
  for (int index = 0; index < kIndices; ++index) {
    ibv_gid gid{};
    int its_type = 0;
    if (ibv_query_gid(context, port, index, &gid) != 0) break;  // end of the table
    if (std::memcmp(&gid, &wanted, sizeof gid) != 0) continue;
    if (roci::query_gid_type(context, port, static_cast<unsigned>(index), &its_type) == 0 && its_type == type)
      return index;
  }
  errno = ENOENT;
  return -1;
}

}  // namespace

int ibv_init_ah_from_wc(ibv_context* context, uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* attributes) {
  *attributes = {};
  attributes->dlid = wc->slid;
  attributes->sl = wc->sl;
  attributes->src_path_bits = wc->dlid_path_bits;
  attributes->port_num = port;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return 0;

  roci::ReplyRoute route;
  const int error = roci::read_reply_route(*grh, route);
  if (error != 0) {
    errno = error;
    return -1;
  }
  const int index = find_gid(context, port, route.own, route.own_type);
  if (index < 0) return -1;
  attributes->is_global = 1;
  attributes->grh.dgid = route.peer;
  attributes->grh.sgid_index = static_cast<uint8_t>(index);
  attributes->grh.flow_label = route.flow_label;
  attributes->grh.hop_limit = route.hop_limit;
  attributes->grh.traffic_class = route.traffic_class;
  return 0;
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  ibv_ah_attr attributes{};
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attributes) != 0) return nullptr;
  return ibv_create_ah(pd, &attributes);
}

// For providers whose devices need the next hop's MAC address. Rocinante
// resolves it when it sends, and it may change later.
int ibv_resolve_eth_l2_from_gid(ibv_context* /*context*/, ibv_ah_attr* /*attributes*/, uint8_t* /*mac*/,
                                uint16_t* /*vlan*/) {
  errno = ENOSYS;
  return ENOSYS;
}
