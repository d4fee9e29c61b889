#include "roci-run/doctor.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "net/runtime_folder.hpp"
#include "roci-run/environment.hpp"

namespace roci::run {
namespace {

enum class Verdict : uint8_t { kOk, kNote, kFailed };  // kNote: works, with a restriction

struct Check {
  std::string subject;
  Verdict verdict = Verdict::kOk;
  std::string text;
};

std::string reason() { return std::generic_category().message(errno); }

std::string size_text(uint64_t bytes) {
  const bool large = bytes >= uint64_t{1} << 30;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", static_cast<double>(bytes) / (large ? 1 << 30 : 1 << 20),
                large ? "GiB" : "MiB");
  return text.data();
}

// Closes the descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

Check check_runtime_folder() {
  constexpr off_t kBytes = 4 << 20;
  Check check{"runtime folder", Verdict::kOk, {}};
  const auto folder = runtime_folder();
  if (!folder) return check.verdict = Verdict::kFailed, check.text = folder.error().message, check;
  const std::filesystem::path file = *folder / (".doctor-" + std::to_string(getpid()));
  const Descriptor made(open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const int code = made.get() < 0 ? errno : posix_fallocate(made.get(), 0, kBytes);
  unlink(file.c_str());
  if (code != 0) {
    errno = code;
    check.verdict = Verdict::kFailed;
    check.text = folder->string() + " cannot hold a file of " + size_text(kBytes) + " (" + reason() +
                 "); set ROCI_RUNTIME to a folder with space";
    return check;
  }
  struct statvfs space = {};
  statvfs(folder->c_str(), &space);
  check.text = folder->string() + ", " + size_text(uint64_t{space.f_bavail} * space.f_frsize) + " free";
  return check;
}

Check check_libraries(const std::filesystem::path& programs) {
  const std::filesystem::path folder = library_folder(programs);
  if (folder.empty()) {
    return {"drop-in libraries", Verdict::kFailed,
            "not found next to " + programs.string() + "; install the whole package or archive"};
  }
  for (const char* name : {"libibverbs.so.1", "librdmacm.so.1"}) {
    if (!std::filesystem::exists(folder / name))
      return {"drop-in libraries", Verdict::kFailed, (folder / name).string() + " does not exist"};
  }
  return {"drop-in libraries", Verdict::kOk, folder.string()};
}

Check check_processor() {
  const unsigned count = std::max(1U, std::thread::hardware_concurrency());
  const std::string processors = std::to_string(count) + (count == 1 ? " processor" : " processors");
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt"))
    return {"processor", Verdict::kFailed, "x86-64-v2 (SSE 4.2, POPCNT) is required"};
  if (!__builtin_cpu_supports("pclmul")) {
    return {"processor", Verdict::kNote,
            processors + ", without PCLMULQDQ: the ICRC is computed slowly by tables"};
  }
#endif
  if (count == 1) {
    return {"processor", Verdict::kNote,
            processors + ": two programs that poll take turns, which increases latencies to milliseconds"};
  }
  return {"processor", Verdict::kOk, processors};
}

std::string limit_text(rlim_t value, bool bytes) {
  if (value == RLIM_INFINITY) return "unlimited";
  return bytes ? size_text(value) : std::to_string(value);
}

Check check_limit(const char* subject, __rlimit_resource_t resource, bool bytes, uint64_t needed,
                  const std::string& remark) {
  rlimit limit{};
  getrlimit(resource, &limit);
  const std::string now = limit_text(limit.rlim_cur, bytes);
  if (limit.rlim_cur < needed)
    return {subject, Verdict::kFailed, now + "; at least " + limit_text(needed, bytes) + " are required"};
  return {subject, Verdict::kOk, now + remark};
}

struct SchedulingAttributes {  // struct sched_attr of the kernel
  uint32_t size = 48, policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};

std::vector<Check> check_system_calls() {
  std::vector<Check> checks;
  const Descriptor memory(memfd_create("roci-doctor", MFD_CLOEXEC));
  constexpr size_t kBytes = 4096;
  void* const page = memory.get() >= 0 && ftruncate(memory.get(), kBytes) == 0
                         ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0)
                         : MAP_FAILED;
  if (page == MAP_FAILED) {
    checks.push_back({"shared memory", Verdict::kFailed,
                      "memfd_create or mmap is not permitted (" + reason() +
                          "); allow them in the seccomp profile of the container"});
    return checks;
  }
  const bool wakes = syscall(SYS_futex, page, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 0;
  checks.push_back(
      wakes ? Check{"shared memory", Verdict::kOk, "memfd_create, mmap and futex work"}
            : Check{"shared memory", Verdict::kFailed, "futex is not permitted (" + reason() + ")"});
  const Descriptor event(eventfd(0, EFD_CLOEXEC));
  if (event.get() < 0)
    checks.push_back({"event descriptors", Verdict::kFailed, "eventfd fails: " + reason()});

  SchedulingAttributes own;
  const bool slices =
      syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) == 0 && syscall(SYS_sched_setattr, 0, &own, 0) == 0;
  checks.push_back(slices ? Check{"time slices", Verdict::kOk, "sched_setattr works"}
                          : Check{"time slices", Verdict::kNote,
                                  "sched_setattr is not permitted (" + reason() +
                                      "): latencies are higher while other programs compute"});
  char from = 'x', to = 0;
  const iovec local{&from, 1}, remote{&to, 1};
  const bool places = process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == 1;
  checks.push_back(places ? Check{"placement", Verdict::kOk, "process_vm_writev works"}
                          : Check{"placement", Verdict::kNote,
                                  "process_vm_writev is not permitted (" + reason() +
                                      "): 'placement: sender' of a network has no effect"});
  munmap(page, kBytes);
  return checks;
}

Check check_dev_shm() {
  if (access("/dev/shm", W_OK) == 0) return {"/dev/shm", Verdict::kOk, "not used by Rocinante"};
  return {
      "/dev/shm", Verdict::kNote,
      "cannot be written. Rocinante does not use it; UCX and Open MPI do, between processes of a machine"};
}

bool has_capability(unsigned number) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[number / 32].effective >> (number % 32) & 1) != 0;
}

