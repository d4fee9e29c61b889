#include "net/net_control.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "base/os/file_lock.hpp"
#include "base/os/private_folder.hpp"
#include "net/net_slot.hpp"
#include "net/net_switch.hpp"
#include "net/runtime_folder.hpp"
#include "port/shm/shm_join.hpp"

namespace roci {
namespace {

constexpr Nanos kStep = 5ms;

// Creates the network's folder and the folder of its slots.
Result<PrivateFolder> make_folders(const std::filesystem::path& path) {
  auto folder = PrivateFolder::create(path);
  if (!folder) return folder;
  ROCI_TRY(folder->make_folder(kShmSlotFolder));
  return folder;
}

bool has_description(const PrivateFolder& folder, const NetConfig& net) {
  const auto text = folder.read(kNetFile);
  return text && *text == net_text(net);
}

// The switch has a process group of its own and no terminal, but stays in the session of the program that starts it. Alone
// in a session, it would be alone in its scheduling group where autogroup scheduling is enabled (sched(7)). On a busy
// machine, Linux 6.18 let such a process wait for more than 20 s.
void leave_terminal() {
  const int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return;
  ioctl(terminal, TIOCNOTTY);
  close(terminal);
}

// Called between fork() and exec(): async-signal-safe calls only.
[[noreturn]] void become_switch(int lock, int log, const std::vector<const char*>& arguments) {
  leave_terminal();
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  // A duplicate above the standard descriptors, without FD_CLOEXEC.
  const int kept = fcntl(lock, F_DUPFD, 3);
  dup2(null, 0);
  dup2(log, 1);
  dup2(log, 2);
  // All other descriptors, also those above the present limit of descriptors.
  if (kept < 3) _exit(127);
  const auto lock_fd = static_cast<unsigned>(kept);
  if ((lock_fd > 3 && close_range(3, lock_fd - 1, 0) != 0) || close_range(lock_fd + 1, ~0U, 0) != 0) {
    // Before Linux 5.9.
    const long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most > 0 && most < 65536 ? static_cast<int>(most) : 65536); ++fd) {
      if (fd != kept) close(fd);
    }
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
Status spawn(const PrivateFolder& folder, const SwitchStart& start, int lock) {
  const std::string program = start.program.string(), config = (folder.path() / kNetSwitchFile).string(),
                    ready = (folder.path() / kNetSwitchPid).string(),
                    linger = std::to_string(start.net.linger.count()) + "ns";
  std::vector<const char*> arguments{program.c_str(), "--config", config.c_str(), "--ready-file",
                                     ready.c_str()};
  if (start.net.linger != kNever) arguments.insert(arguments.end(), {"--linger", linger.c_str()});
  arguments.push_back(nullptr);
  // The output of the previous switch is kept for diagnosis.
  folder.rename(kNetSwitchLog, std::string{kNetSwitchLog} + ".1");
  const auto log = folder.open_file(kNetSwitchLog, O_WRONLY | O_CREAT | O_EXCL);
  if (!log) return fail(log.error());
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    if (fork() == 0) become_switch(lock, log->get(), arguments);
    _exit(0);
  }
  const int code = errno;
  if (child < 0)
    return fail(std::string{"the switch process cannot be created: "} + std::strerror(code), code);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

std::string last_line(const PrivateFolder& folder, const std::string& name) {
  std::istringstream in{folder.read(name).value_or("")};
  std::string line, last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

Status start_switch(const PrivateFolder& folder, const SwitchStart& start, SharedLock lock) {
  // Of a killed switch. Removed first, so that no process mistakes it for that of the new switch.
  folder.remove(kNetSwitchPid);
  ROCI_TRY(folder.replace(kNetFile, net_text(start.net)));
  ROCI_TRY(folder.replace(kNetSwitchFile, net_switch_text(start.net, folder.path())));
  return spawn(folder, start, lock.fd());
}

// Process that holds the switch's slot, which the switch takes before it is ready and holds until it exits. 0: none.
Result<pid_t> slot_holder(const std::filesystem::path& folder) {
  return ProcessLock::holder(shm_slot_file(folder, kShmSwitchSlot));
}

// Checks that the switch is ready. The file may be that of a killed switch. The new time stamp announces a process that is
// about to join, so the switch lingers.
bool is_ready(const PrivateFolder& folder) {
  const pid_t announced = announced_switch(folder);
  const auto holder = slot_holder(folder.path());
  return announced > 0 && holder && *holder == announced &&
         utimensat(folder.fd(), kNetSwitchPid, nullptr, AT_SYMLINK_NOFOLLOW) == 0;
}

int send_signal(const FileDescriptor& pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0));
}

// Sends a signal to the switch. The process id of a file may be that of another process in the meantime, or may belong
// to another PID namespace. Therefore the id is that of the holder of a lock, and the lock is checked again after the
// process was opened.
Status signal_switch(const std::filesystem::path& folder, pid_t announced, int signal) {
  const auto cannot = [&](const std::string& why, int code) {
    return fail("the switch (process " + std::to_string(announced) + ") cannot be stopped: " + why, code);
  };
  const auto holder = slot_holder(folder);
  if (!holder && holder.error().code == EXDEV) return {};  // it can only be waited for
  if (!holder) return cannot(holder.error().message, holder.error().code);
  if (*holder == 0) return {};  // it exits
  if (*holder != announced)
    return cannot("it does not hold the lock of the switch in '" + folder.string() + "'", EPERM);
  const FileDescriptor pidfd{static_cast<int>(syscall(SYS_pidfd_open, *holder, 0))};
  if (pidfd.get() < 0) return errno == ESRCH ? Status{} : cannot(std::strerror(errno), errno);
  const auto again = slot_holder(folder);
  if (!again || *again != *holder) return {};  // it exits
  if (send_signal(pidfd, signal) != 0 && errno != ESRCH) return cannot(std::strerror(errno), errno);
  return {};
}

}  // namespace

