#include "support/hosts/services.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace roci::test {

std::unique_ptr<QueuePair> make_service(Side& side, ibv_qp_type type, SharedReceiveQueue* srq,
                                        bool signal_all, const ibv_qp_cap& cap) {
  ibv_qp_init_attr init{};
  init.qp_type = type;
  init.cap = cap;
  init.sq_sig_all = signal_all ? 1 : 0;
  return must(side.pd->create_qp(&init, *side.cq, *side.cq, srq));
}

ibv_gid gid_of(const std::string& address) {
  const Gid gid = must(IpAddress::parse(address));
  ibv_gid out;
  std::memcpy(out.raw, gid.bytes.data(), sizeof out.raw);
  return out;
}

int send(Side& side, QueuePair& qp, const SendOptions& options) {
  ibv_sge list = side.sge(options.offset, options.length);
  ibv_send_wr wr{};
  wr.wr_id = options.wr_id;
  wr.sg_list = &list;
  wr.num_sge = options.length == 0 ? 0 : 1;
  wr.opcode = options.opcode;
  wr.send_flags = options.flags;
  wr.imm_data = __builtin_bswap32(options.immediate);
  if (options.to != nullptr) {
    wr.wr.ud = {options.to->handle(), options.remote_qp, options.qkey};
  } else {
    wr.wr.rdma = {options.remote, options.rkey};
  }
  ibv_send_wr* bad = nullptr;
  return qp.post_send(&wr, &bad);
}

namespace {

template <class Queue>
int post_one(Side& side, Queue& queue, uint64_t wr_id, size_t offset, size_t length) {
  ibv_sge list = side.sge(offset, length);
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &list;
  wr.num_sge = length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  return queue.post_recv(&wr, &bad);
}

const char* event_name(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_COMM_EST:
      return "COMM_EST";
    case IBV_EVENT_QP_FATAL:
      return "QP_FATAL";
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return "QP_LAST_WQE_REACHED";
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return "SRQ_LIMIT_REACHED";
    case IBV_EVENT_SQ_DRAINED:
      return "SQ_DRAINED";
    case IBV_EVENT_CQ_ERR:
      return "CQ_ERR";
    default:
      return "other";
  }
}

const char* status_name(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "SUCCESS";
    case IBV_WC_LOC_LEN_ERR:
      return "LOC_LEN_ERR";
    case IBV_WC_LOC_QP_OP_ERR:
      return "LOC_QP_OP_ERR";
    case IBV_WC_LOC_PROT_ERR:
      return "LOC_PROT_ERR";
    case IBV_WC_WR_FLUSH_ERR:
      return "WR_FLUSH_ERR";
    case IBV_WC_REM_INV_REQ_ERR:
      return "REM_INV_REQ_ERR";
    case IBV_WC_REM_ACCESS_ERR:
      return "REM_ACCESS_ERR";
    case IBV_WC_REM_OP_ERR:
      return "REM_OP_ERR";
    default:
      return "other";
  }
}

}  // namespace

int receive(Side& side, QueuePair& qp, uint64_t wr_id, size_t offset, size_t length) {
  return post_one(side, qp, wr_id, offset, length);
}
int receive(Side& side, SharedReceiveQueue& srq, uint64_t wr_id, size_t offset, size_t length) {
  return post_one(side, srq, wr_id, offset, length);
}

std::unique_ptr<SharedReceiveQueue> make_srq(Side& side, uint32_t max_wr, uint32_t max_sge) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = max_wr;
  init.attr.max_sge = max_sge;
  return must(side.pd->create_srq(&init));
}

int arm(SharedReceiveQueue& srq, uint32_t limit) {
  ibv_srq_attr attr{};
  attr.srq_limit = limit;
  const Status status = srq.modify(attr, IBV_SRQ_LIMIT);
  return status ? 0 : status.error().code;
}

Lines event_lines(const Side& side) {
  Lines lines;
  while (const auto event = side.device->get_async_event())
    lines.push_back(std::string(event_name(event->type)) + " " + std::to_string(event->object.number));
  return lines;
}

Lines completion_lines(Side& side) {
  Lines lines;
  for (const ibv_wc& wc : side.completions()) {
    std::string line = std::to_string(wc.wr_id) + " " + status_name(wc.status);
    if (wc.status == IBV_WC_SUCCESS) line += " " + std::to_string(wc.byte_len);
    lines.push_back(std::move(line));
  }
  return lines;
}

void fill(Side& side, size_t offset, size_t length, uint8_t first) {
  for (size_t i = 0; i < length; ++i) side.memory.at(offset + i) = static_cast<uint8_t>(first + i);
}

bool holds(const Side& side, size_t offset, size_t length, uint8_t first) {
  for (size_t i = 0; i < length; ++i) {
    if (side.memory.at(offset + i) != static_cast<uint8_t>(first + i)) return false;
  }
  return true;
}

void fill_all(Side& side, uint8_t first) {
  for (size_t i = 0; i < side.memory.size(); ++i)
    side.memory[i] = static_cast<uint8_t>(first + i * 31 + (i >> 8));
}

bool same_bytes(const Side& one, size_t offset, const Side& other, size_t other_offset, size_t length) {
  const std::span a(one.memory), b(other.memory);
  return std::ranges::equal(a.subspan(offset, length), b.subspan(other_offset, length));
}

}  // namespace roci::test
