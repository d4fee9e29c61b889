// Fuzz target: random bytes as a connection management MAD. An accepted message is encoded to the same bytes except
// for reserved fields, and decoded to the same message again. Other messages are rejected. The same for the header of
// the IP service (IP CM).
#include <cstdint>
#include <cstring>
#include <vector>

#include "fuzz/fuzz_target.hpp"
#include "wire/mad/cm_messages.hpp"

namespace {

using namespace roci;
using test::require;

bool has_right_header(std::span<const uint8_t> bytes) {
  if (bytes.size() != kMadBytes) return false;
  constexpr uint8_t kRight[] = {1, kCmClass, 2, MadHeader::kSend, 0, 0};
  return std::equal(std::begin(kRight), std::end(kRight), bytes.begin()) && bytes[16] == 0 &&
         bytes[17] >= CmRequest::kAttribute && bytes[17] <= CmPathAnswer::kAttribute;
}

// The allocation has exactly the datagram's size, so that a sanitizer detects reads beyond it.
void check(std::vector<uint8_t> bytes) {
  bytes.shrink_to_fit();
  const ParsedCm parsed = parse_cm_mad(bytes);
  require(!cm_outcome_name(parsed.outcome).empty(), "an outcome has a name");
  require((parsed.outcome == CmOutcome::kAccepted) == has_right_header(bytes),
          "messages of ours are accepted, no others");
  if (parsed.outcome != CmOutcome::kAccepted) return;
  require(!cm_message_name(parsed.mad.message).empty(), "a message has a name");
  const auto again = build_cm_mad(parsed.mad);
  for (size_t at = 0; at < kMadBytes; ++at)
    require((again[at] & ~bytes[at]) == 0, "what is built has nothing that was not there");
  const ParsedCm second = parse_cm_mad(again);
  require(second.outcome == CmOutcome::kAccepted && second.mad == parsed.mad,
          "what is built is read as it was");
  require(build_cm_mad(second.mad) == again, "what is as we build it is built bit for bit");
}

void check_ip_header(std::span<const uint8_t> data) {
  std::vector<uint8_t> bytes(CmIpHeader::kBytes);
  std::copy_n(data.begin(), std::min(data.size(), bytes.size()), bytes.begin());
  const auto header = read_cm_ip_header(bytes);
  if (!header) return;
  std::vector<uint8_t> again(CmIpHeader::kBytes, 0xff);
  write_cm_ip_header(*header, again);
  require(read_cm_ip_header(again) == header, "an address is read as it was written");
  for (size_t at = 0; at < again.size(); ++at)
    require((again[at] & ~bytes[at]) == 0, "what is written has nothing that was not there");
}

// Bytes after a valid header, whose message type is selected by the first byte.
std::vector<uint8_t> message_of(std::span<const uint8_t> data) {
  constexpr size_t kMessages = std::variant_size_v<CmMessage>;
  std::vector<uint8_t> out(kMadBytes);
  constexpr uint8_t kHeader[] = {1, kCmClass, 2, MadHeader::kSend};
  std::copy(std::begin(kHeader), std::end(kHeader), out.begin());
  out[17] = static_cast<uint8_t>(CmRequest::kAttribute + data[0] % kMessages);
  const auto rest = data.subspan(1, std::min(data.size() - 1, kMadBytes - sizeof(MadHeader)));
  std::copy(rest.begin(), rest.end(), out.begin() + sizeof(MadHeader));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check({data, data + size});
  check_ip_header({data, size});
  if (size == 0) return 0;
  check(message_of({data, size}));
  return 0;
}