Result<std::filesystem::path> ensure_net(const SwitchStart& start) {
  const auto path = net_folder(start.net.name);
  if (!path) return fail(path.error());
  const auto folder = make_folders(*path);
  if (!folder) return fail(folder.error());
  // A name without a description accepts an existing network of this name, with or without a switch.
  const auto known = read_net(*folder);
  const auto state = net_switch_state(*path);
  if (!state) return fail(state.error());
  if (state->running && (start.exactly || (known && known->needs_switch()))) return ensure_switch(start);
  SwitchStart wanted = start;
  {
    const auto joining = SharedLock::wait(*path / kShmJoinLock, start.timeout);
    if (!joining) return fail(joining.error().within("network '" + start.net.name + "'"));
    const auto taken = taken_slots(*path, kMaxSlots);
    if (!taken) return fail(taken.error());
    const bool in_use = !taken->empty();
    if (in_use && start.exactly && !has_description(*folder, start.net)) {
      return fail("the network '" + start.net.name +
                      "' is in use with another description; use another name, or wait until its programs "
                      "have exited",
                  EBUSY);
    }
    // Processes in the network keep its description. A switch that has exited is restarted.
    if (in_use && known) wanted.net = *known;
    if (!wanted.net.needs_switch()) {
      if (!in_use) ROCI_TRY(folder->replace(kNetFile, net_text(start.net)));
      return *path;
    }
  }
  return ensure_switch(wanted);
}

Result<std::filesystem::path> ensure_switch(const SwitchStart& start) {
  const auto path = net_folder(start.net.name);
  if (!path) return fail(path.error());
  const auto folder = make_folders(*path);
  if (!folder) return fail(folder.error());
  bool started = false;
  for (Nanos waited{0}; waited < start.timeout; waited += kStep) {
    auto lock = SharedLock::take(*path / kNetSwitchLock);
    if (!lock) return fail(lock.error());
    if (*lock) {
      if (started) {
        const std::string reason = last_line(*folder, kNetSwitchLog);
        return fail("the switch of the network '" + start.net.name + "' did not start: " +
                    (reason.empty() ? "'" + start.program.string() + "' cannot be run" : reason));
      }
      ROCI_TRY(start_switch(*folder, start, std::move(**lock)));
      started = true;
    } else if (is_ready(*folder)) {
      if (!started && start.exactly && !has_description(*folder, start.net)) {
        return fail(
            "the network '" + start.net.name +
                "' is in use with another description; use another name, or stop it: roci-run --stop " +
                start.net.name,
            EBUSY);
      }
      return *path;
    }
    std::this_thread::sleep_for(kStep);
  }
  return fail("the switch of the network '" + start.net.name + "' is not ready after " +
                  std::to_string(start.timeout / Nanos{1s}) + " s; " + (*path / kNetSwitchLog).string() +
                  " contains the errors",
              ETIMEDOUT);
}

Result<bool> stop_switch(const std::filesystem::path& folder, Nanos timeout) {
  int signal = SIGTERM;
  bool running = false;
  for (Nanos waited{0}; waited < timeout * 2; waited += kStep) {
    const auto state = net_switch_state(folder);
    if (!state) return fail(state.error());
    if (!state->running) return running;
    if (state->pid > 0 && (!running || (signal == SIGTERM && waited >= timeout))) {
      if (running) signal = SIGKILL;
      running = true;
      ROCI_TRY(signal_switch(folder, state->pid, signal));
    }
    std::this_thread::sleep_for(kStep);
  }
  const auto holder = slot_holder(folder);
  return fail(holder ? "the switch did not exit" : "the switch did not exit: " + holder.error().message,
              ETIMEDOUT);
}

}  // namespace roci
