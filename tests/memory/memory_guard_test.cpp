// Guarded memory accesses and their signal handler: result of a copy that faults, and other faults. Tests that
// terminate the process run in a child process.
#include "memory/memory_guard.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/os/guarded_access.hpp"
#include "base/os/guarded_copy.hpp"
#include "support/must.hpp"
#include "support/process/mapping.hpp"

namespace roci::test {
namespace {

std::vector<uint8_t> numbers(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  return bytes;
}

constexpr size_t kLengths[] = {1,  2,  3,  4,   5,   7,   8,   9,   15,  16,  17,   31,   32,   33,
                               63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 1000, 1024, 3000, 4096};

TEST(GuardedCopy, copies_exactly_the_requested_length) {
  const std::vector<uint8_t> from = numbers(700);
  for (size_t length = 0; length <= 600; ++length) {
    std::vector<uint8_t> to(700, 0xee);
    guarded_copy(to.data() + 3, from.data() + 1, length);
    ASSERT_EQ(std::memcmp(to.data() + 3, from.data() + 1, length), 0) << length;
    ASSERT_TRUE(to[2] == 0xee && to[3 + length] == 0xee) << length;
  }
  EXPECT_FALSE(drop_memory_fault());
}

class Guard : public testing::Test {
 protected:
  Guard() { must(install_memory_guard()); }
};

TEST_F(Guard, copy_beyond_the_end_of_the_source_reports_a_fault) {
  Mapping pages(3);
  pages.unmap(2);
  std::vector<uint8_t> to(2 * kPage);
  for (const size_t length : kLengths) {
    guarded_copy(to.data(), pages.data() + 2 * kPage - length, length);
    EXPECT_FALSE(drop_memory_fault()) << length;
    guarded_copy(to.data(), pages.data() + 2 * kPage - length + 1, length);  // its last byte is not mapped
    EXPECT_TRUE(drop_memory_fault()) << length;
    EXPECT_FALSE(drop_memory_fault()) << "a fault is told once";
  }
}

TEST_F(Guard, copy_beyond_the_end_of_the_destination_reports_a_fault) {
  Mapping pages(3);
  pages.unmap(2);
  const std::vector<uint8_t> from = numbers(2 * kPage);
  for (const size_t length : kLengths) {
    guarded_copy(pages.data() + 2 * kPage - length, from.data(), length);
    EXPECT_FALSE(drop_memory_fault()) << length;
    EXPECT_EQ(std::memcmp(pages.data() + 2 * kPage - length, from.data(), length), 0) << length;
    guarded_copy(pages.data() + 2 * kPage - length + 1, from.data(), length);
    EXPECT_TRUE(drop_memory_fault()) << length;
  }
}

TEST_F(Guard, copy_without_read_or_write_permission_reports_a_fault) {
  Mapping pages(1);
  uint8_t here[64] = {};
  pages.protect(0, PROT_READ);
  guarded_copy(here, pages.data(), sizeof here);
  EXPECT_FALSE(drop_memory_fault());
  guarded_copy(pages.data(), here, sizeof here);
  EXPECT_TRUE(drop_memory_fault());
  pages.protect(0, PROT_NONE);
  guarded_copy(here, pages.data(), sizeof here);
  EXPECT_TRUE(drop_memory_fault());
}

TEST_F(Guard, copy_beyond_a_truncated_file_reports_a_fault) {
  Mapping pages(2, Mapping::Of::kFile);
  pages.cut_file(1);
  uint8_t here[64] = {};
  guarded_copy(here, pages.data() + kPage - 64, sizeof here);
  EXPECT_FALSE(drop_memory_fault());
  guarded_copy(here, pages.data() + kPage, sizeof here);
  EXPECT_TRUE(drop_memory_fault());
  guarded_copy(pages.data() + kPage - 8, here, sizeof here);
  EXPECT_TRUE(drop_memory_fault());
}

TEST_F(Guard, copy_with_an_invalid_address_reports_a_fault) {
  uint8_t here[64] = {};
  for (const uint64_t at : {uint64_t{0}, uint64_t{1} << 63, uint64_t{0x8000'0000'0000}, ~uint64_t{0} - 100}) {
    guarded_copy(here, reinterpret_cast<const uint8_t*>(at), sizeof here);
    EXPECT_TRUE(drop_memory_fault()) << at;
    guarded_copy(reinterpret_cast<uint8_t*>(at), here, sizeof here);
    EXPECT_TRUE(drop_memory_fault()) << at;
  }
}

TEST_F(Guard, atomics_and_release_stores_are_correct_and_guarded) {
  Mapping pages(2);
  auto* const word = reinterpret_cast<uint64_t*>(pages.data());
  *word = 40;
  EXPECT_EQ(guarded_fetch_add(word, 2), 40U);
  EXPECT_EQ(guarded_compare_swap(word, 41, 7), 42U);
  EXPECT_EQ(*word, 42U);
  EXPECT_EQ(guarded_compare_swap(word, 42, 7), 42U);
  EXPECT_EQ(*word, 7U);
  guarded_store_release(pages.data() + 8, uint64_t{5});
  guarded_store_release(pages.data() + 17, uint8_t{6});
  EXPECT_TRUE(word[1] == 5 && pages.data()[17] == 6);
  EXPECT_FALSE(drop_memory_fault());
  pages.unmap(1);
  uint8_t* const gone = pages.data() + kPage;
  guarded_fetch_add(reinterpret_cast<uint64_t*>(gone), 1);
  EXPECT_TRUE(drop_memory_fault());
  guarded_compare_swap(reinterpret_cast<uint64_t*>(gone), 1, 2);
  EXPECT_TRUE(drop_memory_fault());
  guarded_store_release(gone, uint64_t{5});
  EXPECT_TRUE(drop_memory_fault());
  guarded_store_release(gone, uint8_t{6});
  EXPECT_TRUE(drop_memory_fault());
}

TEST_F(Guard, taken_faults_are_counted_and_dropped_ones_are_not) {
  memory_faults.uncounted = 0;
  uint8_t here[8] = {};
  guarded_copy(here, nullptr, 8);
  EXPECT_TRUE(drop_memory_fault());
  EXPECT_EQ(memory_faults.uncounted, 0U);
  guarded_copy(here, nullptr, 8);
  EXPECT_TRUE(take_memory_fault());
  EXPECT_FALSE(take_memory_fault());
  EXPECT_EQ(memory_faults.uncounted, 1U);
  memory_faults.uncounted = 0;
}

// --- together with other handlers, each in a new process

volatile bool mask_was_right = false;
void* faulted_at = nullptr;

void touch(const void* at) { static_cast<void>(*static_cast<const volatile uint8_t*>(at)); }
const void* somewhere() { return reinterpret_cast<const void*>(uintptr_t{0x1000}); }

void with_handler(void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaddset(&action.sa_mask, SIGUSR1);
  if (sigaction(SIGSEGV, &action, nullptr) != 0) std::_Exit(90);
}
void with_standard(void (*standard)(int)) {
  struct sigaction action {};
  action.sa_handler = standard;
  if (sigaction(SIGSEGV, &action, nullptr) != 0) std::_Exit(90);
}

void exit_with_address(int, siginfo_t* info, void*) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  const bool masked = sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGSEGV) == 1;
  std::_Exit(info->si_addr == somewhere() && masked ? 42 : 91);
}
void exit_old_style(int number) { std::_Exit(number == SIGSEGV ? 43 : 91); }

