// Output folder of 'roci-lab run'.
#pragma once

#include <filesystem>
#include <string_view>

#include "roci-lab/jobs.hpp"

namespace roci::lab {

// Whether a run or the command writes a file of this name.
[[nodiscard]] bool is_result_file(std::string_view name);

[[nodiscard]] std::filesystem::path output_folder(const RunOptions& options);

// Creates the folder, checks that it is writable, and removes the results of earlier runs of the same scenario file.
// Fails if the folder has results of another file that this command does not replace.
Status prepare_output(const RunOptions& options, const Plan& plan);

}  // namespace roci::lab
