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
#include <csignal>
#include <cstdio>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/memory_file.hpp"
#include "base/os/private_folder.hpp"
#include "base/os/scheduling.hpp"
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

constexpr const char* kVerbsLibrary = "libibverbs.so.1";

std::string reason(int code) { return std::generic_category().message(code); }

std::string size_text(uint64_t bytes) {
  const bool large = bytes >= uint64_t{1} << 30;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %s", static_cast<double>(bytes) / (large ? 1 << 30 : 1 << 20),
                large ? "GiB" : "MiB");
  return text.data();
}

Check ok(const char* subject, std::string text) { return {subject, Verdict::kOk, std::move(text)}; }
Check note(const char* subject, std::string text) { return {subject, Verdict::kNote, std::move(text)}; }
Check failed(const char* subject, std::string text) { return {subject, Verdict::kFailed, std::move(text)}; }

Check check_runtime_folder() {
  constexpr const char* kSubject = "runtime folder";
  constexpr off_t kBytes = 4 << 20;
  const auto folder = runtime_folder();
  if (!folder) return failed(kSubject, folder.error().message);
  const std::filesystem::path file = *folder / (".doctor-" + std::to_string(getpid()));
  const FileDescriptor made(open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  int code = errno;
  if (made.get() >= 0) {
    unlink(file.c_str());
    code = posix_fallocate(made.get(), 0, kBytes);
  }
  if (code != 0) {
    return failed(kSubject, folder->string() + " cannot hold a file of " + size_text(kBytes) + " (" +
                                reason(code) + "); set ROCI_RUNTIME to a folder with space");
  }
  struct statvfs space = {};
  statvfs(folder->c_str(), &space);
  return ok(kSubject,
            folder->string() + ", " + size_text(uint64_t{space.f_bavail} * space.f_frsize) + " free");
}

Check check_libraries(const std::filesystem::path& programs) {
  constexpr const char* kSubject = "drop-in libraries";
  const std::filesystem::path folder = library_folder(programs);
  if (folder.empty())
    return failed(kSubject,
                  "not found next to " + programs.string() + "; install the whole package or archive");
  for (const char* name : {kVerbsLibrary, "librdmacm.so.1"}) {
    if (!std::filesystem::exists(folder / name))
      return failed(kSubject, (folder / name).string() + " does not exist");
  }
  return ok(kSubject, folder.string());
}

Check check_processor() {
  constexpr const char* kSubject = "processor";
  const unsigned count = std::max(1U, std::thread::hardware_concurrency());
  const std::string processors = std::to_string(count) + (count == 1 ? " processor" : " processors");
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt"))
    return failed(kSubject, "x86-64-v2 (SSE 4.2, POPCNT) is required");
  if (!__builtin_cpu_supports("pclmul"))
    return note(kSubject, processors + ", without PCLMULQDQ: the ICRC is computed slowly by tables");
#endif
  if (count == 1) {
    return note(
        kSubject,
        processors + ": two programs that poll take turns, which increases latencies to milliseconds");
  }
  return ok(kSubject, processors);
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
    return failed(subject, now + "; at least " + limit_text(needed, bytes) + " are required");
  return ok(subject, now + remark);
}

Check check_shared_memory() {
  constexpr const char* kSubject = "shared memory";
  constexpr size_t kBytes = 4096;
  const FileDescriptor memory(create_memory_file("roci-doctor", MFD_CLOEXEC));
  void* const page = memory.get() >= 0 && ftruncate(memory.get(), kBytes) == 0
                         ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0)
                         : MAP_FAILED;
  if (page == MAP_FAILED) {
    return failed(kSubject, "memfd_create or mmap is not permitted (" + reason(errno) +
                                "); allow them in the seccomp profile of the container");
  }
  const bool wakes = syscall(SYS_futex, page, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 0;
  const int code = errno;
  munmap(page, kBytes);
  if (!wakes) return failed(kSubject, "futex is not permitted (" + reason(code) + ")");
  return ok(kSubject, "memfd_create, mmap and futex work");
}

Check check_event_descriptors() {
  constexpr const char* kSubject = "event descriptors";
  const FileDescriptor event(eventfd(0, EFD_CLOEXEC));
  return event.get() < 0 ? failed(kSubject, "eventfd fails: " + reason(errno))
                         : ok(kSubject, "eventfd works");
}

// As the threads of a device do.
Check check_time_slices() {
  constexpr const char* kSubject = "time slices";
  if (request_short_slice(100us))
    return ok(kSubject, "threads of a device get short slices or a higher priority");
  return note(
      kSubject,
      "neither short slices (Linux 6.12) nor a higher priority is permitted: latencies are higher while "
      "other programs compute");
}

Check check_placement() {
  constexpr const char* kSubject = "placement";
  char from = 'x', to = 0;
  const iovec local{&from, 1}, remote{&to, 1};
  if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == 1)
    return ok(kSubject, "process_vm_writev works");
  return note(kSubject, "process_vm_writev is not permitted (" + reason(errno) +
                            "): 'placement: sender' of a network has no effect");
}

