#include "roci-perf/measurement/traffic.hpp"

#include <algorithm>
#include <cstring>

#include "roci-perf/output/completion_status.hpp"

namespace roci::perf {
namespace {

constexpr int kWiped = 0xa5;

ibv_wr_opcode opcode_of(Operation operation) {
  switch (operation) {
    case Operation::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Operation::kRead:
      return IBV_WR_RDMA_READ;
    case Operation::kSend:
      break;
  }
  return IBV_WR_SEND;
}

}  // namespace

Traffic::Traffic(Endpoint& endpoint, const Parameters& parameters, uint32_t signal_every, uint32_t post_list)
    : endpoint_(endpoint),
      operation_(parameters.operation),
      signal_every_(signal_every),
      pattern_(parameters.seed),
      state_(endpoint.count()),
      requests_(post_list),
      pieces_(post_list) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    requests_[i].sg_list = &pieces_[i];
    requests_[i].num_sge = 1;
    requests_[i].opcode = opcode_of(operation_);
    pieces_[i].lkey = endpoint_.lkey();
  }
}

uint64_t Traffic::read_slot(uint64_t number) const {
  const uint64_t slots = endpoint_.layout().out_slots;
  return (number / endpoint_.layout().in_slots + number) % slots;
}

uint64_t Traffic::remote_address(uint32_t queue_pair, uint64_t number) const {
  const Layout& layout = endpoint_.layout();
  const uint64_t slot = operation_ == Operation::kRead ? read_slot(number) : slot_of(number, layout.in_slots);
  return endpoint_.peer(queue_pair).address + slot * layout.stride;
}

Status Traffic::post(uint32_t queue_pair, uint32_t count, bool signal_last) {
  PerQueuePair& state = state_[queue_pair];
  const unsigned flags = endpoint_.inlines() ? unsigned{IBV_SEND_INLINE} : 0U;
  const uint32_t rkey = operation_ == Operation::kSend ? 0 : endpoint_.peer(queue_pair).rkey;
  // messages up to and including the next signaled one
  uint64_t silent = signal_every_ - state.posted % signal_every_;
  while (count > 0) {
    const auto length = static_cast<uint32_t>(std::min<size_t>(count, requests_.size()));
    count -= length;
    for (uint32_t i = 0; i < length; ++i) {
      const uint64_t number = state.posted++;
      const bool last = signal_last && count == 0 && i + 1 == length;
      const bool signal = last || --silent == 0;
      if (signal) state.signalled = state.posted;
      if (silent == 0) silent = signal_every_;
      const std::span<uint8_t> local = operation_ == Operation::kRead ? endpoint_.in(queue_pair, number)
                                                                      : endpoint_.out(queue_pair, number);
      pieces_[i].addr = reinterpret_cast<uint64_t>(local.data());
      pieces_[i].length = static_cast<uint32_t>(local.size());
      ibv_send_wr& request = requests_[i];
      request.wr_id = RequestId{false, queue_pair, number}.encode();
      request.next = i + 1 < length ? &requests_[i + 1] : nullptr;
      request.send_flags = flags | (signal ? unsigned{IBV_SEND_SIGNALED} : 0U);
      if (operation_ != Operation::kSend) {
        request.wr.rdma.remote_addr = remote_address(queue_pair, number);
        request.wr.rdma.rkey = rkey;
      }
    }
    ibv_send_wr* bad = nullptr;
    if (const int error = endpoint_.queue_pair(queue_pair).post_send(requests_.data(), &bad); error != 0) {
      return fail("message " + std::to_string(RequestId::decode(bad->wr_id).number) +
                      " was rejected by queue pair " + std::to_string(queue_pair) + ": " +
                      std::strerror(error),
                  error);
    }
  }
  return {};
}

Result<std::span<const Event>> Traffic::poll() {
  const int found = endpoint_.completions().poll(static_cast<int>(completions_.size()), completions_.data());
  if (found < 0) return fail("the completion queue overflowed", EOVERFLOW);
  for (int i = 0; i < found; ++i) {
    const ibv_wc& completion = completions_[static_cast<size_t>(i)];
    const RequestId id = RequestId::decode(completion.wr_id);
    if (completion.status != IBV_WC_SUCCESS) return fail(failure_sentence(completion, id.number), EIO);
    Event& event = events_[static_cast<size_t>(i)];
    event = {id.receive, id.queue_pair, id.number, id.number + 1, completion.byte_len};
    if (!id.receive) {
      // Completions of a send queue are in order; each also completes the unsignaled requests before it (IBTA 10.8.6).
      PerQueuePair& state = state_[id.queue_pair];
      event.first = state.completed;
      state.completed = event.last;
    }
  }
  return std::span<const Event>{events_.data(), static_cast<size_t>(found)};
}

bool Traffic::all_complete() const {
  return std::all_of(state_.begin(), state_.end(),
                     [](const PerQueuePair& s) { return s.completed == s.posted; });
}

void Traffic::prepare(uint32_t queue_pair, uint32_t ahead) {
  const uint64_t number = state_[queue_pair].posted + ahead;
  if (operation_ == Operation::kRead) {
    const std::span<uint8_t> slot = endpoint_.in(queue_pair, number);
    std::memset(slot.data(), kWiped, slot.size());
  } else {
    pattern_.fill(endpoint_.out(queue_pair, number), queue_pair, number);
  }
}

void Traffic::prepare_offer() {
  for (uint32_t i = 0; i < endpoint_.count(); ++i) {
    for (uint32_t slot = 0; slot < endpoint_.layout().out_slots; ++slot)
      pattern_.fill(endpoint_.out(i, slot), i, slot);
  }
}

Status Traffic::check(uint32_t queue_pair, uint64_t number, std::span<const uint8_t> data, uint64_t marker) {
  if (auto wrong = pattern_.check(data.first(data.size() - marker), queue_pair, number)) {
    return fail("verification failed: " + wrong->sentence(queue_pair, number), EBADMSG);
  }
  ++verified_.messages;
  verified_.bytes += data.size();
  return {};
}

Status Traffic::check_read(uint32_t queue_pair, uint64_t number) {
  const std::span<const uint8_t> data = endpoint_.in(queue_pair, number);
  if (auto wrong = pattern_.check(data, queue_pair, read_slot(number))) {
    return fail("verification failed: " + wrong->sentence(queue_pair, number), EBADMSG);
  }
  ++verified_.messages;
  verified_.bytes += data.size();
  return {};
}

}  // namespace roci::perf
