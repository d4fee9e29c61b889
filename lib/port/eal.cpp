#include "port/eal.hpp"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/log.hpp"
#include "base/rng.hpp"

namespace roci {
namespace {

thread_local std::string first_error;
std::atomic<bool> running{false};

// The write function of DPDK's log stream.
ssize_t forward_log(void*, const char* text, size_t size) {
  std::string_view line(text, size);
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (line.empty()) return static_cast<ssize_t>(size);
  const int level = rte_log_cur_msg_loglevel();
  if (level <= static_cast<int>(RTE_LOG_ERR)) {
    // Callers turn these into an error sentence of their own; the raw text is for who asks for it.
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

std::string cpu_list(const cpu_set_t& cpus) {
  std::string list;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) list += (list.empty() ? "" : ",") + std::to_string(cpu);
  }
  return list;
}

// Two processes of one machine, even of two PID namespaces that share a file system, must not meet.
std::string unique_prefix() {
  char text[48];
  std::snprintf(text, sizeof text, "roci-%d-%08x", getpid(), static_cast<unsigned>(os_random()));
  return text;
}

std::vector<std::string> eal_arguments(const EalConfig& config, const cpu_set_t& cpus) {
  std::vector<std::string> arguments{"roci",
                                     "--no-shconf",
                                     "--no-telemetry",
                                     "--file-prefix",
                                     unique_prefix(),
                                     "--log-level=warning",
                                     "--lcores",
                                     "0@(" + cpu_list(cpus) + ")",
                                     "-m",
                                     std::to_string(config.memory_mib)};
  if (!config.hugepages) arguments.emplace_back("--no-huge");
  if (!config.pci) arguments.emplace_back("--no-pci");
  arguments.insert(arguments.end(), config.extra_args.begin(), config.extra_args.end());
  return arguments;
}

Status describe_failure(const EalConfig& config, int code) {
  std::string sentence = "DPDK did not start";
  if (config.hugepages) {
    sentence += " with " + std::to_string(config.memory_mib) +
                " MiB of hugepages (reserve some, or set hugepages: false)";
  } else {
    sentence += " with " + std::to_string(config.memory_mib) + " MiB of memory";
  }
  if (!first_error.empty()) {
    sentence += ": " + first_error;
  } else if (code != 0) {
    sentence += std::string(": ") + rte_strerror(code);
  }
  return fail(std::move(sentence), code == 0 ? EINVAL : code);
}

Status initialise(const EalConfig& config) {
  if (config.memory_mib == 0)
    return fail("memory_mib is 0; DPDK needs at least 32 MiB, and 512 is a good start");
  cpu_set_t cpus;
  if (pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) == 0) {
    return fail("DPDK did not start: the calling thread's CPU affinity cannot be read", errno);
  }
  take_over_log();
  first_error.clear();
  std::vector<std::string> arguments = eal_arguments(config, cpus);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  std::vector<char*> argv_copy = argv;  // EAL permutes it
  argv_copy.push_back(nullptr);
  rte_errno = 0;
  const int result = rte_eal_init(static_cast<int>(argv.size()), argv_copy.data());
  const int code = rte_errno;
  pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
  if (result < 0) {
    if (code == EALREADY) {
      log().info("DPDK was started by the program itself; its memory and devices are used as they are");
      return {};
    }
    return describe_failure(config, code);
  }
  // With --no-shconf and without telemetry nothing lives there, so no empty folder is left behind.
  if (const char* folder = rte_eal_get_runtime_dir(); folder != nullptr) rmdir(folder);
  return {};
}

}  // namespace

Status start_eal(const EalConfig& config) {
  static std::mutex mutex;
  static std::optional<EalConfig> started;
  static Status outcome;
  const std::lock_guard lock(mutex);
  if (!started) {
    outcome = initialise(config);
    started = config;
    running = outcome.has_value();
    return outcome;
  }
  if (*started != config) {
    return fail("DPDK starts once per process and was asked to start before with other settings (memory " +
                    std::to_string(started->memory_mib) + " MiB, hugepages " +
                    (started->hugepages ? "on" : "off") + ", PCI " + (started->pci ? "on" : "off") +
                    "); use the same ones everywhere",
                EBUSY);
  }
  return outcome;
}

std::string last_dpdk_error() { return first_error; }
void clear_dpdk_error() { first_error.clear(); }

Result<std::shared_ptr<MbufPool>> MbufPool::create(const std::string& name, uint32_t count,
                                                   uint16_t data_room) {
  static std::atomic<uint32_t> serial{0};
  constexpr size_t kNameLength = 12;  // with the serial number it fits RTE_MEMPOOL_NAMESIZE
  constexpr uint32_t kMaxDataRoom = UINT16_MAX - RTE_PKTMBUF_HEADROOM;
  if (count == 0 || data_room == 0 || data_room > kMaxDataRoom) {
    return fail("packet pool \"" + name + "\" cannot have " + std::to_string(count) + " buffers of " +
                std::to_string(data_room) + " bytes; at least 1 buffer of 1 to " +
                std::to_string(kMaxDataRoom) + " bytes");
  }
  // Without EAL the mempool functions crash instead of failing.
  if (!running.load()) return fail("packet pool \"" + name + "\" needs DPDK; call start_eal() first");
  const std::string unique = name.substr(0, kNameLength) + "." + std::to_string(++serial);
  // A cache of its own per thread; small pools do without, so that every buffer of them can be had.
  const uint32_t cache = count < 1024 ? 0 : std::min<uint32_t>(RTE_MEMPOOL_CACHE_MAX_SIZE / 2, count / 16);
  rte_mempool* pool =
      rte_pktmbuf_pool_create(unique.c_str(), count, cache, 0,
                              static_cast<uint16_t>(data_room + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY);
  if (pool == nullptr) {
    const int code = rte_errno;
    const uint64_t mib = (uint64_t{count} * (data_room + RTE_PKTMBUF_HEADROOM + sizeof(rte_mbuf) + 64)) >> 20;
    std::string why = code == ENOMEM ? "no memory: " : std::string(rte_strerror(code)) + ": ";
    return fail(why + "packet pool \"" + name + "\" of " + std::to_string(count) + " buffers of " +
                    std::to_string(data_room) + " bytes needs about " + std::to_string(mib + 1) +
                    " MiB of DPDK's memory; raise memory_mib or take fewer buffers",
                code);
  }
  return std::shared_ptr<MbufPool>(new MbufPool(pool));
}

MbufPool::~MbufPool() {
  if (const uint32_t missing = in_use(); missing != 0) {
    // Freeing memory that somebody still reads would be worse than keeping it.
    log().warn("packet pool {} is kept because {} of its buffers are still in use", pool_->name, missing);
    return;
  }
  rte_mempool_free(pool_);
}

uint32_t MbufPool::size() const { return pool_->size; }
uint32_t MbufPool::in_use() const { return rte_mempool_in_use_count(pool_); }

}  // namespace roci
