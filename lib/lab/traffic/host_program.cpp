#include "lab/traffic/host_program.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace roci::lab {
namespace {

// Work request IDs: number of the stream and slot of its message, or number of a receiver.
constexpr uint64_t kReceive = 1ULL << 63;
constexpr unsigned kSlotBits = 16;
constexpr uint32_t kReceivesPosted = 4;
constexpr uint32_t kMaxCompletions = 8192;

}  // namespace

HostProgram::HostProgram(Device& device, CompletionQueue& cq, const MemoryRegion& memory)
    : device_(device), cq_(cq), memory_(memory) {}

uint32_t HostProgram::add(Stream stream) {
  const auto number = static_cast<uint32_t>(streams_.size());
  expect_completions(stream.depth);
  if (stream.result != nullptr && !stream.unlimited) ++busy_;
  if (stream.result != nullptr) {
    starts_.push({stream.start, number, 0});
  } else {
    stream.messages.resize(stream.depth);
    for (uint32_t slot = 0; slot < stream.depth; ++slot) starts_.push({stream.start, number, slot});
  }
  streams_.push_back(std::move(stream));
  return number;
}

void HostProgram::receive(QueuePair& qp, uint32_t length) {
  receivers_.push_back({&qp, length});
  expect_completions(kReceivesPosted);
  for (uint32_t i = 0; i < kReceivesPosted; ++i) post_receive(static_cast<uint32_t>(receivers_.size() - 1));
}

void HostProgram::expect_completions(uint32_t count) {
  expected_ += count;
  const auto needed = static_cast<uint32_t>(std::bit_ceil(std::min<uint64_t>(expected_, kMaxCompletions)));
  if (needed <= capacity_) return;
  capacity_ = needed;
  if (Status resized = cq_.resize(static_cast<int>(needed)); !resized && error_.empty())
    error_ = device_.name() + ": " + resized.error().message;
}

void HostProgram::post_receive(uint32_t number) {
  const Receiver& receiver = receivers_[number];
  ibv_sge list{reinterpret_cast<uint64_t>(memory_.address()), receiver.length, memory_.lkey()};
  ibv_recv_wr wr{};
  wr.wr_id = kReceive | number;
  wr.sg_list = &list;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int code = receiver.qp->post_recv(&wr, &bad); code != 0 && error_.empty())
    error_ = device_.name() + ": posting a receive request failed: error " + std::to_string(code);
}

bool HostProgram::begin_due(Nanos now) {
  bool worked = false;
  for (; !starts_.empty() && starts_.top().at <= now; worked = true) {
    const Start start = starts_.top();
    starts_.pop();
    if (streams_[start.stream].result != nullptr) {
      fill(start.stream, now);
    } else {
      begin_message(start.stream, start.slot, now);
    }
  }
  return worked;
}

void HostProgram::fill(uint32_t number, Nanos now) {
  Stream& stream = streams_[number];
  const bool is_open = stream.unlimited ? now < std::min(stream.stop, stopped_) : stream.left > 0;
  while (is_open && stream.in_flight < stream.depth && (stream.unlimited || stream.left > 0)) {
    const uint64_t bytes = stream.unlimited ? stream.message : std::min(stream.left, stream.message);
    if (!post(number, 0, stream.opcode, bytes)) return end_flow(stream, now, true);
    if (!stream.unlimited) stream.left -= bytes;
    ++stream.in_flight;
  }
  if (!is_open && stream.in_flight == 0) end_flow(stream, now, false);
}

void HostProgram::begin_message(uint32_t number, uint32_t slot, Nanos now) {
  Stream& stream = streams_[number];
  if (now >= std::min(stream.stop, stopped_)) return;
  Stream::Message& message = stream.messages[slot];
  message = {stream.spec->size.draw(*stream.rng), now};
  const bool reads = stream.spec->read_share > 0 && stream.rng->chance(stream.spec->read_share);
  if (!post(number, slot, reads ? IBV_WR_RDMA_READ : stream.opcode, std::min(message.bytes, stream.message)))
    stream.over = true;
}

bool HostProgram::post(uint32_t number, uint32_t slot, ibv_wr_opcode opcode, uint64_t bytes) {
  Stream& stream = streams_[number];
  ibv_sge list{reinterpret_cast<uint64_t>(memory_.address()), static_cast<uint32_t>(bytes), memory_.lkey()};
  ibv_send_wr wr{};
  wr.wr_id = uint64_t{number} << kSlotBits | slot;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = stream.remote;
  wr.wr.rdma.rkey = stream.rkey;
  ibv_send_wr* bad = nullptr;
  const int code = stream.qp->post_send(&wr, &bad);
  if (code == 0) return true;
  if (error_.empty())
    error_ = device_.name() + ": posting a send request failed: error " + std::to_string(code);
  return false;
}

bool HostProgram::take(Nanos now) {
  std::array<ibv_wc, 32> completions;
  bool worked = false;
  for (;;) {
    const int count = cq_.poll(static_cast<int>(completions.size()), completions.data());
    for (int i = 0; i < count; ++i) completed(completions[static_cast<size_t>(i)], now);
    worked |= count > 0;
    if (count < static_cast<int>(completions.size())) return worked;
  }
}

void HostProgram::completed(const ibv_wc& wc, Nanos now) {
  if ((wc.wr_id & kReceive) != 0) {
    if (wc.status == IBV_WC_SUCCESS) post_receive(static_cast<uint32_t>(wc.wr_id & ~kReceive));
    return;
  }
  const auto number = static_cast<uint32_t>(wc.wr_id >> kSlotBits);
  const auto slot = static_cast<uint32_t>(wc.wr_id & ((1U << kSlotBits) - 1));
  Stream& stream = streams_[number];
  if (stream.over) return;
  if (wc.status != IBV_WC_SUCCESS) {
    if (error_.empty())
      error_ = device_.name() + ": a message failed with status " + std::to_string(wc.status);
    if (stream.result != nullptr) return end_flow(stream, now, true);
    stream.over = true;
    return;
  }
  if (stream.result != nullptr) {
    --stream.in_flight;
    return fill(number, now);
  }
  const Stream::Message& message = stream.messages[slot];
  loop_results_.push_back({stream.loop, message.bytes, message.start - origin_, now - origin_});
  if (stream.spec->think > Nanos{0}) {
    starts_.push({now + stream.spec->think, number, slot});
  } else {
    begin_message(number, slot, now);
  }
}

void HostProgram::end_flow(Stream& stream, Nanos now, bool failed) {
  if (stream.over) return;
  stream.over = true;
  // A failed flow may have completions that were not polled.
  if (!failed) expected_ -= stream.depth;
  if (!stream.unlimited) --busy_;
  stream.result->end = now - origin_;
  stream.result->failed = failed;
}

}  // namespace roci::lab
