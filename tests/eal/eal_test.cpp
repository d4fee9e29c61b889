#include "port/dpdk/eal.hpp"
#include "port/dpdk/mbuf_pool.hpp"

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "support/process/folder.hpp"

namespace roci {
namespace {

// Runs `body` in a child process, because DPDK starts only once per process. Returns the child's exit code.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    const int code = body();
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Eal, starts_once_and_again_only_with_the_same_settings) {
  EXPECT_EQ(
      in_child([] {
        const Status first = start_eal();
        if (!first) {
          std::fprintf(stderr, "%s\n", first.error().message.c_str());
          return 1;
        }
        if (!start_eal()) return 2;
        const Status other = start_eal({.memory_mib = 64});
        if (other) return 3;
        return other.error().message.find("already initialized in this process") == std::string::npos ? 4 : 0;
      }),
      0);
}

TEST(Eal, required_start_uses_the_settings_of_an_earlier_start) {
  EXPECT_EQ(in_child([] {
              if (!start_eal({.memory_mib = 64})) return 1;
              if (!require_eal()) return 2;
              return start_eal({.memory_mib = 64}) ? 0 : 3;
            }),
            0);
  EXPECT_EQ(in_child([] {
              if (!require_eal()) return 1;
              return start_eal() ? 0 : 2;
            }),
            0);
}

TEST(Eal, start_is_possible_after_one_that_failed_before_dpdk) {
  EXPECT_EQ(in_child([] {
              if (start_eal({.hugepages = Hugepages::kRequire, .memory_mib = 1U << 20})) return 1;
              if (start_eal({.memory_mib = 0})) return 2;
              if (eal_is_running()) return 3;
              return start_eal() && eal_is_running() ? 0 : 4;
            }),
            0);
}

TEST(Eal, start_after_a_failure_of_dpdk_returns_that_failure) {
  EXPECT_EQ(in_child([] {
              if (start_eal({.extra_args = {"--no-such-option"}})) return 1;
              for (const Status& again : {start_eal(), require_eal()}) {
                if (again) return 2;
                if (again.error().message.find(
                        "DPDK cannot be started again after it failed: DPDK did not start") != 0)
                  return 3;
              }
              return eal_is_running() ? 4 : 0;
            }),
            0);
}

TEST(Eal, start_preserves_affinity_and_signal_handlers_and_leaves_no_files) {
  EXPECT_EQ(in_child([] {
              cpu_set_t before;
              cpu_set_t after;
              sched_getaffinity(0, sizeof before, &before);
              std::vector<void (*)(int)> handlers;
              const auto handler_of = [](int signal) {
                struct sigaction action {};
                sigaction(signal, nullptr, &action);
                return action.sa_handler;
              };
              for (int s = 1; s < NSIG; ++s) handlers.push_back(handler_of(s));
              if (!start_eal()) return 1;
              sched_getaffinity(0, sizeof after, &after);
              if (CPU_EQUAL(&before, &after) == 0) return 2;
              for (int s = 1; s < NSIG; ++s) {
                if (handler_of(s) != handlers[static_cast<size_t>(s - 1)]) return 3;
              }
              if (std::filesystem::exists(rte_eal_get_runtime_dir())) return 4;
              // One lcore, the calling thread: EAL starts no threads for the other processors.
              return rte_lcore_count() == 1 ? 0 : 5;
            }),
            0);
}

TEST(Eal, starts_without_a_home_directory) {
  EXPECT_EQ(in_child([] {
              unsetenv("XDG_RUNTIME_DIR");
              setenv("HOME", "/nonexistent", 1);
              return start_eal() ? 0 : 1;
            }),
            0);
}

TEST(Eal, several_processes_start_at_the_same_time) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(start_eal() && MbufPool::create("p", 1000, 2048) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST(Eal, concurrent_start_by_several_threads_succeeds) {
  EXPECT_EQ(in_child([] {
              std::atomic<int> good{0};
              std::vector<std::thread> threads;
              for (int i = 0; i < 4; ++i) threads.emplace_back([&] { good += start_eal() ? 1 : 0; });
              for (auto& t : threads) t.join();
              return good == 4 ? 0 : 1;
            }),
            0);
}

// Another user who can write to the folder can replace the sockets in it.
TEST(Eal, telemetry_is_disabled_in_a_folder_that_other_users_can_change) {
  for (const mode_t mode : {0700U, 0777U, 01777U}) {
    const test::Folder root;
    const auto folder = root.path() / "dpdk";
    std::filesystem::create_directory(folder);
    chmod(root.path().c_str(), 0755);
    chmod(folder.c_str(), mode);
    EXPECT_EQ(in_child([&] {
                setenv("RUNTIME_DIRECTORY", root.path().c_str(), 1);
                if (!start_eal({.telemetry = true})) return 2;
                const std::filesystem::path own = rte_eal_get_runtime_dir();
                return std::filesystem::exists(own / "dpdk_telemetry.v2") ? 0 : 1;
              }),
              mode == 0700U ? 0 : 1)
        << mode;
  }
}

bool accepts_connections(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) return false;
  std::strcpy(address.sun_path, path.c_str());
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const bool connected = connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(socket);
  return connected;
}

// Exit handlers also run in a child that calls exit().
TEST(Eal, telemetry_socket_remains_when_a_child_exits_and_is_removed_by_its_process) {
  const test::Folder root;
  chmod(root.path().c_str(), 0755);
  EXPECT_EQ(in_child([&] {
              setenv("RUNTIME_DIRECTORY", root.path().c_str(), 1);
              if (!start_eal({.telemetry = true})) return 2;
              const std::filesystem::path own = rte_eal_get_runtime_dir();
              const auto files = [&] {
                return std::distance(std::filesystem::directory_iterator{own},
                                     std::filesystem::directory_iterator{});
              };
              const auto before = files();
              if (!accepts_connections(own / "dpdk_telemetry.v2")) return 3;
              for (int i = 0; i < 2; ++i) {
                const pid_t child = fork();
                if (child == 0) std::exit(0);
                int status = 0;
                if (waitpid(child, &status, 0) != child || status != 0) return 4;
              }
              if (!accepts_connections(own / "dpdk_telemetry.v2")) return 5;
              if (files() != before) return 6;
              std::exit(0);
            }),
            0);
  EXPECT_TRUE(std::filesystem::is_empty(root.path() / "dpdk"));
}

TEST(Eal, start_rejects_a_memory_size_of_0) {
  EXPECT_EQ(in_child([] {
              const Status status = start_eal({.memory_mib = 0});
              return !status && status.error().message.find("memory_mib") != std::string::npos ? 0 : 1;
            }),
            0);
}

TEST(Eal, start_fails_for_an_unknown_dpdk_option) {
  EXPECT_EQ(in_child([] {
              const Status status = start_eal({.extra_args = {"--no-such-option"}});
              return !status && status.error().message.find("DPDK did not start") == 0 ? 0 : 1;
            }),
            0);
}

// Requires 1 TiB of hugepages, more than any machine has.
TEST(Eal, start_fails_when_required_hugepages_are_missing) {
  EXPECT_EQ(in_child([] {
              const Status status = start_eal({.hugepages = Hugepages::kRequire, .memory_mib = 1U << 20});
              if (status) return 1;
              const std::string& why = status.error().message;
              if (why.find("hugepages are required, but ") != 0) return 2;
              return why.find("vm.nr_hugepages") != std::string::npos && why.find('\n') == std::string::npos
                         ? 0
                         : 3;
            }),
            0);
}

TEST(Eal, starts_without_hugepages_when_they_are_off) {
  EXPECT_EQ(in_child([] {
              if (!start_eal({.hugepages = Hugepages::kOff})) return 1;
              return rte_eal_has_hugepages() == 0 && !uses_dpdk_memory() ? 0 : 2;
            }),
            0);
}

// Returns the flags that the kernel reports for the mapping that contains `at`.
std::string mapping_flags(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      here = begin <= reinterpret_cast<uintptr_t>(at) && reinterpret_cast<uintptr_t>(at) < end;
    if (here && line.starts_with("VmFlags:")) return line + ' ';
  }
  return {};
}

