// RC connection with random traffic in both directions, the application's actions on it, and the oracle. Every
// request completes exactly once, in order, with the right bytes. A request without a completion had no effects other
// than a part of its own. A connection is established several times: its queue pairs fail, are moved to the error
// state, reset or destroyed, and connected again with other PSNs.
//
//   kTraffic --all done--> finished          kTraffic --error, intended or not--> kEnding
//   kEnding --nothing outstanding--> kPause --> kTraffic, or kDone
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "simulation/linux/linux_queue_pair.hpp"
#include "simulation/scenario/network.hpp"
#include "simulation/traffic/rc_queue_pair.hpp"
#include "simulation/traffic/receives.hpp"
#include "support/hosts/connect.hpp"

namespace roci {
class ReliableQueuePair;
}

namespace roci::test {

inline constexpr size_t kSlotBytes = 64 * 1024;  // the largest message
inline constexpr size_t kSlots = 8;

class ReliableConnection final : public Actor {
 public:
  // `shared`: the shared receives of each host, or null.
  ReliableConnection(Network& network, const Scenario& scenario, Rng rng, Verifier& verifier,
                     std::array<size_t, 2> hosts, std::array<Receives*, 2> shared);

  void act(Nanos now) override;
  void reap() override;
  [[nodiscard]] bool finished() const override;
  [[nodiscard]] std::string state() const override;
  void check() override;

 private:
  static constexpr size_t kWords = 4;         // targets of atomics
  static constexpr size_t kResultWords = 64;  // more than the maximum of outstanding requests

  // A memory window, through which the peer may access a part of an arena.
  struct Window {
    enum class State : uint8_t { kFree, kBinding, kOpen, kClosing };
    std::unique_ptr<MemoryWindow> object;
    State state = State::kFree;
    uint32_t key = 0;
    uint32_t closing_key = 0;  // becomes invalid when the request in progress completes
    uint32_t stale_key = 0;    // invalidated key; 0: none yet
    size_t begin = 0, length = 0;
    bool zero_based = false;
    uint32_t users = 0;  // outstanding requests of the peer through this window
    [[nodiscard]] bool type2() const { return object->type() == IBV_MW_TYPE_2; }
  };
  // A request in a send queue without a completion.
  struct Posted {
    uint64_t wr_id = 0;
    ibv_wr_opcode opcode = IBV_WR_SEND;
    size_t source = 0;  // offset of the data in the local source arena, or for a READ in the peer's
    size_t target = 0;  // offset of the destination
    uint32_t length = 0;
    bool signaled = false;
    bool forbidden = false;     // uses a stale key
    uint64_t operands[2] = {};  // of an atomic: addend, or compare and swap values
    Window* through = nullptr;  // the peer's window whose key the request uses
    Window* subject = nullptr;  // the window that the request binds or invalidates
    [[nodiscard]] bool is_atomic() const {
      return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    }
    [[nodiscard]] bool is_read() const { return opcode == IBV_WR_RDMA_READ; }
    [[nodiscard]] bool is_write() const {
      return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    }
  };
  // A message for which the peer must get a receive completion.
  struct Announced {
    uint64_t wr_id = 0;
    bool is_send = true;
    size_t source = 0;
    uint32_t length = 0;
    bool has_imm = false;
    uint32_t imm = 0;
    Window* invalidates = nullptr;  // a window of the receiver
    bool acknowledged = false;
  };
  enum class Life : uint8_t {
    kRunning,
    kFailing /* in ERR, requests are being flushed */,
    kGone /* reset or destroyed */
  };

