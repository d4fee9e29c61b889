// Options of a test's command line. Rejected values are reported with messages of this program instead of CLI11's.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/result.hpp"

namespace roci::perf {

// Prints only the type of an option's value. Options that exclude each other are reported when both are given.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option_opts(const CLI::Option* option) const override;
};

// Adds options to a leaf command ("write bw"). Names have the syntax of CLI11 ("-s,--size"). `given` receives the long
// names, without dashes, of the options on the command line.
class CommandOptions {
 public:
  using Take = std::function<Status(const std::string&)>;

  CommandOptions(CLI::App& app, std::set<std::string>& given) : app_(app), given_(given) {}

  // Options are parsed as text, so that every error message states the limits.
  CLI::Option* text(const std::string& names, const std::string& help, const char* type, const char* group,
                    Take take);
  // The option may be repeated; `take` is called for each value.
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
