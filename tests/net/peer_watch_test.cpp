// Processes of a network without a switch exchange frames, and detect the exit of another process. Only child
// processes start DPDK, so that each has its own instance.
#include "net/peer_watch.hpp"

#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <thread>

#include "net/net_slot.hpp"
#include "net_fixture.hpp"
#include "port/dpdk/eal.hpp"
#include "port/peer_presence.hpp"
#include "port/realtime_runner.hpp"
#include "support/ports/frames.hpp"

namespace roci {
namespace {

// One process of the network. It exists until the process exits.
class Member {
 public:
  using Bytes = std::vector<uint8_t>;

  // Returns null on error, which it prints.
  static std::unique_ptr<Member> join(const std::filesystem::path& folder) {
    auto member = std::make_unique<Member>();
    auto place = NetSlot::take(folder);
    if (!place) return complain(place.error());
    member->place_ = std::move(*place);
    const EalConfig eal{.memory_mib = 128};
    auto port = member->place_->open_port(eal);
    if (!port) return complain(port.error());
    member->port_ = std::move(*port);
    auto pool = MbufPool::create("sent", 256, 2048);
    if (!pool) return complain(pool.error());
    member->pool_ = std::move(*pool);
    return member;
  }

  [[nodiscard]] Port& port() const { return *port_; }
  [[nodiscard]] const NetSlot& place() const { return *place_; }
  [[nodiscard]] PeerPresence& peers() const { return *port_->peers(); }

  bool send(const Bytes& frame) {
    rte_mbuf* mbuf = test::to_mbuf(*pool_, frame);
    if (mbuf == nullptr) return false;
    if (port_->tx_burst({&mbuf, 1}, monotonic_now()) == 1) return true;
    rte_pktmbuf_free(mbuf);
    return false;
  }
  // Frames of one poll.
  std::vector<Bytes> receive() {
    std::array<rte_mbuf*, 32> burst{};
    const uint16_t got = port_->rx_burst(burst, monotonic_now());
    std::vector<Bytes> frames;
    for (uint16_t i = 0; i < got; ++i) frames.push_back(test::bytes_of(burst[i]));
    rte_pktmbuf_free_bulk(burst.data(), got);
    return frames;
  }
  // Repeats until `done` returns true, for at most 10 s.
  template <class Done>
  static bool look_until(const char* what, Done done) {
    for (int look = 0; look < 100'000; ++look) {
      if (done()) return true;
      usleep(100);
    }
    std::fprintf(stderr, "process %d: not seen: %s\n", getpid(), what);
    return false;
  }
  bool receive_frame(const char* what, const Bytes& expected) {
    return look_until(what, [&] {
      const auto frames = receive();
      return std::ranges::find(frames, expected) != frames.end();
    });
  }

 private:
  static std::nullptr_t complain(const Error& error) {
    std::fprintf(stderr, "process %d: %s\n", getpid(), error.message.c_str());
    return nullptr;
  }

  std::unique_ptr<NetSlot> place_;
  std::unique_ptr<Port> port_;
  std::shared_ptr<MbufPool> pool_;
};

class PeerWatchTest : public test::NetTest {
 protected:
  void SetUp() override {
    NetTest::SetUp();
    config_.slots = 4;
    folder_ = make_net(config_);
    switch_lock_.reset();
  }
  [[nodiscard]] Member::Bytes frame(uint32_t from, uint32_t to, uint32_t number) const {
    test::FrameSpec spec;
    spec.source = config_.mac(from);
    spec.destination = config_.mac(to);
    spec.number = number;
    return test::roce_bytes(spec);
  }
  using Wait = test::Child::Wait;
  // A process with slot 0 that returns every frame of slot 1 with another number, and leaves a crash notification for
  // it. `before` runs before it joins.
  template <class Before = bool (*)()>
  [[nodiscard]] std::unique_ptr<test::Child> echo(
      Before before = [] { return true; }, Wait wait = Wait::kAtOnce) const {
    const auto work = [this, before] {
      if (!before()) return false;
      auto member = Member::join(folder_);
      if (member == nullptr || member->place().number() != 0) return false;
      auto words = member->place().open_crash_notices();
      if (!words || (*words)->store(CrashNoticeFile::kNone, frame(0, 1, 99)) == CrashNoticeFile::kNone)
        return false;
      if ((*words)->store(CrashNoticeFile::kNone, frame(0, 2, 98)) == CrashNoticeFile::kNone) return false;
      std::thread{[this, member = member.release(), words = words->release()] {
        static_cast<void>(words);  // must exist until the process exits
        for (;;) {
          for (const auto& got : member->receive()) {
            if (got == frame(1, 0, 1)) member->send(frame(0, 1, 2));
          }
          usleep(50);
        }
      }}.detach();
      return true;
    };
    return std::make_unique<test::Child>(work, wait);
  }
  bool exchange(Member& member) const {
    return member.send(frame(1, 0, 1)) && member.receive_frame("the answer", frame(0, 1, 2));
  }

