// Runs tshark with config/wireshark/roci.lua once per capture, and returns the fields of each frame.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace roci::test {

using Bytes = std::vector<uint8_t>;

// Values of each field of a frame, in order. Numbers and flags are decimal.
using Reading = std::map<std::string, std::vector<std::string>>;

// A capture in a temporary file, which is removed with the object.
class CaptureFile {
 public:
  explicit CaptureFile(const std::string& name);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // Adds a frame, of which the file contains only the first `captured` bytes.
  void add(const Bytes& frame, size_t captured = SIZE_MAX);
  // Writes the frames as a classic pcap file.
  void save() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  Bytes bytes_;
};

// Installs the script as docs/wireshark.md describes, until the object is destroyed.
class InstalledScript {
 public:
  InstalledScript();
  ~InstalledScript();
  InstalledScript(const InstalledScript&) = delete;
  InstalledScript& operator=(const InstalledScript&) = delete;
};

class Tshark {
 public:
  // Additional options, such as "-o roci.int_port:6000".
  explicit Tshark(std::string options = "") : options_(std::move(options)) {}

  // Returns false and fails the test with instructions if tshark is not installed or rejects the script.
  static bool is_usable();

  // Fields that the script registers, without those that are only headings.
  static const std::vector<std::string>& own_fields();
  // Names of the values of a field.
  static std::map<uint64_t, std::string> value_names(const std::string& field);
  // Reads these fields of every frame. Missing fields are not in its reading.
  [[nodiscard]] std::vector<Reading> read(const std::string& path,
                                          const std::vector<std::string>& fields) const;

 private:
  std::string options_;
};

}  // namespace roci::test
