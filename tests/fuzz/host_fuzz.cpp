// Bytes become a sequence of packets, posts, the passing of time and other events at a host with a connected queue pair.
// Packets are aimed: they carry the right ICRC, addresses and queue pair, and PSNs close to those that count now, so that
// inputs get far. Whatever comes: memory outside the region stays as it was, each work request completes at most once and
// in order, and after the error state exactly once; no buffer is lost; the host comes to rest.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>

#include "support/lone_host.hpp"
#include "wire/icrc.hpp"

namespace roci::test {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  [[nodiscard]] bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? uint8_t{0} : *at_++; }
  uint16_t word() {
    const uint16_t high = byte();
    return static_cast<uint16_t>(high << 8 | byte());
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

constexpr size_t kRegion = 8192;

LoneHostOptions fuzz_options() {
  LoneHostOptions options;
  options.cq_entries = 4096;
  options.region = kRegion;
  options.rq_psn = 0xfffff0;  // wraps soon
  options.sq_psn = 0xfffff8;
  options.window_bytes = 4096;
  return options;
}

class Session {
 public:
  explicit Session(LoneHost& host) : host_(host) {
    host_.port().blocked = false;
    host_.to_bare(IBV_QPS_RESET);
    host_.wait(1s);
    host_.side.completions();
    if (!host_.side.region) register_region();
    host_.connect();
  }

  void run(Input input) {
    for (int steps = 0; !input.empty() && steps < 200; ++steps) {
      step(input);
      host_.work();
      check();
    }
    host_.port().blocked = false;
    host_.to_bare(IBV_QPS_ERR);
    host_.wait(1s);
    check();
    require(sends_.empty() && receives_.empty(), "every work request completes");
    require(host_.pool().in_use() == 0, "received buffers are given back");
    require(host_.guards_whole(), "nothing outside the region is written");
  }

 private:
  void register_region() {
    host_.side.region = must(host_.side.pd->register_memory(
        host_.side.memory.data() + LoneHost::kGuard, kRegion,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
  }

  void step(Input& input) {
    const uint8_t kind = input.byte();
    if (kind < 160) return packet(input, kind);
    if (kind < 200) return post(input, kind);
    if (kind < 215) return receive(input);
    if (kind < 235) {
      host_.wait(Nanos{int64_t{input.byte()} * input.byte() * 1000});
      return;
    }
    switch (kind) {
      case 235:
        host_.port().blocked = !host_.port().blocked;
        return;
      case 236:
        host_.side.region.reset();
        return;
      case 237:
        if (!host_.side.region) register_region();
        return;
      case 238:
        host_.to_bare(IBV_QPS_ERR);
        return;
      case 239:
        host_.to_bare(IBV_QPS_RESET);
        host_.connect();
        sends_.clear();
        receives_.clear();
        return;
      default:
        return raw(input);
    }
  }

  // The first bytes choose an opcode and where it aims, the rest changes single fields.
  void packet(Input& input, uint8_t kind) {
    const auto table = opcode_table();
    // Mostly those of a reliable connection, which come first.
    const OpcodeInfo& info = table[kind < 150 ? kind % 23U : kind % table.size()];
    size_t payload = 0;
    const uint8_t shape = input.byte();
    switch (info.payload) {
      case PayloadRule::kNone:
        payload = (shape & 0xf0U) == 0xf0 ? 4 : 0;
        break;
      case PayloadRule::kFullMtu:
        payload = (shape & 0xf0U) == 0xf0 ? shape : 256;
        break;
      default:
        payload = std::min<size_t>(input.byte() * 2U, 300);
    }
    Packet packet = host_.request(info.opcode, 0, payload);
    const auto delta = static_cast<int8_t>(shape << 4) / 16;  // -8 to 7
    const ReliableQueuePair& core = host_.core();
    const Psn near = info.is_response() ? core.requester.oldest_unacknowledged() : core.responder.expected();
    packet.bth.psn = Psn{near.value() + static_cast<uint32_t>((shape & 0x10U) == 0 ? 0 : delta)};
    if (packet.aeth) packet.aeth->syndrome = (shape & 0x20U) != 0 ? input.byte() : uint8_t{0x1f};
    if (packet.reth) {
      const uint8_t where = input.byte();
      const uint32_t offset = where * 64U;  // up to twice the region
      const uint32_t rkey = host_.side.region ? host_.side.region->rkey() : 1;
      const uint8_t how = input.byte();
      uint32_t length = info.operation == Operation::kReadRequest || info.opcode == Opcode::kRcWriteFirst
                            ? how * 64U
                            : static_cast<uint32_t>(payload);
      if (how > 250) length = uint32_t{how} << 24 | input.word();
      packet.with_reth(host_.side.address(LoneHost::kGuard) + offset - 256, MemoryKey{rkey}, length);
      if ((shape & 0x40U) != 0 && last_) packet.reth = last_->reth;
    }
    if (packet.reth) last_ = packet;
    host_.port().put(encode_packet(packet.finish()), (shape & 0x80U) != 0 ? 97 : SIZE_MAX);
  }

  // The last packet with some bytes changed and the ICRC put right again.
  void raw(Input& input) {
    if (!last_) return;
    ByteVector frame = encode_packet(last_->finish());
    for (unsigned n = input.byte() % 4U; n > 0; --n) frame[input.byte() % frame.size()] = input.byte();
    if (input.byte() < 32) frame.resize(input.byte() % frame.size());
    const auto length = static_cast<uint32_t>(frame.size());
    const FrameView view = parse_frame(frame.data(), length, length);
    if (view.kind == FrameKind::kRoce) store_icrc(frame.data() + view.icrc_offset, compute_icrc(view));
    host_.port().put(frame, input.byte() < 64 ? 61 : SIZE_MAX);
  }

  void post(Input& input, uint8_t kind) {
    constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                          IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
    if (!host_.side.region) return;
    const uint8_t flags = input.byte();
    unsigned send_flags = 0;
    if ((flags & 1U) != 0) send_flags |= IBV_SEND_FENCE;
    if ((flags & 2U) != 0) send_flags |= IBV_SEND_INLINE;
    if ((flags & 4U) != 0) send_flags |= IBV_SEND_SOLICITED;
    if (host_.post(kOpcodes[kind % 5], next_id_, input.word() % kRegion, send_flags) == 0)
      sends_.push_back(next_id_++);
  }

  void receive(Input& input) {
    if (host_.side.region && host_.side.receive(next_id_, LoneHost::kGuard, input.word() % kRegion) == 0)
      receives_.push_back(next_id_++);
  }

  void check() {
    for (const ibv_wc& wc : host_.side.completions()) {
      if (!sends_.empty() && sends_.front() == wc.wr_id) {
        sends_.pop_front();
      } else {
        require(!receives_.empty() && receives_.front() == wc.wr_id, "completions come once and in order");
        receives_.pop_front();
      }
    }
    host_.port().sent.clear();
  }

  LoneHost& host_;
  std::deque<uint64_t> sends_, receives_;
  uint64_t next_id_ = 1;
  std::optional<Packet> last_;
};

}  // namespace
}  // namespace roci::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* host = new roci::test::LoneHost(roci::test::fuzz_options());
  roci::test::Session(*host).run({data, size});
  return 0;
}
