// Arbitrary bytes as what a peer of an RDMA socket sends before its data is trusted: the private data of REQ and REP, and the
// header of a datagram. Accepted input is written again with the same meaning.
#include <cstdint>
#include <cstring>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "rdmacm/sockets/protocol.hpp"

namespace {

using namespace roci::rdmacm::sockets;
using roci::test::require;

std::vector<uint8_t> bytes_of(const WireConnectionData& wire) {
  std::vector<uint8_t> bytes(sizeof wire);
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

void check_connection_data(std::span<const uint8_t> bytes) {
  const auto data = from_wire(bytes);
  if (!data) return;
  require(bytes.size() >= sizeof(WireConnectionData) && bytes[0] == WireConnectionData::kVersion,
          "only version 1 in full length is accepted");
  require(data->grants.length > 0, "a peer without a list of grants is refused");
  const auto written = bytes_of(to_wire(*data));
  const auto again = from_wire(written);
  require(again.has_value() && bytes_of(to_wire(*again)) == written,
          "accepted data is read as it was written");
  require(std::equal(written.begin() + 8, written.end(), bytes.begin() + 8),
          "no address, key or length changes");
}

void check_datagram_header(std::span<const uint8_t> bytes) {
  const auto source = read_datagram_header(bytes);
  if (!source) return;
  const size_t length = datagram_header_length(*source);
  require(length <= bytes.size() && length == bytes[1], "the header is as long as its length field");
  std::vector<uint8_t> written(length);
  write_datagram_header(*source, written);
  require(read_datagram_header(written) == source, "a source is read as it was written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // As large as the input, so that a sanitizer detects a read beyond its end.
  std::vector<uint8_t> bytes(data, data + size);
  bytes.shrink_to_fit();
  check_connection_data(bytes);
  check_datagram_header(bytes);
  return 0;
}
