// Transitions of queue pairs from RESET to RTS, for tests, the simulation and benchmarks, with exactly the attributes
// that IBTA table 96 requires for each service.
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
  uint8_t sgid_index = 1;  // index of the local address
  // RC only:
  uint8_t reads = 4;           // in both directions
  uint8_t timeout = 10;        // 4.2 ms
  uint8_t min_rnr_timer = 12;  // 640 us
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;  // without limit
};
// Moves an RC or UC queue pair to RTS, connected to queue pair `remote_qp` of the host with GID `peer`.
void connect_to(QueuePair& qp, ibv_qp_type type, const ibv_gid& peer, uint32_t remote_qp,
                const ConnectOptions& options = {});
// Moves a UD queue pair to RTS.
void open_datagrams(QueuePair& qp, uint32_t qkey = kQkey, uint32_t sq_psn = 5000);
// Moves a queue pair to ERR or RESET.
void move_to(QueuePair& qp, ibv_qp_state state);

// An address with a GRH, from the local GID with index 1.
ibv_ah_attr address_of(const ibv_gid& gid, uint8_t traffic_class = 0);

}  // namespace roci::test
