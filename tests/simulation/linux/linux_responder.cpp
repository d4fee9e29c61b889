// Responder of the Linux model.
#include <algorithm>
#include <cstring>

#include "simulation/linux/linux_queue_pair.hpp"
#include "wire/headers/aeth.hpp"

namespace roci::test {

void LinuxQueuePair::on_request(const Packet& packet, const OpcodeInfo& opcode) {
  const int32_t ahead = packet.bth.psn - expected_;
  if (ahead > 0) {
    if (std::exchange(gap_named_, true)) return;
    host_.count("gaps");
    return acknowledge(nak_syndrome(NakCode::kPsnSequenceError), expected_);
  }
  if (ahead < 0) return on_duplicate(packet, opcode);
  gap_named_ = false;
  constexpr uint8_t kInvalid = nak_syndrome(NakCode::kInvalidRequest);
  if (!follows(opcode)) return refuse(kInvalid, IBV_WC_REM_INV_REQ_ERR, packet, opcode);
  const bool takes_receive =
      opcode.operation == Operation::kSend ? opcode.starts_message() : opcode.consumes_receive();
  if (takes_receive && receives_.empty()) {
    host_.count("rnr_naks_sent");
    return acknowledge(rnr_syndrome(min_rnr_timer_), packet.bth.psn);
  }
  if (!length_fits(packet, opcode)) return refuse(kInvalid, IBV_WC_REM_INV_REQ_ERR, packet, opcode);
  if (!access_granted(packet, opcode))
    return refuse(nak_syndrome(NakCode::kRemoteAccessError), IBV_WC_REM_ACCESS_ERR, packet, opcode);
  if (!execute(packet, opcode))
    return refuse(nak_syndrome(NakCode::kRemoteOperationalError), IBV_WC_LOC_QP_OP_ERR, packet, opcode);
}

// Whether the packet may follow the previous request (IBTA 9.7.4.1.2).
bool LinuxQueuePair::follows(const OpcodeInfo& opcode) const {
  if (last_opcode_ == nullptr || last_opcode_->ends_message()) return opcode.starts_message();
  return !opcode.starts_message() && opcode.operation == last_opcode_->operation;
}

bool LinuxQueuePair::length_fits(const Packet& packet, const OpcodeInfo& opcode) const {
  const auto payload = static_cast<uint32_t>(packet.payload.size());
  if (check_payload(opcode, payload, static_cast<uint8_t>(packet.pad.size()), mtu_) != PayloadCheck::kRight)
    return false;
  if (packet.atomic_eth) return packet.atomic_eth->va % sizeof(uint64_t) == 0;
  if (opcode.operation != Operation::kWrite) return true;
  const uint32_t left = packet.reth ? packet.reth->length : write_left_;
  return opcode.ends_message() ? payload == left : payload < left;
}

bool LinuxQueuePair::access_granted(const Packet& packet, const OpcodeInfo& opcode) {
  if (packet.atomic_eth)
    return host_.remote_memory(packet.atomic_eth->rkey, packet.atomic_eth->va, sizeof(uint64_t),
                               IBV_ACCESS_REMOTE_ATOMIC) != nullptr;
  if (!packet.reth) return true;
  const bool writes = opcode.operation == Operation::kWrite;
  uint8_t* const memory = host_.remote_memory(packet.reth->rkey, packet.reth->va, packet.reth->length,
                                              writes ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ);
  if (writes) {
    write_to_ = memory;
    write_left_ = write_length_ = packet.reth->length;
  }
  return memory != nullptr || packet.reth->length == 0;
}

// Returns false if a SEND exceeds the receive request.
bool LinuxQueuePair::execute(const Packet& packet, const OpcodeInfo& opcode) {
  const Psn psn = packet.bth.psn;
  const auto payload = static_cast<uint32_t>(packet.payload.size());
  if (opcode.operation == Operation::kReadRequest) {
    ++msn_;
    last_opcode_ = nullptr;
    Resource& resource = next_resource();
    const uint32_t packets = std::max(1U, (packet.reth->length + mtu_ - 1) / mtu_);
    resource = {.used = true,
                .read = true,
                .first = psn,
                .last = psn + (packets - 1),
                .key = packet.reth->rkey,
                .address = packet.reth->va,
                .length = packet.reth->length,
                .original = 0};
    expected_ = resource.last + 1;
    answer_read(packet, resource);
    return true;
  }
  if (packet.atomic_eth) {
    execute_atomic(packet, opcode);
    return true;
  }
  if (opcode.operation == Operation::kSend) {
    if (opcode.starts_message()) message_bytes_ = 0;
    if (message_bytes_ + payload > receives_.front().capacity) return false;
    scatter(receives_.front().pieces, message_bytes_, packet.payload);
    message_bytes_ += payload;
  } else {
    if (payload > 0) std::memcpy(write_to_, packet.payload.data(), payload);
    write_to_ += payload;
    write_left_ -= payload;
  }
  if (opcode.ends_message()) ++msn_;
  expected_ = acknowledged_ = psn + 1;
  last_opcode_ = &opcode;
  if (opcode.ends_message() && opcode.consumes_receive()) {
    const bool is_send = opcode.operation == Operation::kSend;
    add_completion(receives_.front().wr_id, IBV_WC_SUCCESS, is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                   is_send ? message_bytes_ : write_length_, packet.imm);
    receives_.pop_front();
  }
  if (packet.bth.ack_request) acknowledge(kSyndromeAck, psn);
  return true;
}

void LinuxQueuePair::execute_atomic(const Packet& packet, const OpcodeInfo& opcode) {
  const AtomicEthValues& request = *packet.atomic_eth;
  uint8_t* const memory =
      host_.remote_memory(request.rkey, request.va, sizeof(uint64_t), IBV_ACCESS_REMOTE_ATOMIC);
  uint64_t word = 0;
  std::memcpy(&word, memory, sizeof word);
  Resource& resource = next_resource();
  resource = {};
  resource.used = true;
  resource.first = resource.last = packet.bth.psn;
  resource.original = word;
  if (opcode.operation == Operation::kFetchAdd) {
    word += request.swap_or_add;
  } else if (word == request.compare) {
    word = request.swap_or_add;
  }
  std::memcpy(memory, &word, sizeof word);
  ++msn_;
  expected_ = acknowledged_ = packet.bth.psn + 1;
  last_opcode_ = &opcode;
  answer_atomic(packet.bth.psn, resource.original);
}

// SEND and WRITE are acknowledged again at once, with the PSN of the last executed one. READs and atomics are answered
// from the stored responses, or dropped.
void LinuxQueuePair::on_duplicate(const Packet& packet, const OpcodeInfo& opcode) {
  host_.count("duplicates");
  if (opcode.operation == Operation::kSend || opcode.operation == Operation::kWrite)
    return acknowledge(kSyndromeAck, acknowledged_ - 1);
  Resource* const resource = find_resource(packet.bth.psn);
  if (resource == nullptr || resource->read != packet.reth.has_value()) return;
  if (!resource->read) return answer_atomic(packet.bth.psn, resource->original);
  const RethValues& request = *packet.reth;
  if (request.va < resource->address || request.length > resource->length ||
      request.va + request.length > resource->address + resource->length || request.rkey != resource->key)
    return;
  resource->address = request.va;
  answer_read(packet, *resource);
}

// The response to a READ that is repeated from its middle starts with MIDDLE or LAST.
void LinuxQueuePair::answer_read(const Packet& request, const Resource& resource) {
  Psn psn = request.bth.psn;
  bool first = psn == resource.first;
  const auto* from = reinterpret_cast<const uint8_t*>(request.reth->va);
  uint32_t left = request.reth->length;
  using enum Opcode;
  do {
    const uint32_t part = std::min(left, mtu_);
    const bool last = left <= mtu_;
    Packet packet = make_packet(first  ? (last ? kRcReadResponseOnly : kRcReadResponseFirst)
                                : last ? kRcReadResponseLast
                                       : kRcReadResponseMiddle,
                                !peer_.is_v4());
    packet.to(peer_number_, psn);
    if (packet.aeth) packet.with_aeth(kSyndromeAck, Msn{msn_});
    packet.with_payload({from, part});
    send(std::move(packet));
    first = false;
    ++psn;
    from += part;
    left -= part;
  } while (left > 0);
}

void LinuxQueuePair::answer_atomic(Psn psn, uint64_t original) {
  Packet packet = make_packet(Opcode::kRcAtomicAcknowledge, !peer_.is_v4());
  packet.to(peer_number_, psn).with_aeth(kSyndromeAck, Msn{msn_});
  packet.atomic_ack = original;
  send(std::move(packet));
}

void LinuxQueuePair::acknowledge(uint8_t syndrome, Psn psn) {
  Packet packet = make_packet(Opcode::kRcAcknowledge, !peer_.is_v4());
  packet.to(peer_number_, psn).with_aeth(syndrome, Msn{msn_});
  send(std::move(packet));
}

// The applications of the simulation send no request that a Linux host must refuse.
void LinuxQueuePair::refuse(uint8_t syndrome, ibv_wc_status status, const Packet& packet,
                            const OpcodeInfo& opcode) {
  host_.complain("Linux queue pair " + std::to_string(number_) + " refused " + std::string(opcode.name) +
                 " with PSN " + std::to_string(packet.bth.psn.value()) + " and " +
                 std::to_string(packet.payload.size()) + " bytes, with status " + std::to_string(status));
  acknowledge(syndrome, packet.bth.psn);
  enter_error();
}

LinuxQueuePair::Resource& LinuxQueuePair::next_resource() {
  Resource& resource = resources_[next_resource_];
  next_resource_ = (next_resource_ + 1) % resources_.size();
  return resource;
}

LinuxQueuePair::Resource* LinuxQueuePair::find_resource(Psn psn) {
  for (Resource& resource : resources_) {
    if (resource.used && psn - resource.first >= 0 && psn - resource.last <= 0) return &resource;
  }
  return nullptr;
}

}  // namespace roci::test
