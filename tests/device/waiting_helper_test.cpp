// Model of the helper's sleep (device/host/waiting_helper.hpp) and of posts of an application that finds the worker
// taken: explores every interleaving of their steps. It verifies the design only, because the steps are copies;
// tests/threads/waiting_helper_test.cpp tests the code of the helper.
#include <gtest/gtest.h>

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

namespace roci {
namespace {

struct SleepState {
  enum class Helper : uint8_t { kAnnounce, kLock, kReadWork, kUnlock, kRecheck, kWait, kAsleep, kDrives };
  enum class Poster : uint8_t { kRing, kReadWakesAt, kTryLock, kReadWork, kUnlock, kWake, kDone };

  Helper helper = Helper::kAnnounce;
  Poster poster = Poster::kRing;
  bool rung = false, announced = false, taken = false, woken = false;
  bool helper_saw_work = false, poster_saw_work = false;
  auto operator<=>(const SleepState&) const = default;
};

class SleepModel {
 public:
  // Without `rechecks`, the helper does not look for doorbells after it has released the worker.
  explicit SleepModel(bool rechecks) : rechecks_(rechecks) { explore(); }

  size_t states() const { return seen_.size(); }
  size_t finals = 0;  // no step is possible
  size_t lost = 0;    // of them: the helper sleeps, and the request is not sent

 private:
  using Helper = SleepState::Helper;
  using Poster = SleepState::Poster;

  void explore() {
    std::vector<SleepState> open{SleepState{}};
    while (!open.empty()) {
      const SleepState state = open.back();
      open.pop_back();
      if (!seen_.insert(state).second) continue;
      bool stuck = true;
      SleepState next = state;
      if (helper_step(next)) {
        open.push_back(next);
        stuck = false;
      }
      next = state;
      if (post_step(next)) {
        open.push_back(next);
        stuck = false;
      }
      if (!stuck) continue;
      ++finals;
      lost += state.helper == Helper::kAsleep && state.rung;
    }
  }

  // WaitingHelper::sleep().
  bool helper_step(SleepState& state) const {
    switch (state.helper) {
      case Helper::kAnnounce:  // wakes_at_
        state.announced = true;
        state.helper = Helper::kLock;
        return true;
      case Helper::kLock:  // next_deadline()
        if (state.taken) return false;
        state.taken = true;
        state.helper = Helper::kReadWork;
        return true;
      case Helper::kReadWork:
        state.helper_saw_work = state.rung;
        state.helper = Helper::kUnlock;
        return true;
      case Helper::kUnlock:
        state.taken = false;
        state.helper = state.helper_saw_work ? Helper::kDrives : rechecks_ ? Helper::kRecheck : Helper::kWait;
        return true;
      case Helper::kRecheck:  // has_new_work()
        state.helper = state.rung ? Helper::kDrives : Helper::kWait;
        return true;
      case Helper::kWait:  // the kernel compares and sleeps atomically
        state.helper = state.woken ? Helper::kDrives : Helper::kAsleep;
        return true;
      case Helper::kAsleep:
        if (!state.woken) return false;
        state.helper = Helper::kDrives;
        return true;
      case Helper::kDrives:
        if (!state.rung || state.taken) return false;
        state.rung = false;
        return true;
    }
    return false;
  }

  // QueuePair::post_send() and WaitingHelper::wake_for_deadline().
  static bool post_step(SleepState& state) {
    switch (state.poster) {
      case Poster::kRing:
        state.rung = true;
        state.poster = Poster::kReadWakesAt;
        return true;
      case Poster::kReadWakesAt:
        state.poster = state.announced ? Poster::kTryLock : Poster::kDone;
        return true;
      case Poster::kTryLock:  // deadline_if_known()
        state.poster = state.taken ? Poster::kDone : Poster::kReadWork;
        state.taken = true;
        return true;
      case Poster::kReadWork:
        state.poster_saw_work = state.rung;
        state.poster = Poster::kUnlock;
        return true;
      case Poster::kUnlock:
        state.taken = false;
        state.poster = state.poster_saw_work ? Poster::kWake : Poster::kDone;
        return true;
      case Poster::kWake:
        state.woken = true;
        state.poster = Poster::kDone;
        return true;
      case Poster::kDone:
        return false;
    }
    return false;
  }

  const bool rechecks_;
  std::set<SleepState> seen_;
};

TEST(WaitingHelperModel, post_is_never_lost) {
  const SleepModel model(true);
  EXPECT_GT(model.states(), 30U);
  EXPECT_GT(model.finals, 0U);
  EXPECT_EQ(model.lost, 0U);
}

TEST(WaitingHelperModel, finds_loss_if_helper_does_not_check_doorbells_again) {
  EXPECT_GT(SleepModel(false).lost, 0U);
}

}  // namespace
}  // namespace roci
