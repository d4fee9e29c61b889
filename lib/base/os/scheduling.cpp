#include "base/os/scheduling.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace roci {
namespace {

// struct sched_attr of the kernel; glibc has it since 2.41.
struct SchedAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};
static_assert(sizeof(SchedAttributes) == 48);

bool has_slices() {
  utsname system{};
  if (uname(&system) != 0) return false;
  char* rest = system.release;
  const unsigned long major = std::strtoul(rest, &rest, 10);
  const unsigned long minor = *rest == '.' ? std::strtoul(rest + 1, &rest, 10) : 0;
  return major > 6 || (major == 6 && minor >= 12);
}

// Start of a file as a string; empty if it cannot be read.
template <size_t Size>
void read_start(const char* path, char (&text)[Size]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = file < 0 ? -1 : read(file, text, Size - 1);
  if (file >= 0) close(file);
  text[bytes > 0 ? bytes : 0] = 0;
}

// State of a process or thread, from its file `stat` (proc(5)); 0 if it cannot be read.
char state_in(const char* path) {
  char text[256];
  read_start(path, text);
  const char* const name_end = std::strrchr(text, ')');  // the program's name may contain any characters
  return name_end != nullptr && name_end[1] != 0 ? name_end[2] : '\0';
}

}  // namespace

bool request_short_slice(Nanos slice) {
  constexpr int kHighest = -20;
  prctl(PR_SET_TIMERSLACK, 1UL);
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  if (has_slices()) {
    SchedAttributes attributes{};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 &&
        attributes.policy == SCHED_OTHER) {
      attributes.size = sizeof attributes;
      attributes.runtime = static_cast<uint64_t>(slice.count());
      if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0) return true;
    }
  }
  return setpriority(PRIO_PROCESS, thread, kHighest) == 0;
}

bool is_stopped(pid_t process) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  const char state = state_in(path);
  return state == 'T' || state == 't';
}

ThreadTime time_of_thread(pid_t thread) {
  ThreadTime time;
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  time.runnable = state_in(path) == 'R';
  // Clock of the thread's processor time; its id is computed from the thread id (clock_getcpuclockid(3)).
  const auto clock = static_cast<clockid_t>((~static_cast<uint32_t>(thread) << 3) | 6U);
  timespec ran{};
  if (clock_gettime(clock, &ran) == 0) time.ran = Nanos{ran.tv_sec * 1'000'000'000 + ran.tv_nsec};
  return time;
}

// The file does not stay open: a file per thread would remain after the thread, and a program that closes all files would
// get the number for another one.
Nanos own_wait_time() {
  char text[96];
  read_start("/proc/thread-self/schedstat", text);
  const char* const waited = std::strchr(text, ' ');  // follows the run time
  return Nanos{waited == nullptr ? 0 : std::strtoll(waited, nullptr, 10)};
}

}  // namespace roci
