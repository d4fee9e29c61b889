#include "port/dpdk/eal.hpp"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "base/os/private_folder.hpp"
#include "base/os/quiet_signals.hpp"
#include "base/rng.hpp"
#include "port/dpdk/buffer_memory.hpp"
#include "port/dpdk/hugepages.hpp"
#include "telemetry/runtime_folder.hpp"

namespace roci {
namespace {

thread_local std::string first_error;
std::atomic<bool> running{false};
bool rte_eal_init_called = false;  // protected by the mutex of the start
std::atomic<bool> shares_buffers{false};

// Write function of DPDK's log stream.
ssize_t forward_log(void*, const char* text, size_t size) {
  std::string_view line(text, size);
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (line.empty()) return static_cast<ssize_t>(size);
  const int level = rte_log_cur_msg_loglevel();
  if (level <= static_cast<int>(RTE_LOG_ERR)) {
    // Callers include the first error in their own message; the raw text is logged at info level.
    if (first_error.empty()) first_error = line;
    log().info("DPDK: {}", line);
  } else if (level <= static_cast<int>(RTE_LOG_WARNING)) {
    log().info("DPDK: {}", line);
  } else {
    log().debug("DPDK: {}", line);
  }
  return static_cast<ssize_t>(size);
}

void take_over_log() {
  cookie_io_functions_t functions{};
  functions.write = forward_log;
  FILE* stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) return;
  std::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
  rte_openlog_stream(stream);
}

std::string hexadecimal(uintptr_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%#" PRIxPTR, value);
  return text;
}

std::string cpu_list(const cpu_set_t& cpus) {
  std::string list;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) list += (list.empty() ? "" : ",") + std::to_string(cpu);
  }
  return list;
}

// Unique per process, also for processes in different PID namespaces that share a file system.
std::string unique_prefix() {
  char text[48];
  std::snprintf(text, sizeof text, "roci-%d-%08x", getpid(), static_cast<unsigned>(os_random()));
  return text;
}

// Returns an error if the telemetry socket of a process with this prefix cannot be created: DPDK would then not start.
Status check_telemetry_folder(const std::string& prefix) {
  const std::filesystem::path folder = dpdk_runtime_folder();
  const std::filesystem::path socket = folder / prefix / kTelemetrySocket;
  if (socket.native().size() >= sizeof(sockaddr_un::sun_path))
    return fail("the path '" + socket.native() + "' is too long for a UNIX socket");
  // DPDK, unlike this process, reads the environment also with elevated privileges.
  if (getauxval(AT_SECURE) != 0)
    return fail("this process has elevated privileges (set-user-ID or capabilities)");
  // The owner of the folder could replace the sockets in it.
  if (const auto made = PrivateFolder::create(folder); !made) {
    return fail("the folder " + made.error().message + " (set RUNTIME_DIRECTORY to use another one)",
                made.error().code);
  }
  return {};
}

// The process that has started DPDK. Exit handlers also run in its children, whose files these are not.
std::atomic<pid_t> dpdk_process{0};

void remove_runtime_folder() {
  if (const char* folder = rte_eal_get_runtime_dir(); folder != nullptr) rmdir(folder);
}

// DPDK's exit handler removes the telemetry socket by its name, also in a child. The handlers before and after it keep
// the parent's socket under a second name.
std::filesystem::path telemetry_socket() {
  return std::filesystem::path{rte_eal_get_runtime_dir()} / kTelemetrySocket;
}
std::filesystem::path second_name_of_socket() {
  return telemetry_socket().replace_extension("." + std::to_string(getpid()));
}
void before_removal_of_sockets() {
  if (getpid() == dpdk_process.load()) return;
  if (link(telemetry_socket().c_str(), second_name_of_socket().c_str()) != 0)
    return;  // the parent has exited
}
void after_removal_of_sockets() {
  if (getpid() == dpdk_process.load()) return remove_runtime_folder();
  const std::filesystem::path second = second_name_of_socket();
  std::rename(second.c_str(), telemetry_socket().c_str());
  unlink(second.c_str());  // rename() keeps both names of one file
}

