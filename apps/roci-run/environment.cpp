#include "roci-run/environment.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "net/runtime_folder.hpp"

namespace roci::run {
namespace {

constexpr const char* kShim = "libroci-paths.so";
constexpr unsigned kGids = 16;

std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

bool is_usable_device(const char* path) {
  struct stat found {};
  return stat(path, &found) == 0 && S_ISCHR(found.st_mode) && access(path, R_OK | W_OK) == 0;
}

// All configured CPUs in the format of sysfs `local_cpus`.
std::string cpu_mask() {
  const long count = sysconf(_SC_NPROCESSORS_CONF);
  std::string mask;
  for (long left = count; left > 0; left -= 32) {
    std::array<char, 16> word;
    std::snprintf(word.data(), word.size(), "%08x", left >= 32 ? 0xffffffffU : (1U << left) - 1);
    mask = word.data() + (mask.empty() ? "" : "," + mask);
  }
  return mask;
}

Status write_tree(const std::filesystem::path& tree, const std::string& name) {
  const std::filesystem::path device = tree / "sys/class/infiniband" / name;
  std::error_code error;
  for (const char* folder : {"device", "ports/1/gid_attrs/types", "ports/1/gid_attrs/ndevs", "ports/1/pkeys"})
    std::filesystem::create_directories(device / folder, error);
  std::filesystem::create_directories(tree / "dev/infiniband", error);
  std::filesystem::create_symlink("/dev/null", tree / "dev/infiniband/uverbs0", error);
  const auto write = [&](const std::string& path, const std::string& text) {
    std::ofstream out{device / path};
    out << text << '\n' << std::flush;
    if (!out && !error) error = std::make_error_code(std::errc::io_error);
  };
  write("node_type", "1: CA");
  write("board_id", "rocinante");
  write("device/numa_node", "-1");
  write("device/local_cpus", cpu_mask());
  write("ports/1/state", "4: ACTIVE");
  write("ports/1/phys_state", "5: LinkUp");
  write("ports/1/link_layer", "Ethernet");
  write("ports/1/pkeys/0", "0xffff");
  for (unsigned i = 0; i < kGids; ++i) {
    write("ports/1/gid_attrs/types/" + std::to_string(i), "RoCE v2");
    write("ports/1/gid_attrs/ndevs/" + std::to_string(i), "lo");
  }
  if (error) return fail("'" + tree.string() + "' cannot be created: " + error.message(), error.value());
  return {};
}

}  // namespace

Result<std::filesystem::path> program_folder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail("/proc/self/exe cannot be read: " + error.message(), error.value());
  return self.parent_path();
}

std::filesystem::path library_folder(const std::filesystem::path& programs) {
  for (const char* libraries : {"lib", ROCI_LIBDIR}) {
    std::error_code ignored;
    std::filesystem::path folder = (programs.parent_path() / libraries / "rocinante").lexically_normal();
    if (std::filesystem::exists(folder / kShim, ignored)) return folder;
  }
  return {};
}

std::string prepended(const std::string& folder, const std::string& list) {
  if (list.empty() || list == folder) return folder;
  return list.starts_with(folder + ":") ? list : folder + ":" + list;
}

Result<std::filesystem::path> device_tree(const std::string& name) {
  const auto runtime = runtime_folder();
  if (!runtime) return fail(runtime.error());
  const std::filesystem::path tree = *runtime / (".paths-" + name);
  std::error_code error;
  if (std::filesystem::exists(tree, error)) return tree;
  // Creates a complete tree atomically (rename), since other processes may do the same concurrently.
  const std::filesystem::path draft = tree.string() + "." + std::to_string(getpid());
  ROCI_TRY(write_tree(draft, name));
  std::filesystem::rename(draft, tree, error);
  if (!error) return tree;
  std::error_code ignored;
  std::filesystem::remove_all(draft, ignored);
  if (std::filesystem::exists(tree, ignored)) return tree;
  return fail("'" + tree.string() + "' cannot be created: " + error.message(), error.value());
}

Status set_environment(const std::filesystem::path& programs, const std::string& device_name) {
  const std::filesystem::path libraries = library_folder(programs);
  if (libraries.empty())
    return fail("libraries not found: no folder 'rocinante' with " + std::string{kShim} + " in '" +
                    (programs.parent_path() / "lib").string() + "'",
                ENOENT);
  setenv("LD_LIBRARY_PATH", prepended(libraries.string(), variable("LD_LIBRARY_PATH")).c_str(), 1);
  std::error_code ignored;
  if (is_usable_device("/dev/infiniband/uverbs0") &&
      std::filesystem::exists("/sys/class/infiniband/" + device_name, ignored))
    return {};
  const auto tree = device_tree(device_name);
  if (!tree) return fail(tree.error());
  setenv("ROCI_PATHS", tree->c_str(), 1);
  setenv("LD_PRELOAD", prepended((libraries / kShim).string(), variable("LD_PRELOAD")).c_str(), 1);
  return {};
}

}  // namespace roci::run