Check check_interfaces() {
  const bool can = has_capability(CAP_NET_RAW);
  return {"interfaces", can ? Verdict::kOk : Verdict::kNote,
          can ? "a device can use an interface (net_af_packet)"
              : "no CAP_NET_RAW: networks of this machine work, devices on interfaces (--config) do not"};
}

// In the child process: opens a device as a program would, and prints its address or the reason of a failure.
int open_device(const std::filesystem::path& library, const std::function<Status()>& join) {
  if (const Status joined = join(); !joined) return std::printf("%s\n", joined.error().message.c_str()), 1;
  void* const verbs = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (verbs == nullptr) return std::printf("%s\n", dlerror()), 1;
  const auto call = [&](const char* name, auto* type) {
    return reinterpret_cast<decltype(type)>(dlsym(verbs, name));
  };
  ibv_device** const devices = call("ibv_get_device_list", &ibv_get_device_list)(nullptr);
  if (devices == nullptr || devices[0] == nullptr) return 1;  // the library has logged the reason
  ibv_context* const context = call("ibv_open_device", &ibv_open_device)(devices[0]);
  if (context == nullptr) return 1;
  ibv_gid gid{};
  if (call("ibv_query_gid", &ibv_query_gid)(context, 1, 1, &gid) != 0) return 1;
  std::printf("%u.%u.%u.%u\n", gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]);
  return call("ibv_close_device", &ibv_close_device)(context);
}

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string line, last;
  while (std::getline(lines, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

Check check_device(const std::filesystem::path& library, const std::string& net,
                   const std::function<Status()>& join) {
  constexpr std::chrono::seconds kPatience{30};
  Check check{"device", Verdict::kFailed, {}};
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return check.text = "pipe fails: " + reason(), check;
  const auto started = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    const int status = open_device(library, join);
    std::fflush(stdout);
    _exit(status);
  }
  close(ends[1]);
  const Descriptor output(ends[0]);
  std::string text;
  bool silent = false;
  std::array<char, 4096> buffer;
  for (ssize_t got = 1; got > 0 && !silent;) {
    pollfd ready{.fd = output.get(), .events = POLLIN, .revents = 0};
    silent = poll(&ready, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) == 0;
    if (!silent && (got = read(output.get(), buffer.data(), buffer.size())) > 0)
      text.append(buffer.data(), static_cast<size_t>(got));
  }
  if (silent) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  if (const auto folder = net_folder(net)) {
    std::error_code ignored;
    std::filesystem::remove_all(*folder, ignored);
  }
  const std::string last = last_line(text);
  if (silent) return check.text = "does not open within 30 s", check;
  if (WIFSIGNALED(status))
    return check.text = "opening it ends with signal " + std::to_string(WTERMSIG(status)), check;
  if (WEXITSTATUS(status) != 0)
    return check.text = last.empty() ? "does not open" : "does not open: " + last, check;
  std::array<char, 16> seconds;
  std::snprintf(seconds.data(), seconds.size(), "%.2f s", took.count());
  check.verdict = Verdict::kOk;
  check.text = "opened and closed in " + std::string(seconds.data()) + ", address " + last;
  return check;
}

}  // namespace

int doctor(const std::filesystem::path& programs, const std::string& net,
           const std::function<Status()>& join) {
  constexpr uint64_t kAddressSpace = uint64_t{3} << 29;  // mappings of the EAL; less memory is used
  std::vector<Check> checks{check_processor(), check_runtime_folder(), check_libraries(programs)};
  for (Check& check : check_system_calls()) checks.push_back(std::move(check));
  checks.push_back(check_dev_shm());
  checks.push_back(check_limit("locked memory", RLIMIT_MEMLOCK, true, 0, "; Rocinante locks no memory"));
  checks.push_back(check_limit("address space", RLIMIT_AS, true, kAddressSpace, ""));
  checks.push_back(check_limit("open files", RLIMIT_NOFILE, false, 64, ""));
  checks.push_back(check_interfaces());
  const auto failed = [](const Check& check) { return check.verdict == Verdict::kFailed; };
  if (std::none_of(checks.begin(), checks.end(), failed))
    checks.push_back(check_device(library_folder(programs) / "libibverbs.so.1", net, join));
  for (const Check& check : checks) {
    const char* verdict = check.verdict == Verdict::kOk     ? "ok"
                          : check.verdict == Verdict::kNote ? "note"
                                                            : "FAILED";
    std::printf("%-18s %-7s %s\n", check.subject.c_str(), verdict, check.text.c_str());
  }
  return std::any_of(checks.begin(), checks.end(), failed) ? 1 : 0;
}

}  // namespace roci::run