  struct End {
    size_t host = 0;
    int side = 0;
    std::unique_ptr<ProtectionDomain> pd;
    std::unique_ptr<CompletionChannel> channel;
    std::unique_ptr<CompletionQueue> cq;
    LinuxHost* linux_host = nullptr;  // set for the end on a Linux host, which has none of the three above
    std::deque<ibv_wc> completions;   // of the Linux host
    std::unique_ptr<RcQueuePair> qp;
    Arena source;     // data of SENDs and WRITEs, readable by the peer; never changes
    Arena landing;    // destination of the peer's WRITEs
    Arena inbox;      // destination of local READs
    Arena words;      // targets of the peer's atomics
    Arena originals;  // results of local atomics, one word each
    Receives own;
    Receives* receives = nullptr;
    uint64_t source_sum = 0;
    std::array<uint64_t, kWords> words_image{};
    std::vector<uint8_t> landing_image, inbox_image;  // expected contents
    std::vector<bool> landing_busy = std::vector<bool>(kSlots), inbox_busy = std::vector<bool>(kSlots);
    std::array<Window, 2> windows;  // for WRITEs to `landing` and READs of `source`
    std::deque<Posted> posted;
    std::vector<Posted> unfinished;   // ended without success
    std::deque<Announced> announced;  // messages sent to the peer
    size_t next_original = 0;
    uint64_t next_id = 1;
    bool signal_all = false;
    Life life = Life::kRunning;
    bool seen_error = false;  // a completion or an event reported an error
    bool has_failed = false;  // a request ended with an error other than a flush
    uint32_t to_post = 0;
    uint32_t first_psn = 0;
    // A connection began just before the largest PSN. A second one could take late packets of the first for its own.
    bool wrapped = false;
    enum class Drain : uint8_t { kNo, kDraining, kDrained } drain = Drain::kNo;
    bool drain_notifies = false;
    bool forbade = false;        // sent a request that the peer must reject
    uint64_t losses_before = 0;  // Network::losses() when it was posted
    // A request through a window of the peer ended without success; its packets may still arrive.
    bool abandoned_window = false;
    bool last_receive_seen = false;  // QP_LAST_WQE_REACHED was received
    [[nodiscard]] bool shares() const { return receives != &own; }
    [[nodiscard]] QueuePair& verbs() const { return static_cast<DeviceQueuePair&>(*qp).verbs(); }
    int poll_completions(int most, ibv_wc* out);
  };
  enum class Phase : uint8_t { kTraffic, kEnding, kPause, kDone };
  enum class Ending : uint8_t { kComplete, kKill, kReset, kDestroy, kForbidden };

  // reliable_lifecycle.cpp
  void make_end(int side, size_t host, Receives* shared);
  template <class Owner>
  void register_memory(End& end, Owner& owner);
  void make_qp(End& end);
  void make_windows(End& end);
  void connect();
  void choose_ending();
  [[nodiscard]] bool is_refused_for_ever() const;
  void act_in_traffic(End& local, End& peer);
  void end_on_purpose();
  void act_in_ending(End& local, End& peer, Nanos now);
  void look_for_failure(End& end);
  void drain(End& end);
  void vanish(End& end);
  void fail_queue_pair(End& end);
  [[nodiscard]] bool over(End& end);

  // reliable_traffic.cpp
  void post_random(End& local, End& peer);
  void post_atomic(End& local, End& peer, Posted& op);
  bool post_window_change(End& local, End& peer);
  void bind(End& local, Window& window, bool open);
  bool post_forbidden(End& local, End& peer);
  bool post(End& local, Posted& op, ibv_send_wr& wr);
  [[nodiscard]] uint32_t random_length();

  // reliable_oracle.cpp
  void reap(End& local, End& peer, bool forced);
  void on_send_done(End& local, End& peer, const ibv_wc& wc);
  void on_receive_done(End& local, End& peer, const ibv_wc& wc);
  [[nodiscard]] bool flushed(End& end);
  [[nodiscard]] ReliableQueuePair& inside(const End& end);
  void verify_error(End& local, const Posted& op, const ibv_wc& wc);
  [[nodiscard]] bool learns_of_rejections(const End& local) const;
  void retire(End& local, End& peer, const Posted& op, bool success);
  void retire_success(End& local, End& peer, const Posted& op);
  void retire_atomic(End& local, End& peer, const Posted& op);
  void settle();
  void settle_requests(End& local, End& peer);
  // `keeps_wrong`: the range may contain bytes of a packet with a wrong ICRC.
  void settle_range(Arena& memory, std::vector<uint8_t>& image, size_t target, const uint8_t* data,
                    size_t length, const char* what, bool keeps_wrong);
  void settle_atomics(End& local, End& peer);
  void check_end(End& end);
  void check_sequences(End& local, End& peer);

  Network& network_;
  const Scenario& scenario_;
  Rng rng_;
  Verifier& verifier_;
  std::array<End, 2> ends_;
  std::array<bool, 2> keeps_wrong_{};  // an unfinished message may leave wrong bytes at this side
  ConnectOptions terms_;
  Phase phase_ = Phase::kTraffic;
  Ending ending_ = Ending::kComplete;
  int ending_side_ = 0;
  uint32_t ending_at_ = 0;  // ends when this number of requests is left to post
  uint32_t lives_left_ = 0;
  bool has_cause_ = false;  // queue pairs may exhaust their retries
  Nanos resume_at_{0};
  Nanos patience_{0};
};

}  // namespace roci::test
