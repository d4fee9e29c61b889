// Queue pairs of other services on the hosts of two_hosts.hpp and lone_host.hpp, in addition to their RC queue pairs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/hosts/two_hosts.hpp"
#include "wire/roce/packet.hpp"

namespace roci::test {

inline constexpr ibv_qp_cap kUsualCap{
    .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};

std::unique_ptr<QueuePair> make_service(Side& side, ibv_qp_type type, SharedReceiveQueue* srq = nullptr,
                                        bool signal_all = true, const ibv_qp_cap& cap = kUsualCap);

ibv_gid gid_of(const std::string& address);

// One send request. send() returns the verbs return code.
struct SendOptions {
  uint64_t wr_id = 1;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  size_t offset = 0;
  size_t length = 0;
  unsigned flags = 0;
  uint32_t immediate = 0;  // host byte order
  uint64_t remote = 0;
  uint32_t rkey = 0;
  // UD only:
  const AddressHandle* to = nullptr;
  uint32_t remote_qp = 0;
  uint32_t qkey = kQkey;
};
int send(Side& side, QueuePair& qp, const SendOptions& options);
int receive(Side& side, QueuePair& qp, uint64_t wr_id, size_t offset, size_t length);
int receive(Side& side, SharedReceiveQueue& srq, uint64_t wr_id, size_t offset, size_t length);

std::unique_ptr<SharedReceiveQueue> make_srq(Side& side, uint32_t max_wr, uint32_t max_sge = 2);
int arm(SharedReceiveQueue& srq, uint32_t limit);  // 0 or an errno

// The events since the last call, as "SRQ_LIMIT_REACHED 1": type without its prefix, and the object's number.
Lines event_lines(const Side& side);
// The completions since the last call, as "7 SUCCESS 300": wr_id, status, and the length of a successful one.
Lines completion_lines(Side& side);

void fill(Side& side, size_t offset, size_t length, uint8_t first);
// Whether the memory has the pattern of fill().
bool holds(const Side& side, size_t offset, size_t length, uint8_t first);
// Fills all memory of the side such that the packets of a message differ.
void fill_all(Side& side, uint8_t first);
// Whether `length` bytes of a side equal those of another.
bool same_bytes(const Side& one, size_t offset, const Side& other, size_t other_offset, size_t length);

}  // namespace roci::test
