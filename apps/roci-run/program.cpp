#include "roci-run/program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace roci::run {
namespace {

constexpr std::array kForwarded{SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,  SIGUSR1,
                                SIGUSR2, SIGALRM, SIGTSTP, SIGWINCH, SIGCONT};

void stop_with_the_program(pid_t child) {
  raise(SIGSTOP);
  kill(child, SIGCONT);
}

// Whether the child has exited, with its ending. If the child was stopped, stops this process as well.
bool has_ended(pid_t child, Ending& ending) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
    if (WIFEXITED(status)) {
      ending = {WEXITSTATUS(status), 0};
      return true;
    }
    if (WIFSIGNALED(status)) {
      ending = {128 + WTERMSIG(status), WTERMSIG(status)};
      return true;
    }
    if (WIFSTOPPED(status)) stop_with_the_program(child);
  }
  return false;
}

}  // namespace

int become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& one : command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  const int code = errno;
  std::fprintf(stderr, "roci-run: '%s' cannot be run: %s\n", command.front().c_str(), std::strerror(code));
  return code == ENOENT ? kNotFound : kCannotRun;
}

Ending run_and_wait(const std::vector<std::string>& command) {
  sigset_t waited, before;
  sigemptyset(&waited);
  for (const int signal : kForwarded) sigaddset(&waited, signal);
  sigaddset(&waited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &waited, &before);
  // With SIGCHLD ignored, which may be inherited from the parent process, waitpid() returns no exit status.
  const auto inherited = std::signal(SIGCHLD, SIG_DFL);
  const pid_t child = fork();
  if (child < 0) {
    std::fprintf(stderr, "roci-run: a process for '%s' cannot be created: %s\n", command.front().c_str(),
                 std::strerror(errno));
    return {kFailed, 0};
  }
  if (child == 0) {
    std::signal(SIGCHLD, inherited);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    _exit(become(command));
  }
  Ending ending;
  while (!has_ended(child, ending)) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&waited, &info);
    // Signals from the kernel, such as those of the terminal, were sent to the whole process group, including the
    // program.
    if (signal > 0 && signal != SIGCHLD && info.si_code <= 0) kill(child, signal);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return ending;
}

}  // namespace roci::run
