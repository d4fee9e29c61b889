// Parsing of frames in place and as values, and encoding, by payload size.
#include "wire/roce/frame.hpp"

#include <cstring>
#include <string>

#include "support/against.hpp"
#include "wire/frames.hpp"
#include "wire/roce/roce_writer.hpp"

namespace roci::bench {
namespace {

// Ethernet, IPv4, UDP and BTH: the bytes that a parser must read.
void limit_copy_headers(benchmark::State& state) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcSendOnly, 64));
  uint8_t copy[54];
  for (auto _ : state) {
    std::memcpy(copy, frame.data(), sizeof copy);
    benchmark::DoNotOptimize(copy);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

void parse(benchmark::State& state, bool ipv6) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcWriteOnly, 64, ipv6));
  for (auto _ : state) {
    benchmark::DoNotOptimize(view_of(frame));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
  against(state, {"limit_copy_headers"});
}

// decode_packet() and encode_packet(), for tools and tests, own their bytes; the peer is a vector that copies the
// frame.
void limit_copy_vector(benchmark::State& state) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcWriteOnly, state.range(0)));
  for (auto _ : state) {
    ByteVector copy(frame);
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

void decode(benchmark::State& state) {
  const ByteVector frame = encode_packet(some_packet(Opcode::kRcWriteOnly, state.range(0)));
  for (auto _ : state) {
    auto packet = decode_packet(frame);
    benchmark::DoNotOptimize(packet->bth);
  }
  state.SetItemsProcessed(state.iterations());
  against(state, {"limit_copy_vector/" + std::to_string(state.range(0))});
}

void encode(benchmark::State& state) {
  const Packet packet = some_packet(Opcode::kRcWriteOnly, state.range(0));
  for (auto _ : state) {
    ByteVector frame = encode_packet(packet);
    benchmark::DoNotOptimize(frame.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
  against(state, {"limit_copy_vector/" + std::to_string(state.range(0))});
}

// Writes headers and ICRC of a packet around an existing payload. The limit is the CRC of the same number of bytes; the
// difference is the cost of the headers.
void write_frame(benchmark::State& state, Opcode opcode, bool ipv6) {
  RocePath path;
  path.source_mac = MacAddress::local(1);
  path.destination_mac = MacAddress::local(2);
  const Packet addresses = make_packet(opcode, ipv6);
  path.source_ip = addresses.source;
  path.destination_ip = addresses.destination;
  RoceWriter writer(path);
  const auto payload = static_cast<uint32_t>(state.range(0));
  std::vector<uint8_t> frame = some_bytes(writer.frame_bytes(opcode_info(opcode), payload));
  BthFields bth{.opcode = opcode, .destination_qp = Qpn{0x11}, .psn = Psn{0}};
  int64_t covered = 0;
  for (auto _ : state) {
    RoceWriter::Open open = writer.begin(frame.data(), bth, payload);
    RoceWriter::finish(open);
    ++bth.psn;
    covered = covered_bytes(open.view);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * covered);
  const std::string nearest = std::to_string(payload == 0 ? 8 : payload);
  against(state, {"limit_crc32/" + nearest, "limit_memcpy/" + nearest});
}

BENCHMARK(limit_copy_headers);
BENCHMARK_CAPTURE(parse, ipv4, false);
BENCHMARK_CAPTURE(parse, ipv6, true);
BENCHMARK(limit_copy_vector)->Arg(64)->Arg(1024)->Arg(4096);
BENCHMARK(decode)->Arg(64)->Arg(1024)->Arg(4096);
BENCHMARK(encode)->Arg(64)->Arg(1024)->Arg(4096);
BENCHMARK_CAPTURE(write_frame, ack, Opcode::kRcAcknowledge, false)->Arg(0);
BENCHMARK_CAPTURE(write_frame, ack_ipv6, Opcode::kRcAcknowledge, true)->Arg(0);
BENCHMARK_CAPTURE(write_frame, write, Opcode::kRcWriteOnly, false)->Arg(64)->Arg(1024)->Arg(4096);

}  // namespace
}  // namespace roci::bench
