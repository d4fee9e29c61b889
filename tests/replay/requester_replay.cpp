#include "replay/requester_replay.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "replay/requester_scenario.hpp"
#include "wire/headers/aeth.hpp"
#include "wire/roce/packet_fields.hpp"

namespace roci::test {
namespace {

using RequestKind = RequestDifference::Kind;
using Field = RequestHabit::Field;
using Where = RequestHabit::Where;

// Longer than the reaction time of a Linux host: a later packet was triggered by a timer.
constexpr Nanos kReaction{1'000'000};
// Maximum number of unacknowledged PSNs in Linux; it may use one more.
constexpr uint32_t kLinuxWindow = 129;
constexpr Nanos kSilence{5'000'000'000};  // after the last frame; nothing may be sent in this time

// A request of either stack.
struct Request {
  int frame = 0;  // recorded requests only
  Packet packet;
  Nanos at{0};
  int behind = 0;          // frame number of the last response before it
  bool again = false;      // this PSN was sent before
  bool goes_back = false;  // and its predecessor was not the previous packet
  uint32_t in_flight = 0;  // from the oldest unacknowledged PSN to its last one
};

// Tracks the requests of one stack and their responses.
class Sender {
 public:
  Sender(Psn first, uint32_t mtu) : mtu_(mtu), una_(first), end_(first), next_(first) {}
  void answered(const RecordedFrame& frame) {
    behind_ = frame.number;
    const auto& aeth = frame.packet.aeth;
    const bool nak = aeth && aeth_kind(aeth->syndrome) != AethKind::kAck;
    const Psn acknowledged = nak ? frame.packet.bth.psn : frame.packet.bth.psn + 1;
    if (is_before(una_, acknowledged)) una_ = acknowledged;
  }
  void send(Request request) {
    const Psn psn = request.packet.bth.psn;
    const Psn end = psn + psns_of(request.packet, mtu_);
    request.behind = behind_;
    request.again = is_before(psn, end_);
    request.goes_back = request.again && psn != next_;
    next_ = end;
    if (is_before(end_, end)) end_ = end;
    if (!is_before(end, una_)) request.in_flight = (end.value() - una_.value()) & Psn::kMask;
    sent.push_back(std::move(request));
  }
  std::vector<Request> sent;

 private:
  uint32_t mtu_;
  int behind_ = 0;
  Psn una_, end_, next_;
};

std::string two(int64_t theirs, int64_t ours, const std::string& unit = "") {
  return std::to_string(theirs) + unit + " and " + std::to_string(ours) + unit;
}
int64_t micros(Nanos time) { return std::chrono::duration_cast<std::chrono::microseconds>(time).count(); }

// Names a payload without its contents.
std::string shortened(const std::string& line) {
  return line.size() > 100 ? line.substr(0, line.find(':')) : line;
}

bool follows_from_others(const std::string& line) {
  return line.starts_with("data.icrc") || line.starts_with("ip.checksum");
}

class RequesterComparison {
 public:
  RequesterComparison(const Exchange& exchange, const RequesterTables& tables)
      : exchange_(exchange),
        scenario_(make_requester_scenario(exchange)),
        theirs_(*scenario_.host.first_own_psn, scenario_.host.path_mtu),
        ours_(theirs_) {
    const auto is_here = [&](const auto& entry) { return entry.capture == exchange.capture; };
    std::ranges::copy_if(tables.differences, std::back_inserter(differences_), is_here);
    std::ranges::copy_if(tables.habits, std::back_inserter(habits_), is_here);
    used_.resize(differences_.size());
    counts_.resize(habits_.size());
  }

  void drive(ReplayHost& host) {
    host_ = &host;
    size_t next = 0;
    const auto take = [&] {
      for (const auto& [at, bytes] : host.take()) ours_.send({0, *decode_packet(bytes), at});
    };
    for (const RecordedFrame& frame : exchange_.frames) {
      // Posted at the time of the first recorded packet, before other frames of the same time.
      for (; next < scenario_.posted.size() && scenario_.posted[next].at <= frame.at; ++next) {
        host.run_until(scenario_.posted[next].at);
        take();
        ids_.push_back(host.post(scenario_.posted[next].message));
        host.run_until(scenario_.posted[next].at);
        take();
      }
      host.run_until(frame.at);
      take();
      if (frame.is_request()) continue;
      ours_.answered(frame);
      host.give(frame.bytes);
      host.run_until(frame.at);
      take();
    }
    host.run_until(exchange_.frames.back().at + kSilence);
    take();
  }

  void compare_requests() {
    const RecordedFrame* before = nullptr;
    for (const RecordedFrame& frame : exchange_.frames) {
      if (!frame.is_request()) {
        theirs_.answered(frame);
        continue;
      }
      const std::string line = request_line(frame.packet);
      if (find(RequestKind::kDuplicated, frame.number, line) != nullptr) {
        if (before == nullptr || before->bytes != frame.bytes) complain(frame.number, "it is no duplicate");
      } else if (find(RequestKind::kTheirsOnly, frame.number, line) == nullptr) {
        theirs_.send({frame.number, frame.packet, frame.at});
      }
      before = &frame;
    }
    const std::vector<Request>& theirs = theirs_.sent;
    size_t next = 0;
    int last = 0;  // frame number
    for (const Request& ours : ours_.sent) {
      const std::string line = request_line(ours.packet);
      if (find(RequestKind::kNotRecorded, last, line) != nullptr) continue;
      if (next == theirs.size()) {
        complain(last, "behind it we send " + line + ", they do not");
        continue;
      }
      last = theirs[next].frame;
      compare(theirs[next++], ours);
    }
    for (; next < theirs.size(); ++next)
      complain(theirs[next].frame, "we do not send " + request_line(theirs[next].packet));
    compare_windows();
  }

  // Compares the statuses that the recorded program saw, in order, and the data from responses.
  void compare_completions() {
    const std::vector<ibv_wc> completions = host_->completions();
    const ibv_wc_status end = recorded_program(exchange_.capture).end;
    if (completions.size() != scenario_.posted.size())
      complain(0, std::to_string(completions.size()) + " completions of " +
                      std::to_string(scenario_.posted.size()) + " requests");
    for (size_t i = 0; i < std::min(completions.size(), scenario_.posted.size()); ++i) {
      const bool last = i + 1 == scenario_.posted.size();
      const ibv_wc_status due = last ? end : IBV_WC_SUCCESS;
      const std::string name = "request " + std::to_string(i + 1);
      if (completions[i].wr_id != ids_[i]) complain(0, name + " is not the one that completes");
      if (completions[i].status != due)
        complain(0, name + " ends with status " + std::to_string(completions[i].status) + " instead of " +
                        std::to_string(due));
      const ByteVector& answer = scenario_.posted[i].answer;
      if (due == IBV_WC_SUCCESS && !answer.empty() && host_->buffer(ids_[i]) != answer)
        complain(0, name + " brings other data than the recorded responses");
    }
    const ibv_qp_state state = end == IBV_WC_SUCCESS ? IBV_QPS_RTS : IBV_QPS_ERR;
    if (host_->state() != state)
      complain(0, "the queue pair ends in state " + std::to_string(host_->state()));
  }

  void compare_tables() {
    for (size_t i = 0; i < differences_.size(); ++i) {
      if (!used_[i]) complain(differences_[i].frame, "the entry in the list of differences is not needed");
    }
    for (size_t i = 0; i < habits_.size(); ++i) {
      if (counts_[i] != habits_[i].count)
        complain(0, std::string(name_of(habits_[i].field)) + " differs in " + std::to_string(counts_[i]) +
                        " packets, in the table in " + std::to_string(habits_[i].count));
    }
  }

  [[nodiscard]] const ReplayHost::Config& host() const { return scenario_.host; }
  std::vector<std::string> complaints() { return std::move(complaints_); }

 private:
  void complain(int frame, const std::string& what) {
    complaints_.push_back(exchange_.capture + " frame " + std::to_string(frame) + ": " + what);
  }

  // Returns the entry of this kind for this frame and marks it as used; null if there is none.
  const RequestDifference* find(RequestKind kind, int frame, const std::string& line) {
    for (size_t i = 0; i < differences_.size(); ++i) {
      const RequestDifference& d = differences_[i];
      if (d.kind != kind || d.frame != frame || d.what != line || used_[i]) continue;
      used_[i] = true;
      return &d;
    }
    return nullptr;
  }

  static std::string_view name_of(Field field) { return field == Field::kEcn ? "ip.ecn" : "bth.ack_request"; }
  static uint8_t value_of(const Packet& p, Field field) {
    return field == Field::kEcn ? static_cast<uint8_t>(p.ecn()) : static_cast<uint8_t>(p.bth.ack_request);
  }

  // Copies the recorded value of a field if a habit states that Rocinante's value differs.
  void take_over_habits(const Packet& theirs, bool again, Packet& ours) {
    const Position position = find_opcode(static_cast<uint8_t>(ours.bth.opcode))->position;
    const bool within = position == Position::kFirst || position == Position::kMiddle;
    for (size_t i = 0; i < habits_.size(); ++i) {
      const RequestHabit& h = habits_[i];
      if ((h.where == Where::kWithinMessage && !within) || (h.where == Where::kSentAgain && !again)) continue;
      if (value_of(theirs, h.field) != h.theirs || value_of(ours, h.field) != h.ours) continue;
      ++counts_[i];
      if (h.field == Field::kAckRequest) {
        ours.bth.ack_request = h.theirs != 0;
      } else {
        ours.with_traffic_class(static_cast<uint8_t>((ours.traffic_class() & 0xfc) | h.theirs));
      }
    }
    ours.finish();
  }

  void compare(const Request& theirs, const Request& ours) {
    const std::string line = request_line(theirs.packet);
    if (Packet(ours.packet).finish() != ours.packet)
      complain(theirs.frame, "our checksums or ICRC are wrong");
    // The identification has no meaning if a packet must not be fragmented (RFC 6864 4.1).
    Packet as_theirs = ours.packet;
    as_theirs.v4().id = theirs.packet.v4().id;
    take_over_habits(theirs.packet, ours.again, as_theirs);
    std::vector<std::string> lines = packet_differences(theirs.packet, as_theirs);
    std::ranges::transform(lines, lines.begin(), shortened);
    if (ours.goes_back) {
      if (theirs.behind != ours.behind) lines.push_back("behind frame: " + two(theirs.behind, ours.behind));
      if (theirs.at - ours.at > kReaction || ours.at > theirs.at)
        lines.push_back("time: " + two(micros(theirs.at), micros(ours.at), " us"));
    }
    if (lines.empty()) return;
    if (const RequestDifference* known = find(RequestKind::kFields, theirs.frame, line)) {
      std::vector<std::string> left = lines;
      if (!std::ranges::all_of(left, follows_from_others)) std::erase_if(left, follows_from_others);
      if (std::ranges::equal(left, known->fields)) return;
    }
    for (const std::string& difference : lines)
      complain(theirs.frame, line + ": theirs and ours differ in " + difference);
  }

  // Compares the maximum number of PSNs in flight, if one exceeds the Linux window.
  void compare_windows() {
    const auto most = [](const std::vector<Request>& sent) {
      const auto least = [](const Request& a, const Request& b) { return a.in_flight < b.in_flight; };
      const auto at = std::max_element(sent.begin(), sent.end(), least);
      return at == sent.end() ? 0 : at->in_flight;
    };
    const uint32_t theirs = most(theirs_.sent);
    const uint32_t ours = most(ours_.sent);
    if (std::max(ours, theirs) <= kLinuxWindow || theirs == ours) return;
    const RequestDifference* known = find(RequestKind::kFields, 0, "");
    const std::string line = "packets under way: " + two(theirs, ours);
    if (known == nullptr || known->fields != std::vector<std::string_view>{line}) complain(0, line);
  }

  const Exchange& exchange_;
  std::vector<RequestDifference> differences_;
  std::vector<RequestHabit> habits_;
  std::vector<bool> used_;
  std::vector<int> counts_;
  RequesterScenario scenario_;
  Sender theirs_, ours_;
  ReplayHost* host_ = nullptr;
  std::vector<size_t> ids_;
  std::vector<std::string> complaints_;
};

}  // namespace

std::string request_line(const Packet& packet) {
  return std::string(find_opcode(static_cast<uint8_t>(packet.bth.opcode))->name) + " " +
         std::to_string(packet.bth.psn.value());
}

std::vector<std::string> replay_to_requester(const Exchange& exchange, const RequesterTables& tables) {
  RequesterComparison run(exchange, tables);
  ReplayHost host(run.host());
  run.drive(host);
  run.compare_requests();
  run.compare_completions();
  run.compare_tables();
  return run.complaints();
}

}  // namespace roci::test
