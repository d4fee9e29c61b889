// Reader of Ethernet frames from a pcap or pcapng file. Uses libpcap.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/types.hpp"

struct pcap;

namespace roci::pcap_tool {

struct CapturedFrame {
  uint64_t number = 0;             // from 1, as in other tools
  Nanos time{0};                   // since the first frame of the file
  std::span<const uint8_t> bytes;  // captured bytes; valid until the next call of next()
  uint32_t length = 0;             // length on the wire, at least bytes.size()

  [[nodiscard]] bool is_cut() const { return bytes.size() < length; }
};

class Capture {
 public:
  // "-" is the standard input.
  static Result<Capture> open(const std::string& path);

  // The next frame; nothing at the end of the file; an error if the file is truncated or damaged.
  Result<std::optional<CapturedFrame>> next();

 private:
  struct Close {
    void operator()(pcap* handle) const;
  };
  Capture(std::unique_ptr<pcap, Close> handle, std::string path)
      : handle_(std::move(handle)), path_(std::move(path)) {}

  std::unique_ptr<pcap, Close> handle_;
  std::string path_;
  uint64_t number_ = 0;
  Nanos first_{0};
};

}  // namespace roci::pcap_tool