// A guarded copy that faults and must return.
void fault_guarded() {
  uint8_t here[64];
  guarded_copy(here, static_cast<const uint8_t*>(somewhere()), sizeof here);
  if (!drop_memory_fault()) std::_Exit(92);
}

class GuardProcess : public testing::Test {
 protected:
  GuardProcess() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
const auto exits = [](int code) { return testing::ExitedWithCode(code); };

TEST_F(GuardProcess, unguarded_fault_reaches_the_previous_handler_with_its_mask) {
  EXPECT_EXIT(
      {
        with_handler(exit_with_address, 0);
        must(install_memory_guard());
        fault_guarded();
        touch(somewhere());
      },
      exits(42), "");
}

TEST_F(GuardProcess, unguarded_fault_reaches_a_previous_handler_without_siginfo) {
  EXPECT_EXIT(
      {
        with_standard(exit_old_style);
        must(install_memory_guard());
        fault_guarded();
        touch(somewhere());
      },
      exits(43), "");
}

TEST_F(GuardProcess, unguarded_fault_without_a_handler_terminates_the_process) {
  EXPECT_EXIT(
      {
        with_standard(SIG_DFL);
        must(install_memory_guard());
        fault_guarded();
        touch(somewhere());
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(GuardProcess, unguarded_fault_cannot_be_ignored_but_a_raised_signal_can) {
  EXPECT_EXIT(
      {
        with_standard(SIG_IGN);
        must(install_memory_guard());
        raise(SIGSEGV);
        fault_guarded();
        std::_Exit(44);
      },
      exits(44), "");
  EXPECT_EXIT(
      {
        with_standard(SIG_IGN);
        must(install_memory_guard());
        touch(somewhere());
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(GuardProcess, raised_signal_without_a_handler_terminates_the_process) {
  EXPECT_EXIT(
      {
        with_standard(SIG_DFL);
        must(install_memory_guard());
        raise(SIGSEGV);
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

void note_once(int, siginfo_t*, void*) { mask_was_right = true; }

TEST_F(GuardProcess, one_shot_handler_is_called_once) {
  EXPECT_EXIT(
      {
        with_handler(note_once, static_cast<int>(SA_RESETHAND));
        must(install_memory_guard());
        raise(SIGSEGV);
        if (!mask_was_right) std::_Exit(93);
        raise(SIGSEGV);
        std::_Exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

struct sigaction found {};
void hand_on(int number, siginfo_t* info, void* context) {
  faulted_at = info->si_addr;
  found.sa_sigaction(number, info, context);
}

TEST_F(GuardProcess, later_handler_that_forwards_signals_keeps_the_guard) {
  EXPECT_EXIT(
      {
        with_standard(exit_old_style);
        must(install_memory_guard());
        sigaction(SIGSEGV, nullptr, &found);
        with_handler(hand_on, 0);
        fault_guarded();
        if (reinterpret_cast<uintptr_t>(faulted_at) / kPage != 1) std::_Exit(94);  // the page of somewhere()
        touch(somewhere());
      },
      exits(43), "");
}

TEST_F(GuardProcess, second_installation_keeps_a_later_handler) {
  EXPECT_EXIT(
      {
        must(install_memory_guard());
        with_standard(exit_old_style);
        must(install_memory_guard());
        touch(somewhere());
      },
      exits(43), "");
}

}  // namespace
}  // namespace roci::test
