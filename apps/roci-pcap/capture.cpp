#include "roci-pcap/capture.hpp"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <cerrno>

namespace roci::pcap_tool {

void Capture::Close::operator()(pcap* handle) const { pcap_close(handle); }

Result<Capture> Capture::open(const std::string& path) {
  char why[PCAP_ERRBUF_SIZE] = "";
  std::unique_ptr<pcap, Close> handle(
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, why));
  if (!handle) {
    std::string reason = why;  // libpcap starts some of its messages with the path
    if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
    return fail(fmt::format("{}: cannot be read as a pcap or pcapng file: {}", path, reason), EIO);
  }
  if (const int link = pcap_datalink(handle.get()); link != DLT_EN10MB) {
    const char* name = pcap_datalink_val_to_name(link);
    return fail(fmt::format("{}: unsupported link type {}; supported is Ethernet (EN10MB)", path,
                            name == nullptr ? std::to_string(link) : name));
  }
  return Capture(std::move(handle), path);
}

Result<std::optional<CapturedFrame>> Capture::next() {
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  const int outcome = pcap_next_ex(handle_.get(), &header, &data);
  if (outcome == PCAP_ERROR_BREAK) return std::optional<CapturedFrame>{};
  if (outcome != 1) {
    return fail(fmt::format("{}: truncated after packet {}: {}", path_, number_, pcap_geterr(handle_.get())),
                EIO);
  }
  // With nanosecond precision, tv_usec counts nanoseconds.
  const Nanos time = std::chrono::seconds(header->ts.tv_sec) + Nanos(header->ts.tv_usec);
  if (++number_ == 1) first_ = time;
  return CapturedFrame{number_, time - first_, {data, header->caplen}, std::max(header->len, header->caplen)};
}

}  // namespace roci::pcap_tool
