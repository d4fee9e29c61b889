// Queue pairs of the other services on the hosts of two_hosts.hpp and lone_host.hpp, beside the RC one that is there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/two_hosts.hpp"
#include "wire/packet.hpp"

namespace roci::test {

inline constexpr ibv_qp_cap kUsualCap{
    .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};
inline constexpr uint32_t kQkey = 0x11111111;

std::unique_ptr<QueuePair> make_service(Side& side, ibv_qp_type type, SharedReceiveQueue* srq = nullptr,
                                        bool signal_all = true, const ibv_qp_cap& cap = kUsualCap);

struct ConnectOptions {
  uint32_t rq_psn = 100;
  uint32_t sq_psn = 5000;
  ibv_mtu path_mtu = IBV_MTU_256;
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  uint8_t sgid_index = 1;
};
// RC or UC to RTS, towards that queue pair of the host with this GID.
void connect_to(QueuePair& qp, ibv_qp_type type, const ibv_gid& peer, uint32_t remote_qp,
                const ConnectOptions& options = {});
// UD to RTS.
void open_datagrams(QueuePair& qp, uint32_t qkey = kQkey, uint32_t sq_psn = 5000);

ibv_gid gid_of(const std::string& address);
ibv_ah_attr address_of(const ibv_gid& gid);

// One request; the return code is the verbs'.
struct SendOptions {
  uint64_t wr_id = 1;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  size_t offset = 0;
  size_t length = 0;
  unsigned flags = 0;
  uint32_t immediate = 0;  // in host order
  uint64_t remote = 0;
  uint32_t rkey = 0;
  // Datagrams:
  const AddressHandle* to = nullptr;
  uint32_t remote_qp = 0;
  uint32_t qkey = kQkey;
};
int send(Side& side, QueuePair& qp, const SendOptions& options);
int receive(Side& side, QueuePair& qp, uint64_t wr_id, size_t offset, size_t length);
int receive(Side& side, SharedReceiveQueue& srq, uint64_t wr_id, size_t offset, size_t length);

std::unique_ptr<SharedReceiveQueue> make_srq(Side& side, uint32_t max_wr, uint32_t max_sge = 2);
int arm(SharedReceiveQueue& srq, uint32_t limit);  // 0 or the errno

// The events so far, "SRQ_LIMIT_REACHED 1": type without its prefix, and the object's number.
std::vector<std::string> event_lines(const Side& side);
// The completions so far, "7 SUCCESS 300": wr_id, status, and the length of a success.
std::vector<std::string> completion_lines(Side& side);

void fill(Side& side, size_t offset, size_t length, uint8_t first);
bool holds(const Side& side, size_t offset, size_t length, uint8_t first);  // what fill() wrote

}  // namespace roci::test
