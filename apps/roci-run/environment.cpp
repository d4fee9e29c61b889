#include "roci-run/environment.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>

#include "net/runtime_folder.hpp"

namespace roci::run {
namespace {

constexpr const char* kShim = "libroci-paths.so";
constexpr unsigned kGids = 16;
constexpr const char* kLayout =
    "2";  // of the tree; changes with its files, since trees of other versions may exist
constexpr const char* kNoInterface = "lo";
// PCI identity of the virtual device: numbers that no manufacturer has, class "Ethernet controller".
constexpr const char* kPciVendor = "0xffff";
constexpr const char* kPciDevice = "0x0000";
constexpr const char* kPciClass = "0x020000";
constexpr unsigned kLastPciDomain = 0xffff, kFirstPciDomain = 0xff00;

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

// The same in the format of `local_cpulist`.
std::string cpu_list() {
  const long count = std::max(1L, sysconf(_SC_NPROCESSORS_CONF));
  return count == 1 ? "0" : "0-" + std::to_string(count - 1);
}

// The highest PCI domain that the machine does not have, as in the names of sysfs: "ffff".
std::string unused_pci_domain() {
  std::array<char, 8> text{};
  std::error_code ignored;
  for (unsigned domain = kLastPciDomain; domain >= kFirstPciDomain; --domain) {
    std::snprintf(text.data(), text.size(), "%04x", domain);
    if (!std::filesystem::exists(std::string{"/sys/devices/pci"} + text.data() + ":00", ignored)) break;
  }
  return text.data();
}

// Writes files, folders and symbolic links below a folder; keeps the first error.
class TreeWriter {
 public:
  explicit TreeWriter(std::filesystem::path root) : root_(std::move(root)) {}

  void file(const std::string& path, const std::string& text) {
    parent_of(path);
    std::ofstream out{root_ / path};
    out << text << '\n' << std::flush;
    if (!out) keep(std::make_error_code(std::errc::io_error));
  }
  void link(const std::string& path, const std::string& target) {
    parent_of(path);
    std::error_code error;
    std::filesystem::create_symlink(target, root_ / path, error);
    keep(error);
  }
  [[nodiscard]] const std::error_code& error() const { return error_; }

 private:
  void parent_of(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories((root_ / path).parent_path(), error);
    keep(error);
  }
  void keep(const std::error_code& error) {
    if (!error_) error_ = error;
  }

  std::filesystem::path root_;
  std::error_code error_;
};

// Function of a virtual PCI bus in a domain that the machine does not have. `folder`: its folder in the tree.
void write_pci_function(TreeWriter& tree, const std::string& domain, const std::string& function,
                        const std::string& folder) {
  for (const auto& [name, text] : std::initializer_list<std::pair<const char*, std::string>>{
           {"vendor", kPciVendor},
           {"device", kPciDevice},
           {"subsystem_vendor", kPciVendor},
           {"subsystem_device", kPciDevice},
           {"class", kPciClass},
           {"revision", "0x00"},
           {"numa_node", "-1"},
           {"local_cpus", cpu_mask()},
           {"local_cpulist", cpu_list()},
           {"uevent", "PCI_CLASS=20000\nPCI_ID=FFFF:0000\nPCI_SLOT_NAME=" + function}})
    tree.file(folder + "/" + name, text);
  tree.link("sys/bus/pci/devices/" + function, "../../../devices/pci" + domain + ":00/" + function);
  // "/sys/class/pci_bus/DOMAIN:00/../../FUNCTION" is the function, as for a real bus.
  tree.file("sys/devices/pci" + domain + ":00/pci_bus/" + domain + ":00/cpuaffinity", cpu_mask());
  tree.link("sys/class/pci_bus/" + domain + ":00",
            "../../devices/pci" + domain + ":00/pci_bus/" + domain + ":00");
}

Status write_tree(const std::filesystem::path& root, const std::string& name, const std::string& interface) {
  TreeWriter tree{root};
  const std::string domain = unused_pci_domain();
  const std::string function = domain + ":00:00.0";
  const std::string pci = "sys/devices/pci" + domain + ":00/" + function;
  write_pci_function(tree, domain, function, pci);
  const std::string device = pci + "/infiniband/" + name;
  tree.link("sys/class/infiniband/" + name, "../../" + device.substr(sizeof "sys/" - 1));
  tree.link(device + "/device", "../../../" + function);
  tree.link("dev/infiniband/uverbs0", "/dev/null");
  tree.file(device + "/node_type", "1: CA");
  tree.file(device + "/board_id", "rocinante");
  const std::string port = device + "/ports/1";
  tree.file(port + "/state", "4: ACTIVE");
  tree.file(port + "/phys_state", "5: LinkUp");
  tree.file(port + "/link_layer", "Ethernet");
  tree.file(port + "/pkeys/0", "0xffff");
  for (unsigned i = 0; i < kGids; ++i) {
    tree.file(port + "/gid_attrs/types/" + std::to_string(i), "RoCE v2");
    tree.file(port + "/gid_attrs/ndevs/" + std::to_string(i), interface);
  }
  if (const std::error_code& error = tree.error())
    return fail("'" + root.string() + "' cannot be created: " + error.message(), error.value());
  return {};
}

// The address in the notation of inet_ntop, without prefix length. Empty if it is not an address.
std::string canonical(const std::string& address) {
  const std::string text = address.substr(0, address.find('/'));
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  std::array<char, INET6_ADDRSTRLEN> out;
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, text.c_str(), bytes.data()) == 1)
      return inet_ntop(family, bytes.data(), out.data(), out.size());
  }
  return {};
}

