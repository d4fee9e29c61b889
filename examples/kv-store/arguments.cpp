#include "arguments.hpp"

#include <charconv>

namespace kv {

roci::Result<Arguments> Arguments::parse(int count, char** words,
                                         std::map<std::string, std::string> allowed) {
  Arguments arguments;
  arguments.values_ = std::move(allowed);
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word.rfind("--", 0) != 0) {
      if (!arguments.word_.empty()) return roci::fail("unexpected argument: " + word);
      arguments.word_ = word;
      continue;
    }
    const auto option = arguments.values_.find(word);
    if (option == arguments.values_.end()) {
      std::string names;
      for (const auto& [name, value] : arguments.values_) names += " " + name;
      return roci::fail("unknown option " + word + "; available are:" + names);
    }
    if (i + 1 == count) return roci::fail(word + " requires a value");
    option->second = words[++i];
  }
  return arguments;
}

roci::Result<uint64_t> Arguments::number(const std::string& name, uint64_t most) const {
  const std::string& value = text(name);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number > most)
    return roci::fail(name + " " + value + " is not a number from 0 to " + std::to_string(most));
  return number;
}

}  // namespace kv
