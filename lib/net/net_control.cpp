#include "net/net_control.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/os/file_lock.hpp"
#include "net/net_slot.hpp"
#include "net/net_switch.hpp"
#include "net/runtime_folder.hpp"
#include "port/shm/shm_join.hpp"

namespace roci {
namespace {

constexpr Nanos kStep = 5ms;

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

// Replaces the file atomically: a process that reads it gets the complete old or new text.
Status write_file(const std::filesystem::path& file, const std::string& text) {
  const std::string next = file.string() + "." + std::to_string(getpid());
  std::ofstream out{next, std::ios::trunc};
  out << text << std::flush;
  out.close();
  if (out && std::rename(next.c_str(), file.c_str()) == 0) return {};
  const int code = errno;
  unlink(next.c_str());
  return fail("'" + file.string() + "' cannot be written: " + std::strerror(code), code);
}

Status make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder / kShmSlotFolder, error);
  if (error) return fail("'" + folder.string() + "' cannot be created: " + error.message(), error.value());
  return {};
}

// Called between fork() and exec(): async-signal-safe calls only.
[[noreturn]] void become_switch(int lock, int log, const std::vector<const char*>& arguments) {
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  // A duplicate above the standard descriptors, without FD_CLOEXEC. The loop below does not close it.
  const int kept = fcntl(lock, F_DUPFD, 3);
  dup2(null, 0);
  dup2(log, 1);
  dup2(log, 2);
  const long most = sysconf(_SC_OPEN_MAX);
  for (int fd = 3; fd < (most > 0 && most < 65536 ? static_cast<int>(most) : 65536); ++fd) {
    if (fd != kept) close(fd);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // The preloaded libraries are for the program and not for the switch.
  unsetenv("LD_PRELOAD");
  execv(arguments.front(), const_cast<char* const*>(arguments.data()));
  _exit(127);
}

// Starts the switch with a double fork(), so that the program has no child process that it did not create.
Status spawn(const std::filesystem::path& folder, const SwitchStart& start, int lock) {
  const std::string program = start.program.string(), config = (folder / kNetSwitchFile).string(),
                    ready = (folder / kNetSwitchPid).string(),
                    linger = std::to_string(start.net.linger.count()) + "ns";
  std::vector<const char*> arguments{program.c_str(), "--config", config.c_str(), "--ready-file",
                                     ready.c_str()};
  if (start.net.linger != kNever) arguments.insert(arguments.end(), {"--linger", linger.c_str()});
  arguments.push_back(nullptr);
  // The output of the previous switch is kept for diagnosis.
  const std::filesystem::path log_file = folder / kNetSwitchLog;
  std::error_code ignored;
  std::filesystem::rename(log_file, log_file.string() + ".1", ignored);
  const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (log < 0) return fail((folder / kNetSwitchLog).string() + ": " + std::strerror(errno), errno);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) become_switch(lock, log, arguments);
    _exit(0);
  }
  const int code = errno;
  close(log);
  if (child < 0)
    return fail(std::string{"the switch process cannot be created: "} + std::strerror(code), code);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

std::string last_line(const std::filesystem::path& file) {
  std::ifstream in{file};
  std::string line, last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

Status start_switch(const std::filesystem::path& folder, const SwitchStart& start, SharedLock lock) {
  std::error_code ignored;
  // Of a killed switch. Removed first, so that no process mistakes it for that of the new switch.
  std::filesystem::remove(folder / kNetSwitchPid, ignored);
  ROCI_TRY(write_file(folder / kNetFile, net_text(start.net)));
  ROCI_TRY(write_file(folder / kNetSwitchFile, net_switch_text(start.net, folder)));
  return spawn(folder, start, lock.fd());
}

// Checks that the switch is ready. The new time stamp announces a process that is about to join, so the switch lingers.
bool is_ready(const std::filesystem::path& folder) {
  return utimensat(AT_FDCWD, (folder / kNetSwitchPid).c_str(), nullptr, 0) == 0;
}

}  // namespace

Result<std::filesystem::path> ensure_net(const SwitchStart& start) {
  auto found = net_folder(start.net.name);
  if (!found) return found;
  const std::filesystem::path folder = *found;
  // A name without a description accepts an existing network of this name, with or without a switch.
  const auto known = read_net_file((folder / kNetFile).string());
  const bool has_switch = net_switch_state(folder).running;
  if (has_switch && (start.exactly || (known && known->needs_switch()))) return ensure_switch(start);
  ROCI_TRY(make_folders(folder));
  SwitchStart wanted = start;
  {
    const auto joining = SharedLock::wait(folder / kShmJoinLock, start.timeout);
    if (!joining) return fail(joining.error().within("network '" + start.net.name + "'"));
    const auto taken = taken_slots(folder, kMaxSlots);
    if (!taken) return fail(taken.error());
    const bool in_use = !taken->empty();
    if (in_use && start.exactly && content_of(folder / kNetFile) != net_text(start.net)) {
      return fail("the network '" + start.net.name +
                      "' is in use with another description; use another name, or wait until its programs "
                      "have exited",
                  EBUSY);
    }
    // Processes in the network keep its description. A switch that has exited is restarted.
    if (in_use && known) wanted.net = *known;
    if (!wanted.net.needs_switch()) {
      if (!in_use) ROCI_TRY(write_file(folder / kNetFile, net_text(start.net)));
      return folder;
    }
  }
  return ensure_switch(wanted);
}

Result<std::filesystem::path> ensure_switch(const SwitchStart& start) {
  auto found = net_folder(start.net.name);
  if (!found) return found;
  const std::filesystem::path folder = *found;
  ROCI_TRY(make_folders(folder));
  bool started = false;
  for (Nanos waited{0}; waited < start.timeout; waited += kStep) {
    auto lock = SharedLock::take(folder / kNetSwitchLock);
    if (!lock) return fail(lock.error());
    if (*lock) {
      if (started) {
        const std::string reason = last_line(folder / kNetSwitchLog);
        return fail("the switch of the network '" + start.net.name + "' did not start: " +
                    (reason.empty() ? "'" + start.program.string() + "' cannot be run" : reason));
      }
      ROCI_TRY(start_switch(folder, start, std::move(**lock)));
      started = true;
    } else if (is_ready(folder)) {
      if (!started && start.exactly && content_of(folder / kNetFile) != net_text(start.net)) {
        return fail(
            "the network '" + start.net.name +
                "' is in use with another description; use another name, or stop it: roci-run --stop " +
                start.net.name,
            EBUSY);
      }
      return folder;
    }
    std::this_thread::sleep_for(kStep);
  }
  return fail("the switch of the network '" + start.net.name + "' is not ready after " +
                  std::to_string(start.timeout / Nanos{1s}) + " s; " + (folder / kNetSwitchLog).string() +
                  " contains the errors",
              ETIMEDOUT);
}

Result<bool> stop_switch(const std::filesystem::path& folder, Nanos timeout) {
  int signal = SIGTERM;
  bool running = false;
  for (Nanos waited{0}; waited < timeout * 2; waited += kStep) {
    const NetSwitchState state = net_switch_state(folder);
    if (!state.running) return running;
    if (state.pid > 0 && (!running || (signal == SIGTERM && waited >= timeout))) {
      if (running) signal = SIGKILL;
      running = true;
      if (kill(state.pid, signal) != 0 && errno != ESRCH)
        return fail("the switch (process " + std::to_string(state.pid) +
                        ") cannot be stopped: " + std::strerror(errno),
                    errno);
    }
    std::this_thread::sleep_for(kStep);
  }
  return fail("the switch did not exit", ETIMEDOUT);
}

}  // namespace roci
