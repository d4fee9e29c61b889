#include "roci-perf/options/command_options.hpp"

#include <cstdio>
#include <sstream>
#include <utility>

#include "roci-perf/options/option_values.hpp"

namespace roci::perf {
namespace {

constexpr size_t kHelpColumn = 32;
constexpr size_t kHelpWidth = 100 - kHelpColumn;

// CLI11 indents the lines of a help text, but does not wrap them.
std::string wrapped(const std::string& text) {
  std::string lines;
  size_t length = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool fits = length + 1 + word.size() <= kHelpWidth;
    if (length > 0) lines += fits ? ' ' : '\n';
    length = length > 0 && fits ? length + 1 + word.size() : word.size();
    lines += word;
  }
  return lines;
}

// "-p,--port" -> "port"
std::string long_name(const std::string& names) {
  const size_t start = names.find("--") + 2;
  return names.substr(start, names.find(',', start) - start);
}

}  // namespace

HelpFormatter::HelpFormatter() { column_width(kHelpColumn); }

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string type = option->get_type_name();
  return type.empty() || option->get_positional() ? "" : " " + type;
}

CommandOptions::Take CommandOptions::reported(const std::string& names, Take take) {
  return [this, name = long_name(names), take = std::move(take)](const std::string& value) -> Status {
    given_.insert(name);
    if (Status status = take(value); !status)
      throw CLI::ValidationError("--" + name + " is \"" + value + "\"; " + status.error().message);
    return {};
  };
}

CLI::Option* CommandOptions::text(const std::string& names, const std::string& help, const char* type,
                                  const char* group, Take take) {
  auto* option = app_.add_option_function<std::string>(
      names, [one = reported(names, std::move(take))](const std::string& value) { (void)one(value); },
      wrapped(help));
  return option->type_name(type)->group(group);
}

CLI::Option* CommandOptions::texts(const std::string& names, const std::string& help, const char* type,
                                   const char* group, Take take) {
  auto* option = app_.add_option_function<std::vector<std::string>>(
      names,
      [one = reported(names, std::move(take))](const std::vector<std::string>& values) {
        for (const std::string& value : values) (void)one(value);
      },
      wrapped(help));
  return option->type_name(type)->group(group);
}

CLI::Option* CommandOptions::whole(const std::string& names, uint64_t low, uint64_t high,
                                   const std::string& help, const char* group,
                                   std::function<void(uint64_t)> take) {
  return text(names, help, "N", group,
              [low, high, take = std::move(take)](const std::string& value) -> Status {
                const auto whole = parse_whole(value);
                if (!whole || *whole < low || *whole > high) {
                  return fail("allowed are whole numbers from " + std::to_string(low) + " to " +
                              std::to_string(high));
                }
                take(*whole);
                return {};
              });
}

CLI::Option* CommandOptions::seconds(const std::string& names, double& target, double low, double high,
                                     const std::string& help, const char* group) {
  return text(names, help, "S", group, [&target, low, high](const std::string& value) -> Status {
    const auto parsed = parse_number(value);
    if (!parsed || *parsed < low || *parsed > high) {
      char sentence[80];
      std::snprintf(sentence, sizeof sentence, "allowed are %g to %g seconds", low, high);
      return fail(sentence);
    }
    target = *parsed;
    return {};
  });
}

CLI::Option* CommandOptions::flag(const std::string& names, bool& target, const std::string& help,
                                  const char* group) {
  auto* option = app_.add_flag_callback(
      names,
      [this, &target, name = long_name(names)] {
        target = true;
        given_.insert(name);
      },
      wrapped(help));
  return option->group(group);
}

}  // namespace roci::perf
