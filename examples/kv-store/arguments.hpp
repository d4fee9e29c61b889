// Command-line options of both programs: `--name value` pairs, and at most one other word.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "roci/result.hpp"

namespace kv {

class Arguments {
 public:
  // Accepts the options in `allowed`, which contains their defaults, and one other word.
  static roci::Result<Arguments> parse(int count, char** words, std::map<std::string, std::string> allowed);

  [[nodiscard]] const std::string& text(const std::string& name) const { return values_.at(name); }
  [[nodiscard]] roci::Result<uint64_t> number(const std::string& name, uint64_t most) const;
  [[nodiscard]] const std::string& word() const { return word_; }

 private:
  std::map<std::string, std::string> values_;
  std::string word_;
};

}  // namespace kv
