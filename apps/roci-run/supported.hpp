// List of unmodified programs that were run with roci-run: docs/programs.yaml, embedded at build time.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace roci::run {

std::string_view programs_yaml();

// The list as a table: one row per program, followed by lines with its executables, services, tests and note.
Result<std::string> supported_table();
// The same as an array of JSON objects.
Result<std::string> supported_json();

}  // namespace roci::run
