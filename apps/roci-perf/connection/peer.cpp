#include "roci-perf/connection/peer.hpp"

#include <charconv>
#include <cstdio>
#include <optional>
#include <set>

namespace roci::perf {
namespace {

std::optional<uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

}  // namespace

Result<QueuePairAddress> QueuePairAddress::parse(std::string_view text) {
  constexpr const char* kForm = "gid=ADDRESS,qpn=N,psn=N[,rkey=N,va=N]";
  QueuePairAddress peer;
  std::set<std::string, std::less<>> seen;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) return fail(quoted(item) + " has no '='; required is " + kForm);
    const std::string_view key = item.substr(0, equals), value = item.substr(equals + 1);
    if (!seen.emplace(key).second) return fail(quoted(key) + " occurs more than once; required is " + kForm);
    if (key == "gid") {
      auto gid = Gid::parse(value);
      if (!gid) return fail("gid: " + gid.error().message);
      peer.gid = *gid;
      continue;
    }
    uint64_t most = 0xffffff;
    if (key == "rkey") {
      most = UINT32_MAX;
    } else if (key == "va") {
      most = UINT64_MAX;
    } else if (key != "qpn" && key != "psn") {
      return fail("unknown part " + quoted(key) + "; required is " + kForm);
    }
    const auto number = parse_number(value);
    if (!number || *number > most) {
      char limit[24];
      std::snprintf(limit, sizeof limit, "0x%llx", static_cast<unsigned long long>(most));
      return fail(std::string(key) + " is " + quoted(value) + "; allowed are numbers from 0 to " + limit);
    }
    if (key == "qpn") peer.qpn = static_cast<uint32_t>(*number);
    if (key == "psn") peer.psn = static_cast<uint32_t>(*number);
    if (key == "rkey") peer.rkey = static_cast<uint32_t>(*number);
    if (key == "va") peer.address = *number;
  }
  for (const char* needed : {"gid", "qpn", "psn"}) {
    if (!seen.contains(needed)) return fail(std::string(needed) + " is missing; required is " + kForm);
  }
  if (seen.contains("rkey") != seen.contains("va")) return fail("rkey and va must be specified together");
  return peer;
}

std::string QueuePairAddress::to_string() const {
  char text[96];
  std::snprintf(text, sizeof text, ",qpn=0x%06x,psn=0x%06x,rkey=0x%08x,va=0x%llx", qpn, psn, rkey,
                static_cast<unsigned long long>(address));
  return "gid=" + gid.to_string() + text;
}

std::string gid_in_decimal(const Gid& gid) {
  std::string text;
  char number[4];
  for (const uint8_t byte : gid.bytes) {
    std::snprintf(number, sizeof number, "%02u", byte);
    text += (text.empty() ? "" : ":") + std::string(number);
  }
  return text;
}

}  // namespace roci::perf
