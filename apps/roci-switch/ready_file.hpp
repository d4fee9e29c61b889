// The file that exists while a switch is ready, with its process id. A program that is about to join the network touches
// it (net_control.cpp), so that the switch does not exit meanwhile.
#pragma once

#include <filesystem>
#include <string>

#include "roci/result.hpp"

namespace roci {

class ReadyFile {
 public:
  ReadyFile() = default;
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;
  ~ReadyFile();

  Status write(const std::filesystem::path& path);
  // Whether the file was touched since write() or the last call. False without a file.
  bool was_touched();
  // Removes the file. Returns false, and keeps it, if it was touched since the last call of was_touched(). A program that
  // comes later does not find the file.
  bool withdraw();

 private:
  std::filesystem::path path_;
  std::filesystem::file_time_type touched_;
};

}  // namespace roci