// Programs place mappings at constant low addresses and replace those there.
TEST(Eal, memory_is_above_the_addresses_that_programs_choose) {
  EXPECT_EQ(in_child([] {
              if (!start_eal({.hugepages = Hugepages::kOff})) return 1;
              void* const memory = rte_malloc(nullptr, 64, 0);
              if (memory == nullptr) return 2;
              return reinterpret_cast<uintptr_t>(memory) >> 40 != 0 ? 0 : 3;
            }),
            0);
}

TEST(MbufPool, requests_transparent_hugepages_and_releases_its_memory) {
  // Requires a kernel with transparent hugepages.
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) return;
  EXPECT_EQ(in_child([] {
              if (!start_eal({.hugepages = Hugepages::kOff})) return 1;
              auto pool = MbufPool::create("dense", 4096, 4200);
              if (!pool) return 2;
              rte_mbuf* first = rte_pktmbuf_alloc((*pool)->get());
              if (mapping_flags(first).find(" hg ") == std::string::npos) return 3;
              if (mapping_flags(first).find(" sh ") != std::string::npos) return 4;  // Shared mapping.
              rte_pktmbuf_free(first);
              pool->reset();
              return mapping_flags(first).empty() ? 0 : 5;
            }),
            0);
}

TEST(MbufPool, pools_share_the_memory_limit_and_reuse_released_memory) {
  EXPECT_EQ(in_child([] {
              if (!start_eal({.hugepages = Hugepages::kOff, .memory_mib = 64})) return 1;
              auto first = MbufPool::create("first", 10'000, 4200);  // 43 MiB
              if (!first) return 2;
              if (const auto second = MbufPool::create("second", 10'000, 4200); second) return 3;
              first->reset();
              return MbufPool::create("second", 10'000, 4200) ? 0 : 4;
            }),
            0);
}

TEST(MbufPool, shared_buffers_are_in_a_shared_mapping) {
  EXPECT_EQ(in_child([] {
              if (!start_eal({.hugepages = Hugepages::kOff, .share_buffers = true})) return 1;
              auto pool = MbufPool::create("shared", 4096, 4200);
              if (!pool) return 2;
              rte_mbuf* first = rte_pktmbuf_alloc((*pool)->get());
              return mapping_flags(first).find(" sh ") != std::string::npos ? 0 : 3;
            }),
            0);
}

TEST(MbufPool, creation_fails_before_dpdk_is_started) {
  EXPECT_EQ(in_child([] {
              const auto pool = MbufPool::create("early", 10, 2048);
              return !pool && pool.error().message.find("start_eal") != std::string::npos ? 0 : 1;
            }),
            0);
}

TEST(MbufPool, creation_fails_when_memory_is_insufficient) {
  EXPECT_EQ(in_child([] {
              if (!start_eal({.memory_mib = 64})) return 1;
              const auto pool = MbufPool::create("huge", 100'000, 9000);
              if (pool) return 2;
              if (pool.error().code != ENOMEM) return 3;
              const std::string& why = pool.error().message;
              return why.find("no memory: ") == 0 && why.find("memory_mib") != std::string::npos ? 0 : 4;
            }),
            0);
}

TEST(MbufPool, provides_all_buffers_and_counts_those_in_use) {
  EXPECT_EQ(in_child([] {
              if (!start_eal()) return 1;
              auto pool = MbufPool::create("a name that is much too long for DPDK", 100, 2048);
              if (!pool || (*pool)->size() != 100) return 2;
              std::vector<rte_mbuf*> all;
              while (rte_mbuf* m = rte_pktmbuf_alloc((*pool)->get())) all.push_back(m);
              if (all.size() != 100 || (*pool)->in_use() != 100) return 3;
              if (rte_pktmbuf_tailroom(all[0]) < 2048) return 4;
              for (rte_mbuf* m : all) rte_pktmbuf_free(m);
              return (*pool)->in_use() == 0 ? 0 : 5;
            }),
            0);
}

}  // namespace
}  // namespace roci