  NetConfig config_;
  std::filesystem::path folder_;
};

TEST_F(PeerWatchTest, killed_process_is_reported_with_its_crash_notice) {
  const auto first = echo();
  ASSERT_TRUE(first->done());
  const test::Child second{[&] {
    const auto member = Member::join(folder_);
    if (member == nullptr || member->place().number() != 1 || !exchange(*member)) return false;
    const MacAddress peer = config_.mac(0);
    if (member->peers().is_absent(peer) || member->peers().take_exit()) return false;
    kill(first->pid(), SIGKILL);
    std::vector<Member::Bytes> left;
    return Member::look_until("the exit",
                              [&] {
                                for (auto& one : member->receive()) left.push_back(std::move(one));
                                return member->peers().take_exit() == peer;
                              }) &&
           member->peers().is_absent(peer) && Member::look_until("the frame that it left", [&] {
             for (auto& one : member->receive()) left.push_back(std::move(one));
             return left == std::vector<Member::Bytes>{frame(0, 1, 99)};
           });
  }};
  EXPECT_TRUE(second.done());
}

TEST_F(PeerWatchTest, process_that_exited_before_it_was_watched_is_reported) {
  const auto first = echo();
  ASSERT_TRUE(first->done());
  const test::Child second{[&] {
    const auto member = Member::join(folder_);
    if (member == nullptr) return false;
    kill(first->pid(), SIGKILL);
    // Waits until the kernel has released the lock. No process has detected the exit yet.
    const auto lock_is_free = [&] {
      const auto holder = ProcessLock::holder(folder_ / kShmSlotFolder / "0");
      return holder && *holder == 0;
    };
    if (!Member::look_until("the lock", lock_is_free)) return false;
    if (!member->send(frame(1, 0, 1))) return false;  // first contact
    return Member::look_until("the exit", [&] {
      member->receive();
      return member->peers().take_exit() == config_.mac(0);
    });
  }};
  EXPECT_TRUE(second.done());
}

TEST_F(PeerWatchTest, process_is_watched_when_descriptors_are_available_again) {
  const auto first = echo();
  ASSERT_TRUE(first->done());
  const test::Child second{[&] {
    const auto member = Member::join(folder_);
    if (member == nullptr) return false;
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0 || !exchange(*member)) return false;
    std::this_thread::sleep_for(500ms);  // the attempt to watch the process fails
    setrlimit(RLIMIT_NOFILE, &before);
    std::this_thread::sleep_for(1500ms);
    kill(first->pid(), SIGKILL);
    return Member::look_until("the exit", [&] {
      member->receive();
      return member->peers().take_exit() == config_.mac(0);
    });
  }};
  EXPECT_TRUE(second.done());
}

TEST_F(PeerWatchTest, exit_of_the_next_process_of_a_slot_is_reported) {
  const auto first = echo();
  ASSERT_TRUE(first->done());
  // The steps are ordered by files: an exchange; an exit; an exchange with the successor, and its exit.
  const auto exited = root_ / "exited";
  const auto after_exit = [&] {
    return Member::look_until("the first exit", [&] { return std::filesystem::exists(exited); });
  };
  const auto third = echo(after_exit, Wait::kWhenAsked);
  const test::Child second{[&] {
    const auto member = Member::join(folder_);
    if (member == nullptr || !exchange(*member)) return false;
    const auto sees_exit = [&] {
      return Member::look_until("an exit", [&] {
        member->receive();
        return member->peers().take_exit() == config_.mac(0);
      });
    };
    kill(first->pid(), SIGKILL);
    if (!sees_exit()) return false;
    std::ofstream{exited} << "x";
    const auto is_there = [&] { return !member->peers().is_absent(config_.mac(0)); };
    if (!Member::look_until("the successor", is_there) || !exchange(*member)) return false;
    kill(third->pid(), SIGKILL);
    return sees_exit();
  }};
  EXPECT_TRUE(second.done());
}

}  // namespace
}  // namespace roci