// Memory in MiB that DPDK needs in addition to packet buffers outside its memory: for devices, rings, and the lists of
// the buffers, which take 8 bytes per buffer of at least 400 bytes.
uint32_t dpdk_overhead_mib(const EalConfig& config) {
  constexpr uint32_t kMin = 64;
  return config.share_buffers ? config.memory_mib : std::max(kMin, config.memory_mib / 32);
}

// Chooses an address range for DPDK's memory where the kernel places mappings. DPDK's default, 4 GiB, is at addresses where
// programs place mappings of their own: Open MPI maps the heap of OpenSHMEM programs at 0xff000000 and replaces mappings there.
// Returns null if the address space is limited to less; DPDK then uses its default.
std::optional<uintptr_t> free_address_range(const EalConfig& config, bool hugepages) {
  constexpr size_t kMib = size_t{1} << 20;
  constexpr size_t kBelow = 16 * kMib;           // DPDK places its configuration below the given address
  constexpr size_t kLists = 64 * kMib;           // lists of memory segments, alignment
  constexpr size_t kReserved = size_t{1} << 40;  // with hugepages: for all that DPDK may allocate later
  const size_t size = kBelow + (hugepages ? kReserved : dpdk_overhead_mib(config) * kMib + kLists);
  void* const range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return std::nullopt;
  munmap(range, size);
  return reinterpret_cast<uintptr_t>(range) + kBelow;
}

std::vector<std::string> eal_arguments(const EalConfig& config, bool hugepages, const cpu_set_t& cpus,
                                       const std::string& prefix, bool telemetry) {
  std::vector<std::string> arguments{"roci",
                                     telemetry ? "--telemetry" : "--no-telemetry",
                                     "--file-prefix",
                                     prefix,
                                     "--log-level=warning",
                                     "--lcores",
                                     "0@(" + cpu_list(cpus) + ")"};
  if (hugepages) {
    // Allocated on demand, without files and without a mounted hugetlbfs.
    arguments.insert(arguments.end(), {"--in-memory", "--single-file-segments"});
  } else {
    arguments.insert(arguments.end(),
                     {"--no-huge", "--no-shconf", "-m", std::to_string(dpdk_overhead_mib(config))});
  }
  if (!config.pci) arguments.emplace_back("--no-pci");
  if (const auto base = free_address_range(config, hugepages))
    arguments.push_back("--base-virtaddr=" + hexadecimal(*base));
  arguments.insert(arguments.end(), config.extra_args.begin(), config.extra_args.end());
  return arguments;
}

Status describe_failure(const EalConfig& config, bool hugepages, int code) {
  std::string sentence = "DPDK did not start ";
  if (hugepages) {
    sentence += "with hugepages (hugepages: off disables them)";
  } else {
    sentence += "with " + std::to_string(config.memory_mib) + " MiB of memory";
  }
  if (!first_error.empty()) {
    sentence += ": " + first_error;
  } else if (code != 0) {
    sentence += std::string(": ") + rte_strerror(code);
  }
  return fail(std::move(sentence), code == 0 ? EINVAL : code);
}

// Whether DPDK is configured to use hugepages and can allocate
// them. An error if they are required and cannot be allocated.
Result<bool> choose_hugepages(const EalConfig& config) {
  if (config.hugepages == Hugepages::kOff) return false;
  const uint64_t wanted = uint64_t{config.memory_mib} << 20;
  const FreeHugepages found = free_hugepages();
  const std::string missing = found.bytes < wanted ? std::to_string(found.bytes >> 20) +
                                                         " MiB of hugepages are free and memory is " +
                                                         std::to_string(config.memory_mib) + " MiB"
                                                   : found.refused;
  if (missing.empty()) return true;
  if (config.hugepages == Hugepages::kRequire) {
    return fail("hugepages are required, but " + missing +
                    "; reserve hugepages (sysctl vm.nr_hugepages), reduce memory, or set hugepages: auto",
                ENOMEM);
  }
  if (found.bytes > 0) log().info("DPDK starts without hugepages: {}", missing);
  return false;
}

