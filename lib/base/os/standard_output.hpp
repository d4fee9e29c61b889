// Standard output of programs: results that could not be written are an error, and the width of a terminal.
#pragma once

#include <cstddef>
#include <optional>

#include "base/result.hpp"

namespace roci {

// Writes buffered output to the file. Keeps the reason of the first failure for written_standard_output(). Returns
// false if a write has failed, also an earlier one.
bool flush_standard_output();

// Writes buffered output. Fails if any output since the start of the program could not be written. A closed standard
// output is an error only if there was output.
Status written_standard_output();

// For the end of main(): prints the error of written_standard_output() with the name of the program, once. Returns
// `status`, or `failure` if that is 0 and output is missing.
int checked_exit_status(const char* program, int status, int failure);

// Columns of the terminal at a file descriptor, if it is one that reports them.
std::optional<size_t> terminal_columns(int descriptor);

}  // namespace roci
