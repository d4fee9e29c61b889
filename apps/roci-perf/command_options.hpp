// How the options of a test get onto its command line: each with a sentence of ours when its value is refused.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/result.hpp"

namespace roci::perf {

// The kind of an option's value and nothing else: which options exclude each other is said when it matters.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option_opts(const CLI::Option* option) const override;
};

// Adds options to a leaf command ("write bw"). Names are as CLI11 wants them ("-s,--size"); `given` gets the long names of
// those that are on the command line, without dashes.
class CommandOptions {
 public:
  using Take = std::function<Status(const std::string&)>;

  CommandOptions(CLI::App& app, std::set<std::string>& given) : app_(app), given_(given) {}

  // Options are taken as text so that every refusal names the limits.
  CLI::Option* text(const std::string& names, const std::string& help, const char* type, const char* group,
                    Take take);
  // May be given several times; `take` gets each value.
  CLI::Option* texts(const std::string& names, const std::string& help, const char* type, const char* group,
                     Take take);
  template <class T>
  CLI::Option* number(const std::string& names, T& target, uint64_t low, uint64_t high,
                      const std::string& help, const char* group) {
    return whole(names, low, high, help, group,
                 [&target](uint64_t value) { target = static_cast<T>(value); });
  }
  CLI::Option* seconds(const std::string& names, double& target, double low, double high,
                       const std::string& help, const char* group);
  CLI::Option* flag(const std::string& names, bool& target, const std::string& help, const char* group);

 private:
  CLI::Option* whole(const std::string& names, uint64_t low, uint64_t high, const std::string& help,
                     const char* group, std::function<void(uint64_t)> take);
  Take reported(const std::string& names, Take take);

  CLI::App& app_;
  std::set<std::string>& given_;
};

}  // namespace roci::perf