Status initialize(const EalConfig& config) {
  if (config.memory_mib == 0)
    return fail("memory_mib: 0 is too small; DPDK requires at least 32 MiB, 512 MiB is recommended");
  cpu_set_t cpus;
  if (pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) == 0) {
    return fail("DPDK did not start: the calling thread's CPU affinity cannot be read", errno);
  }
  const Result<bool> hugepages = choose_hugepages(config);
  if (!hugepages) return fail(hugepages.error());
  const std::string prefix = unique_prefix();
  bool telemetry = config.telemetry;
  if (telemetry) {
    if (const Status folder = check_telemetry_folder(prefix); !folder) {
      log().warn("telemetry is disabled: {}", folder.error().message);
      telemetry = false;
    }
  }
  std::vector<std::string> arguments = eal_arguments(config, *hugepages, cpus, prefix, telemetry);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  std::vector<char*> argv_copy = argv;  // EAL permutes its argument vector
  argv_copy.push_back(nullptr);
  dpdk_process = getpid();
  // Registered before DPDK's exit handler, because exit handlers run in reverse order.
  if (telemetry && std::atexit(after_removal_of_sockets) != 0)
    log().info("DPDK's runtime folder will not be removed at exit: atexit() failed");
  take_over_log();
  first_error.clear();
  rte_errno = 0;
  rte_eal_init_called = true;
  const auto [result, code] = [&] {
    const QuietSignals quiet;  // DPDK's threads inherit the blocked signals
    const int status = rte_eal_init(static_cast<int>(argv.size()), argv_copy.data());
    return std::pair{status, rte_errno};
  }();
  pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
  if (result < 0) {
    if (code == EALREADY) {
      log().info("DPDK was initialized by the application; its memory and devices are used");
      return {};
    }
    return describe_failure(config, *hugepages, code);
  }
  // With --no-shconf and without telemetry, the folder has no files: remove it.
  if (!telemetry) {
    remove_runtime_folder();
  } else if (std::atexit(before_removal_of_sockets) != 0) {
    log().info("the exit of a child process will remove the telemetry socket: atexit() failed");
  }
  return {};
}

// Start of DPDK in this process.
struct EalStart {
  std::mutex mutex;
  std::optional<EalConfig> config;  // of the start that called rte_eal_init()
  Status outcome;                   // of that start
};
EalStart& eal_start() {
  static EalStart instance;
  return instance;
}

// The caller holds the mutex. rte_eal_init() may be called once; a start that has failed before it may be repeated.
Status start_first(EalStart& start, const EalConfig& config) {
  Status outcome = initialize(config);
  if (!outcome && !rte_eal_init_called) return outcome;
  start.config = config;
  if (!outcome) {
    start.outcome = fail(outcome.error().within("DPDK cannot be started again after it failed"));
    return outcome;
  }
  shares_buffers = config.share_buffers;
  allow_buffer_memory(uint64_t{config.memory_mib} << 20);
  running = true;
  return {};
}

}  // namespace

Status start_eal(const EalConfig& config) {
  EalStart& start = eal_start();
  const std::lock_guard lock(start.mutex);
  if (!start.config) return start_first(start, config);
  if (start.outcome && *start.config != config) {
    return fail("DPDK is already initialized in this process with other settings (memory " +
                    std::to_string(start.config->memory_mib) + " MiB, hugepages " +
                    std::string(hugepages_name(start.config->hugepages)) + ", PCI " +
                    (start.config->pci ? "on" : "off") + "); use the same settings",
                EBUSY);
  }
  return start.outcome;
}

Status require_eal() {
  EalStart& start = eal_start();
  const std::lock_guard lock(start.mutex);
  return start.config ? start.outcome : start_first(start, {});
}

bool uses_dpdk_memory() { return rte_eal_has_hugepages() != 0 || shares_buffers.load(); }

std::string_view hugepages_name(Hugepages hugepages) {
  switch (hugepages) {
    case Hugepages::kAuto:
      return "auto";
    case Hugepages::kOff:
      return "off";
    case Hugepages::kRequire:
      return "require";
  }
  return "unknown";
}

std::string last_dpdk_error() { return first_error; }
void clear_dpdk_error() { first_error.clear(); }

bool eal_is_running() { return running.load(); }

}  // namespace roci
