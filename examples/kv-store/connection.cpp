#include "connection.hpp"

#include <algorithm>
#include <random>

namespace kv {

uint32_t random_psn() {
  std::random_device random;
  return random() & 0xffffff;
}

std::string completion_text(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer does not respond";
    case IBV_WC_WR_FLUSH_ERR:
      return "an earlier request failed";
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer does not allow this access";
    case IBV_WC_LOC_LEN_ERR:
      return "a message was longer than its buffer";
    default:
      return "ibv_wc_status " + std::to_string(status);
  }
}

roci::Result<Endpoint> endpoint_of(const roci::Device& device, const roci::QueuePair& queue_pair,
                                   uint32_t psn) {
  const auto gid = device.query_gid(kGidIndex);
  if (!gid) return roci::fail(gid.error().within("the device requires an address (device.addresses)"));
  Endpoint endpoint{};
  endpoint.gid = *gid;
  endpoint.qp_num = queue_pair.qp_num();
  endpoint.psn = psn;
  endpoint.mtu = static_cast<uint32_t>(device.query_port().active_mtu);
  return endpoint;
}

roci::Status prepare(roci::QueuePair& queue_pair, int access) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(access);
  return queue_pair.modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

roci::Status connect(roci::QueuePair& queue_pair, const Endpoint& own, const Endpoint& peer,
                     uint8_t timeout) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::min(own.mtu, peer.mtu));
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = 16;
  attr.min_rnr_timer = 12;  // 0.64 ms
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = peer.gid;
  attr.ah_attr.grh.sgid_index = kGidIndex;
  attr.ah_attr.grh.hop_limit = 64;
  ROCI_TRY(queue_pair.modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = own.psn;
  attr.timeout = timeout;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;  // unlimited: the peer is alive, but has no receive posted
  attr.max_rd_atomic = 16;
  return queue_pair.modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

}  // namespace kv