Check check_dev_shm() {
  constexpr const char* kSubject = "/dev/shm";
  if (access("/dev/shm", W_OK) == 0) return ok(kSubject, "not used by Rocinante");
  return note(
      kSubject,
      "cannot be written. Rocinante does not use it; UCX and Open MPI do, between processes of a machine");
}

bool has_capability(unsigned number) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[number / 32].effective >> (number % 32) & 1) != 0;
}

Check check_interfaces() {
  constexpr const char* kSubject = "interfaces";
  if (has_capability(CAP_NET_RAW)) return ok(kSubject, "a device can use an interface (net_af_packet)");
  return note(kSubject,
              "no CAP_NET_RAW: networks of this machine work, devices on interfaces (--config) do not");
}

// A function of a library, with the type of its declaration. The program does not link the library.
template <class Function>
Function* function_of(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// In the child process: opens a device as a program would, and prints its address or the reason of a failure.
int open_device(const std::filesystem::path& library, const std::function<Status()>& join) {
  if (const Status joined = join(); !joined) {
    std::printf("%s\n", joined.error().message.c_str());
    return 1;
  }
  void* const verbs = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (verbs == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  ibv_device** const devices =
      function_of<decltype(ibv_get_device_list)>(verbs, "ibv_get_device_list")(nullptr);
  if (devices == nullptr || devices[0] == nullptr) return 1;  // the library has logged the reason
  ibv_context* const context = function_of<decltype(ibv_open_device)>(verbs, "ibv_open_device")(devices[0]);
  if (context == nullptr) return 1;
  ibv_gid gid{};
  if (function_of<decltype(ibv_query_gid)>(verbs, "ibv_query_gid")(context, 1, 1, &gid) != 0) return 1;
  std::printf("%u.%u.%u.%u\n", gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]);
  return function_of<decltype(ibv_close_device)>(verbs, "ibv_close_device")(context);
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
  constexpr const char* kSubject = "device";
  constexpr std::chrono::milliseconds kPatience{30'000};  // without output
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return failed(kSubject, "pipe fails: " + reason(errno));
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
  const FileDescriptor output(ends[0]);
  std::string text;
  bool silent = false;
  std::array<char, 4096> buffer;
  for (ssize_t got = 1; got > 0 && !silent;) {
    pollfd ready{.fd = output.get(), .events = POLLIN, .revents = 0};
    silent = poll(&ready, 1, static_cast<int>(kPatience.count())) == 0;
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
  if (silent) return failed(kSubject, "does not open within 30 s");
  if (WIFSIGNALED(status))
    return failed(kSubject, "opening it ends with signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return failed(kSubject, "does not open" + (last.empty() ? "" : ": " + last));
  std::array<char, 16> seconds;
  std::snprintf(seconds.data(), seconds.size(), "%.2f s", took.count());
  return ok(kSubject, "opened and closed in " + std::string(seconds.data()) + ", address " + last);
}

}  // namespace

int doctor(const std::filesystem::path& programs, const std::string& net,
           const std::function<Status()>& join) {
  constexpr uint64_t kAddressSpace = uint64_t{3} << 29;  // mappings of the EAL; less memory is used
  constexpr uint64_t kFileSize = uint64_t{1100} << 20;   // memfd of a network (port/shm/shm_segment.hpp)
  std::signal(SIGXFSZ, SIG_IGN);                         // a limit of the file size is an error of the call
  std::vector<Check> checks{
      check_processor(),
      check_runtime_folder(),
      check_libraries(programs),
      check_shared_memory(),
      check_event_descriptors(),
      check_time_slices(),
      check_placement(),
      check_dev_shm(),
      check_limit("locked memory", RLIMIT_MEMLOCK, true, 0, "; Rocinante locks no memory"),
      check_limit("address space", RLIMIT_AS, true, kAddressSpace, ""),
      check_limit("file size", RLIMIT_FSIZE, true, kFileSize, ""),
      check_limit("open files", RLIMIT_NOFILE, false, 64, ""),
      check_interfaces(),
  };
  const auto has_failed = [](const Check& check) { return check.verdict == Verdict::kFailed; };
  if (std::none_of(checks.begin(), checks.end(), has_failed))
    checks.push_back(check_device(library_folder(programs) / kVerbsLibrary, net, join));
  for (const Check& check : checks) {
    const char* verdict = check.verdict == Verdict::kOk     ? "ok"
                          : check.verdict == Verdict::kNote ? "note"
                                                            : "FAILED";
    std::printf("%-18s %-7s %s\n", check.subject.c_str(), verdict, check.text.c_str());
  }
  return std::any_of(checks.begin(), checks.end(), has_failed) ? 1 : 0;
}

}  // namespace roci::run
