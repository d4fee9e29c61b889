// Runs tshark with config/wireshark/roci.lua, once for a capture, and says what it reads in each frame.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace roci::test {

using Bytes = std::vector<uint8_t>;

// The values of each field of a frame, in the order of the frame. Numbers and flags are decimal.
using Reading = std::map<std::string, std::vector<std::string>>;

// A capture in a temporary file, which goes with it.
class CaptureFile {
 public:
  explicit CaptureFile(const std::string& name);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // One frame more, of which only the first `captured` bytes are in the file.
  void add(const Bytes& frame, size_t captured = SIZE_MAX);
  // Writes them as a classic pcap file.
  void save() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  Bytes bytes_;
};

// While it lives, the script is also where docs/wireshark.md puts it.
class InstalledScript {
 public:
  InstalledScript();
  ~InstalledScript();
  InstalledScript(const InstalledScript&) = delete;
  InstalledScript& operator=(const InstalledScript&) = delete;
};

class Tshark {
 public:
  // Options beside the script, like "-o roci.int_port:6000".
  explicit Tshark(std::string options = "") : options_(std::move(options)) {}

  // False, and a failure of the test that says what to do, when it is not installed or does not take the script.
  static bool is_usable();

  // What the script adds to tshark's fields, but for those that are only headings.
  static const std::vector<std::string>& own_fields();
  // What the values of one of them are called.
  static std::map<uint64_t, std::string> value_names(const std::string& field);
  // These fields of every frame; those that a frame has not are missing in its reading.
  [[nodiscard]] std::vector<Reading> read(const std::string& path,
                                          const std::vector<std::string>& fields) const;

 private:
  std::string options_;
};

}  // namespace roci::test