std::string address_of(const ifaddrs& one) {
  std::array<char, INET6_ADDRSTRLEN> out;
  if (one.ifa_addr == nullptr) return {};
  const void* address = nullptr;
  if (one.ifa_addr->sa_family == AF_INET) {
    address = &reinterpret_cast<const sockaddr_in*>(one.ifa_addr)->sin_addr;
  } else if (one.ifa_addr->sa_family == AF_INET6) {
    address = &reinterpret_cast<const sockaddr_in6*>(one.ifa_addr)->sin6_addr;
  } else {
    return {};
  }
  return inet_ntop(one.ifa_addr->sa_family, address, out.data(), out.size());
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

std::string interface_with(const std::vector<std::string>& addresses) {
  ifaddrs* list = nullptr;
  if (addresses.empty() || getifaddrs(&list) != 0) return kNoInterface;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner{list, &freeifaddrs};
  for (const std::string& address : addresses) {
    const std::string wanted = canonical(address);
    for (const ifaddrs* one = list; one != nullptr && !wanted.empty(); one = one->ifa_next) {
      if (address_of(*one) == wanted) return one->ifa_name;
    }
  }
  return kNoInterface;
}

Result<std::filesystem::path> device_tree(const std::string& name, const std::string& interface) {
  const auto runtime = runtime_folder();
  if (!runtime) return fail(runtime.error());
  const std::filesystem::path tree = *runtime / (".paths-" + name + "-" + interface + "-" + kLayout);
  std::error_code error;
  if (std::filesystem::exists(tree, error)) return tree;
  // Creates a complete tree atomically (rename), since other processes may do the same concurrently.
  const std::filesystem::path draft = tree.string() + "." + std::to_string(getpid());
  std::error_code ignored;
  std::filesystem::remove_all(draft, ignored);  // of a killed process that had this process id
  if (Status written = write_tree(draft, name, interface); !written) {
    std::filesystem::remove_all(draft, ignored);
    return fail(written.error());
  }
  std::filesystem::rename(draft, tree, error);
  if (!error) return tree;
  std::filesystem::remove_all(draft, ignored);
  if (std::filesystem::exists(tree, ignored)) return tree;
  return fail("'" + tree.string() + "' cannot be created: " + error.message(), error.value());
}

Status set_environment(const std::filesystem::path& programs, const std::string& device_name,
                       const std::vector<std::string>& addresses) {
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
  const auto tree = device_tree(device_name, interface_with(addresses));
  if (!tree) return fail(tree.error());
  setenv("ROCI_PATHS", tree->c_str(), 1);
  setenv("LD_PRELOAD", prepended((libraries / kShim).string(), variable("LD_PRELOAD")).c_str(), 1);
  return {};
}

}  // namespace roci::run
