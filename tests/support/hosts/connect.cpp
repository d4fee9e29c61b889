#include "support/hosts/connect.hpp"

#include "support/must.hpp"

namespace roci::test {
namespace {

constexpr uint32_t kPsnMask = 0xffffff;

}  // namespace

ibv_ah_attr address_of(const ibv_gid& gid, uint8_t traffic_class) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.sgid_index = 1;
  attr.grh.traffic_class = traffic_class;
  attr.grh.dgid = gid;
  return attr;
}

void connect_to(QueuePair& qp, ibv_qp_type type, const ibv_gid& peer, uint32_t remote_qp,
                const ConnectOptions& options) {
  const bool asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
  const bool answers = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(options.access);
  must(qp.modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = options.path_mtu;
  attr.dest_qp_num = remote_qp;
  attr.rq_psn = options.rq_psn & kPsnMask;
  attr.max_dest_rd_atomic = options.reads;
  attr.min_rnr_timer = options.min_rnr_timer;
  attr.ah_attr = address_of(peer, options.traffic_class);
  attr.ah_attr.grh.sgid_index = options.sgid_index;
  must(qp.modify(attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = options.timeout;
  attr.retry_cnt = options.retry_count;
  attr.rnr_retry = options.rnr_retry;
  attr.sq_psn = options.sq_psn & kPsnMask;
  attr.max_rd_atomic = options.reads;
  must(qp.modify(attr,
                 IBV_QP_STATE | IBV_QP_SQ_PSN |
                     (asks ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                      : answers ? int{IBV_QP_TIMEOUT}
                                : 0)));
}

void open_datagrams(QueuePair& qp, uint32_t qkey, uint32_t sq_psn) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = qkey;
  must(qp.modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
  attr.qp_state = IBV_QPS_RTR;
  must(qp.modify(attr, IBV_QP_STATE));
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = sq_psn & kPsnMask;
  must(qp.modify(attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

void move_to(QueuePair& qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  must(qp.modify(attr, IBV_QP_STATE));
}

}  // namespace roci::test
