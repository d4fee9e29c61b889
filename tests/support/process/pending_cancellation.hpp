// Calls in a thread whose cancellation is pending.
#pragma once

#include <pthread.h>

namespace roci::test {

// Whether `call` returns in such a thread, so that it contains no cancellation point.
template <class Call>
bool returns_with_pending_cancellation(Call call) {
  struct Run {
    Call& call;
    bool returned = false;
  } run{call};
  pthread_t thread{};
  const int failed = pthread_create(
      &thread, nullptr,
      [](void* argument) -> void* {
        pthread_cancel(pthread_self());
        static_cast<Run*>(argument)->call();
        static_cast<Run*>(argument)->returned = true;
        return nullptr;
      },
      &run);
  return failed == 0 && pthread_join(thread, nullptr) == 0 && run.returned;
}

}  // namespace roci::test
