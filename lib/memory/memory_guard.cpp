#include "memory/memory_guard.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/os/guarded_access.hpp"

namespace roci {
namespace {

using Sigaction = int (*)(int, const struct sigaction*, struct sigaction*);

struct Watched {
  int number;
  struct sigaction before {};
  std::atomic<bool> spent{false};  // `before` had SA_RESETHAND and was called
};
std::array<Watched, 2> watched{{{.number = SIGSEGV}, {.number = SIGBUS}}};
Sigaction libc_sigaction = nullptr;

Watched& watched_of(int number) { return watched[0].number == number ? watched[0] : watched[1]; }

// Whether the signal was sent by a process, not raised by the instruction.
bool was_sent(const siginfo_t& info) { return info.si_code <= 0; }

// Default action: the instruction faults again, and the system ends the process.
void use_default_action(int number, const siginfo_t& info) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  libc_sigaction(number, &standard, nullptr);
  if (was_sent(info)) pthread_kill(pthread_self(), number);
}

void hand_over(int number, siginfo_t* info, void* context) {
  Watched& of = watched_of(number);
  const struct sigaction& before = of.before;
  const bool has_info = (before.sa_flags & SA_SIGINFO) != 0;
  if (!has_info && before.sa_handler == SIG_IGN && was_sent(*info)) return;  // a fault cannot be ignored
  const bool none = !has_info && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN);
  const bool once = (before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0;
  if (none || (once && of.spent.exchange(true))) {
    use_default_action(number, *info);
    return;
  }
  // Blocks the signals that the system would block during the handler; the return from the signal restores the mask.
  sigset_t mask = before.sa_mask;
  if ((before.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, number);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  if (has_info) {
    before.sa_sigaction(number, info, context);
  } else {
    before.sa_handler(number);
  }
}

auto& program_counter(ucontext_t& context) {
#if defined(__x86_64__)
  return context.uc_mcontext.gregs[REG_RIP];
#else
  return context.uc_mcontext.pc;
#endif
}

void on_fault(int number, siginfo_t* info, void* context) {
  auto& instruction = program_counter(*static_cast<ucontext_t*>(context));
  const uintptr_t behind = was_sent(*info) ? 0 : behind_guarded_access(static_cast<uintptr_t>(instruction));
  if (behind != 0) {
    memory_faults.pending = true;
    instruction = static_cast<std::remove_reference_t<decltype(instruction)>>(behind);
    return;
  }
  const int saved = errno;
  hand_over(number, info, context);
  errno = saved;
}

Status install(Watched& of) {
  const auto failed = [&of](int code) {
    return fail("memory guard: the signal handler cannot be installed for signal " +
                    std::to_string(of.number) + ": " + std::strerror(code),
                code);
  };
  // Must be read before the guard's handler can run.
  if (libc_sigaction(of.number, nullptr, &of.before) != 0) return failed(errno);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // SA_ONSTACK: the previous handler may need the alternate stack, for faults by stack overflow. hand_over() sets the
  // mask.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  if (libc_sigaction(of.number, &action, nullptr) != 0) return failed(errno);
  return {};
}

Status install_once() {
  if (ROCI_GUARDS_MEMORY == 0)
    return fail("memory guard: not supported in a build with ThreadSanitizer", ENOTSUP);
  if (void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); libc != nullptr)
    libc_sigaction = reinterpret_cast<Sigaction>(dlsym(libc, "sigaction"));
  if (libc_sigaction == nullptr) libc_sigaction = ::sigaction;
  for (Watched& one : watched) {
    if (Status done = install(one); !done) return done;
  }
  return {};
}

}  // namespace

Status install_memory_guard() {
  static const Status done = install_once();
  return done;
}

}  // namespace roci
