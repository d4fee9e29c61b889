// Command lines of programs: errors of options are one line with the name of the program.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "base/os/standard_output.hpp"

namespace roci {

inline constexpr int kInvalidOptions = 2;  // exit status

// Parses the command line. Returns the exit status of a program that ends here: after --help and --version, or with
// `failure` for invalid options. `name` is that of the program.
inline std::optional<int> parse_command_line(CLI::App& app, const char* name, int argc, char** argv,
                                             int failure = kInvalidOptions) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& printed) {  // --help, --version
    return checked_exit_status(name, app.exit(printed), failure);
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    text.resize(std::min(text.find('\n'), text.size()));
    while (text.ends_with('.')) text.pop_back();
    std::fprintf(stderr, "%s: %s; see '%s --help'\n", name, text.c_str(), name);
    return failure;
  }
  return {};
}

}  // namespace roci
