// Queue pairs from RESET to RTS, as the tests, the simulation and the benchmarks need them: the attributes that IBTA
// table 96 wants of each service, and no others.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "roci/device.hpp"

namespace roci::test {

inline constexpr uint32_t kQkey = 0x11111111;

struct ConnectOptions {
  uint32_t rq_psn = 100;  // PSNs are taken modulo 2^24
  uint32_t sq_psn = 5000;
  ibv_mtu path_mtu = IBV_MTU_256;
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  uint8_t traffic_class = 0;
  uint8_t sgid_index = 1;  // our address
  // RC alone:
  uint8_t reads = 4;           // in both directions
  uint8_t timeout = 10;        // 4.2 ms
  uint8_t min_rnr_timer = 12;  // 640 us
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;  // without limit
};
// RC or UC to RTS, towards that queue pair of the host with this GID.
void connect_to(QueuePair& qp, ibv_qp_type type, const ibv_gid& peer, uint32_t remote_qp,
                const ConnectOptions& options = {});
// UD to RTS.
void open_datagrams(QueuePair& qp, uint32_t qkey = kQkey, uint32_t sq_psn = 5000);
// Into ERR, or RESET.
void move_to(QueuePair& qp, ibv_qp_state state);

// From our first address, with a network header.
ibv_ah_attr address_of(const ibv_gid& gid, uint8_t traffic_class = 0);

}  // namespace roci::test
