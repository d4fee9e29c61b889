// Completions of a stream link, credits in both directions, and mapped memory.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "rdmacm/sockets/stream_link.hpp"

namespace roci::rdmacm::sockets {
namespace {

template <class Value>
std::span<const uint8_t> bytes_of(const Value& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

// Error for a failed request.
int code_of_status(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ? ETIMEDOUT : ECONNRESET;
}

}  // namespace

bool StreamLink::progress() {
  constexpr int kBatch = 16;
  bool any = false;
  int count = kBatch;
  while (count == kBatch) {
    std::array<ibv_wc, kBatch> completions{};
    count = ibv_poll_cq(completions_.queue(), kBatch, completions.data());
    if (count < 0) {
      fail(EIO);
      return any;
    }
    uint32_t received = 0;
    for (const ibv_wc& completion : std::span(completions).first(static_cast<size_t>(count))) {
      if (static_cast<Kind>(completion.wr_id >> 32) != Kind::kReceive) {
        on_sent(completion);
      } else if (completion.status == IBV_WC_SUCCESS) {
        on_received(completion);
        ++received;
      }
    }
    if (!is_disconnected() && received > 0 && !post_receives(received)) fail(errno);
    any |= count > 0;
  }
  if (open_ && !is_disconnected()) {
    give_credits();
    announce_mappings();
    send_pending_control();
  }
  return any;
}

bool StreamLink::post_receives(uint32_t count) {
  constexpr uint32_t kChain = 16;
  while (count > 0) {
    std::array<ibv_recv_wr, kChain> chain{};
    const uint32_t some = std::min(count, kChain);
    for (uint32_t i = 0; i + 1 < some; ++i) chain[i].next = &chain[i + 1];
    ibv_recv_wr* bad = nullptr;
    if (const int code = ibv_post_recv(id_->qp, chain.data(), &bad); code != 0) {
      errno = code;
      return false;
    }
    count -= some;
  }
  return true;
}

void StreamLink::on_received(const ibv_wc& completion) {
  if (is_disconnected()) return;
  if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0) return fail(EPROTO);
  const uint32_t word = std::bit_cast<Be32>(completion.imm_data).get();
  switch (operation_of(word)) {
    case Operation::kData:
      return on_data(operand_of(word));
    case Operation::kCredits:
      allowed_ = static_cast<uint16_t>(operand_of(word));
      return take_grants();
    case Operation::kMapping:
      ++consumed_;  // the peer counts it as a message
      return;
    case Operation::kControl:
      return on_control(static_cast<Control>(operand_of(word)));
  }
  fail(EPROTO);
}

void StreamLink::on_data(uint32_t bytes) {
  if (bytes > granted_ || messages_.size() >= sizes_.receive_queue) return fail(EPROTO);
  granted_ -= bytes;
  unread_ += bytes;
  if (bytes > 0) {
    messages_.push_back(bytes);
  } else {
    ++consumed_;
  }
}

void StreamLink::on_control(Control control) {
  switch (control) {
    case Control::kDisconnect:
      disconnected_ = ended_ = true;
      receives_ = sends_ = false;
      return;
    case Control::kShutdown:
      ended_ = true;
      receives_ = false;
      return;
    case Control::kKeepAlive:
      return;
  }
}

void StreamLink::on_sent(const ibv_wc& completion) {
  const auto bytes = static_cast<uint32_t>(completion.wr_id);
  switch (static_cast<Kind>(completion.wr_id >> 32)) {
    case Kind::kData:
    case Kind::kDirect:
      send_free_ += bytes;
      ++free_data_slots_;
      break;
    case Kind::kMapping:
      ++free_data_slots_;
      break;
    case Kind::kProbe:
      probing_ = false;
      ++free_control_slots_;
      break;
    case Kind::kControl:
      ++free_control_slots_;
      break;
    case Kind::kReceive:
      break;
  }
  if (completion.status != IBV_WC_SUCCESS) fail(code_of_status(completion.status));
}

// A credit message does not specify whether the list has changed, so the list is read. A nonzero length is a grant that
// was not taken yet. The peer reuses an entry only after its grant is used up, so more grants than its list and the
// connection data contain are a violation of the protocol.
void StreamLink::take_grants() {
  struct KeyAndLength {
    uint32_t key, length;
  };
  for (uint32_t i = 0; i < kGrants; ++i) {
    uint64_t* const place = &peer_written_[size_t{next_grant_} * 2];
    std::atomic_ref<uint64_t> last(place[1]);
    const auto rest = std::bit_cast<KeyAndLength>(last.load(std::memory_order_acquire));
    if (rest.length == 0) return;
    if (grants_.size() > kGrants) return fail(EPROTO);
    grants_.push_back(
        {std::atomic_ref<uint64_t>(place[0]).load(std::memory_order_relaxed), rest.key, rest.length});
    last.store(0, std::memory_order_relaxed);
    next_grant_ = (next_grant_ + 1) % kGrants;
  }
}

void StreamLink::give_credits() {
  const bool half_free = freed_ >= half_;
  if ((!half_free && static_cast<int16_t>(consumed_ - due_) < 0) || free_control_slots_ == 0) return;
  due_ = static_cast<uint16_t>(consumed_ + sizes_.receive_queue / 2);
  const uint32_t credits = word(Operation::kCredits, static_cast<uint16_t>(consumed_ + sizes_.receive_queue));
  if (!half_free) {
    post_immediate(Kind::kControl, credits);
    return;
  }
  const Area half{reinterpret_cast<uintptr_t>(&receive_ring_[grant_at_]), receive_region_->rkey, half_};
  const Area wire_value = swap_ ? swapped(half) : half;
  post_immediate(Kind::kControl, credits, bytes_of(wire_value),
                 peer_grants_.address + peer_grant_ * sizeof(Area), peer_grants_.key);
  peer_grant_ = (peer_grant_ + 1) % peer_grants_.length;
  grant_at_ = (grant_at_ + half_) % (2 * half_);
  freed_ -= half_;
  granted_ += half_;
}

void StreamLink::consume(size_t bytes) {
  read_at_ = static_cast<uint32_t>((read_at_ + bytes) % receive_ring_.size());
  freed_ += static_cast<uint32_t>(bytes);
  unread_ -= bytes;
  while (bytes > 0) {
    const auto some = static_cast<uint32_t>(std::min<size_t>(bytes, messages_.front()));
    messages_.front() -= some;
    bytes -= some;
    if (messages_.front() > 0) continue;
    messages_.pop_front();
    ++consumed_;
  }
  if (open_ && !is_disconnected()) give_credits();
}

std::optional<Mapping> StreamLink::mapping_at(uint64_t offset) {
  return find_mapping(std::span(peer_written_).subspan(kGrants * sizeof(Area) / sizeof(uint64_t)), offset);
}

bool StreamLink::map(void* address, size_t length, bool writable, uint64_t offset) {
  int index = -1;
  if (writable) {
    const auto free = [&](int candidate) {
      return std::ranges::none_of(mapped_, [&](const Mapped& one) { return one.index == candidate; });
    };
    const auto places = static_cast<int>(peer_mappings_.length);
    for (index = 0; index < places && !free(index);) ++index;
    if (index == places || length > UINT32_MAX) {
      errno = index == places ? ENOMEM : EINVAL;
      return false;
    }
  }
  const int access = IBV_ACCESS_LOCAL_WRITE | (writable ? IBV_ACCESS_REMOTE_WRITE : 0);
  ibv_mr* const region = ibv_reg_mr(id_->pd, address, length, access);
  if (region == nullptr) return false;
  mapped_.push_back({region, offset, index, !writable});
  if (open_ && !is_disconnected()) announce_mappings();
  return true;
}

bool StreamLink::unmap(void* address, size_t length) {
  const auto found = std::ranges::find_if(mapped_, [&](const Mapped& one) {
    return one.region->addr == address && one.region->length == length;
  });
  if (found == mapped_.end()) {
    errno = EINVAL;
    return false;
  }
  const int code = ibv_dereg_mr(found->region);
  mapped_.erase(found);
  errno = code;
  return code == 0;
}

bool StreamLink::has_unannounced_mappings() const {
  return std::ranges::any_of(mapped_, [](const Mapped& one) { return !one.announced; });
}

void StreamLink::announce_mappings() {
  for (Mapped& one : mapped_) {
    if (one.announced) continue;
    if (free_data_slots_ == 0 || !sends_ || sent_ == allowed_) return;
    const Mapping mapping{one.offset,
                          {reinterpret_cast<uintptr_t>(one.region->addr), one.region->rkey,
                           static_cast<uint32_t>(one.region->length)}};
    const Mapping wire_value = swap_ ? swapped(mapping) : mapping;
    const auto index = static_cast<uint32_t>(one.index);
    ++sent_;
    one.announced = true;
    if (!post_immediate(Kind::kMapping, word(Operation::kMapping, index), bytes_of(wire_value),
                        peer_mappings_.address + index * sizeof(Mapping), peer_mappings_.key))
      return;
  }
}

}  // namespace roci::rdmacm::sockets
