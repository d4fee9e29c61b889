// The ICRC of SEND ONLY frames by payload size. Limits: memcpy, and the CRC-32 of the covered bytes. All data is in the
// first-level cache.
#include "wire/icrc/icrc.hpp"

#include <isa-l/crc.h>

#include <cstring>
#include <string>

#include "support/against.hpp"
#include "wire/frames.hpp"
#include "wire/icrc/copy_crc.hpp"

namespace roci::bench {
namespace {

void limit_memcpy(benchmark::State& state) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcSendOnly, state.range(0)));
  const FrameView view = view_of(frame);
  const auto bytes = static_cast<size_t>(covered_bytes(view));
  std::vector<uint8_t> to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), frame.data() + view.l3_offset, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void limit_crc32(benchmark::State& state) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcSendOnly, state.range(0)));
  const FrameView view = view_of(frame);
  const auto bytes = static_cast<uint64_t>(covered_bytes(view));
  for (auto _ : state) {
    benchmark::DoNotOptimize(crc32_gzip_refl(0, frame.data() + view.l3_offset, bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void against_limits(benchmark::State& state) {
  const std::string payload = std::to_string(state.range(0));
  against(state, {"limit_crc32/" + payload, "limit_memcpy/" + payload});
}

void icrc(benchmark::State& state) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcSendOnly, state.range(0)));
  const FrameView view = view_of(frame);
  for (auto _ : state) {
    benchmark::DoNotOptimize(compute_icrc(view));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * covered_bytes(view));
  against_limits(state);
}

// The same frame as an mbuf chain: headers with the first bytes of the payload, the rest in equal segments.
void icrc_chained(benchmark::State& state) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcSendOnly, state.range(0)));
  const auto segments = static_cast<size_t>(state.range(1));
  std::vector<rte_mbuf> chain(segments);
  const size_t part = (frame.size() + segments - 1) / segments;
  for (size_t i = 0; i < segments; ++i) {
    chain[i].buf_addr = const_cast<uint8_t*>(frame.data() + i * part);
    chain[i].data_off = 0;
    chain[i].data_len = static_cast<uint16_t>(std::min(part, frame.size() - i * part));
    chain[i].next = i + 1 < segments ? &chain[i + 1] : nullptr;
  }
  chain[0].nb_segs = static_cast<uint16_t>(segments);
  const FrameView view = parse_frame(frame.data(), chain[0].data_len, static_cast<uint32_t>(frame.size()));
  if (compute_icrc(view, chain.data()) != compute_icrc(view_of(frame))) {
    state.SkipWithError("the ICRC of the chain differs from that of the whole frame");
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(compute_icrc(view, chain.data()));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * covered_bytes(view));
  against_limits(state);
}

// Copies a payload into a frame and computes its part of the ICRC: in one pass if the CPU supports it, and in two
// passes.
void copy_crc_with(benchmark::State& state, CopyCrc way, const std::string& peer) {
  if (way == nullptr) return state.SkipWithError("this processor lacks the instructions");
  const auto bytes = static_cast<size_t>(state.range(0));
  const std::vector<uint8_t> from(bytes, 1);
  std::vector<uint8_t> to(bytes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(way(0, to.data(), from.data(), bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  if (!peer.empty()) against(state, {peer + "/" + std::to_string(state.range(0))});
}
void copy_crc(benchmark::State& state) { copy_crc_with(state, roci::copy_crc, "copy_then_crc"); }
void copy_crc_of_avx2(benchmark::State& state) { copy_crc_with(state, copy_crc_avx2(), "copy_then_crc"); }
void copy_crc_of_clmul(benchmark::State& state) { copy_crc_with(state, copy_crc_clmul(), "copy_then_crc"); }
void copy_then_crc(benchmark::State& state) { copy_crc_with(state, copy_crc_isal(), ""); }

BENCHMARK(copy_crc)->Arg(1024)->Arg(2048)->Arg(4096);
BENCHMARK(copy_crc_of_avx2)->Arg(2048)->Arg(4096);
BENCHMARK(copy_crc_of_clmul)->Arg(2048)->Arg(4096);
BENCHMARK(copy_then_crc)->Arg(1024)->Arg(2048)->Arg(4096);
BENCHMARK(limit_memcpy)->Arg(8)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096);
BENCHMARK(limit_crc32)->Arg(8)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096);
BENCHMARK(icrc)->Arg(8)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096);
BENCHMARK(icrc_chained)->Args({1024, 2})->Args({4096, 2})->Args({4096, 4});

}  // namespace
}  // namespace roci::bench
