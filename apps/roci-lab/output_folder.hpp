// Output folder of 'roci-lab run'.
#pragma once

#include <filesystem>

#include "roci-lab/jobs.hpp"

namespace roci::lab {

[[nodiscard]] std::filesystem::path output_folder(const RunOptions& options);

// Creates the folder, checks that it is writable, and removes the results of earlier runs of the same scenario file.
// Fails if the folder has results of another file that this command does not replace.
Status prepare_output(const RunOptions& options, const Plan& plan);

}  // namespace roci::lab
