// main() of a fuzz target without libFuzzer: runs all given files, and all files of given directories, and mutations of
// them. So earlier findings and inputs similar to them are checked with any compiler.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using FileBytes = std::vector<uint8_t>;

constexpr const char* kUsage =
    "usage: %s [--mutations COUNT] FILE-OR-FOLDER…    runs the files and COUNT mutations of each\n"
    "       %s --write-mutation NUMBER FILE OUTPUT    writes a mutation that failed\n";

bool read_input(const std::filesystem::path& path, FileBytes& bytes) {
  std::ifstream file(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(file), {});
  return static_cast<bool>(file) || file.eof();
}

// Mutation `number` of an input: up to eight bytes or ranges are changed, inserted, removed or repeated. It depends only
// on the input and the number.
FileBytes mutated(FileBytes bytes, uint64_t number) {
  roci::Rng rng(number);
  for (uint64_t edits = rng.between(1, 8); edits > 0; --edits) {
    const auto at = bytes.begin() + static_cast<ptrdiff_t>(rng.below(bytes.size() + 1));
    const auto left = static_cast<uint64_t>(bytes.end() - at);
    const auto end = at + static_cast<ptrdiff_t>(rng.below(std::min<uint64_t>(left, 32) + 1));
    switch (rng.below(5)) {
      case 0:
        if (left > 0) *at ^= static_cast<uint8_t>(1U << rng.below(8));
        break;
      case 1:
        if (left > 0) *at = static_cast<uint8_t>(rng.below(2) == 0 ? rng.next() : rng.below(2) * 0xff);
        break;
      case 2:
        bytes.insert(at, static_cast<uint8_t>(rng.next()));
        break;
      case 3:
        bytes.erase(at, end);
        break;
      default: {
        const FileBytes repeated(at, end);
        bytes.insert(end, repeated.begin(), repeated.end());
      }
    }
  }
  return bytes;
}

bool parse_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

int write_mutation(uint64_t number, const char* input, const char* output) {
  FileBytes bytes;
  if (!read_input(input, bytes)) {
    std::fprintf(stderr, "%s: cannot be read\n", input);
    return 2;
  }
  bytes = mutated(std::move(bytes), number);
  std::ofstream file(output, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) std::fprintf(stderr, "%s: cannot be written\n", output);
  return file ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t number = 0;
  if (argc == 5 && std::string_view(argv[1]) == "--write-mutation" && parse_number(argv[2], number))
    return write_mutation(number, argv[3], argv[4]);
  const bool mutates =
      argc > 2 && std::string_view(argv[1]) == "--mutations" && parse_number(argv[2], number);
  std::vector<std::filesystem::path> files;
  for (int i = mutates ? 3 : 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i]))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, kUsage, argv[0], argv[0]);
    return 2;
  }
  for (const auto& path : files) {
    FileBytes bytes;
    if (!read_input(path, bytes)) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 2;
    }
    // Printed before each run, because a failure ends the process.
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    for (uint64_t mutation = 1; mutation <= number; ++mutation) {
      std::printf("mutation %llu\n", static_cast<unsigned long long>(mutation));
      std::fflush(stdout);
      const FileBytes changed = mutated(bytes, mutation);
      LLVMFuzzerTestOneInput(changed.data(), changed.size());
    }
  }
  std::printf("%zu inputs and %llu mutations of each, no violation found\n", files.size(),
              static_cast<unsigned long long>(number));
  return 0;
}
