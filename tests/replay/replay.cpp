#include "replay/replay.hpp"

#include <algorithm>
#include <iterator>

#include "replay/scenario.hpp"
#include "wire/roce/packet_fields.hpp"

namespace roci::test {
namespace {

using Kind = Difference::Kind;

struct Answer {
  int request = 0;  // frame number
  Packet packet;
};

class ResponderComparison {
 public:
  ResponderComparison(const Exchange& exchange, std::span<const Difference> differences)
      : exchange_(exchange) {
    std::ranges::copy_if(differences, std::back_inserter(differences_),
                         [&](const Difference& d) { return d.capture == exchange.capture; });
    used_.resize(differences_.size());
    scenario_ = make_scenario(exchange, differences_);
    for (size_t i = 0; i < differences_.size(); ++i) {
      const Difference& d = differences_[i];
      used_[i] =
          d.kind == Kind::kNotDelivered && std::ranges::any_of(exchange.frames, [&](const RecordedFrame& f) {
            return f.number == d.frame && f.is_request();
          });
    }
  }

  // Sends requests one by one; the responses to one are complete before the next.
  void feed_singly(ReplayHost& host) {
    for (const Scenario::Request& request : scenario_.requests) {
      prepare(host, request.frame);
      for (const Packet& answer : host.feed({&request.bytes, 1})) {
        const bool extra = find(Kind::kOursOnly, request.frame, answer_line(answer)) != nullptr;
        if (!extra && !is_lost(request.frame, answer)) ours_.push_back({request.frame, answer});
      }
    }
  }

  void feed_bursts(ReplayHost& host) {
    std::vector<ByteVector> burst;
    size_t next = 0;
    const auto flush = [&] {
      for (const Packet& answer : host.feed(burst)) {
        if (answer.bth.opcode != Opcode::kCnp) ours_.push_back({0, answer});  // these are compared singly
      }
      burst.clear();
    };
    for (const RecordedFrame& frame : exchange_.frames) {
      if (!frame.is_request()) {
        flush();
        continue;
      }
      prepare(host, frame.number);
      burst.push_back(scenario_.requests.at(next++).bytes);
    }
    flush();
  }

  void compare_answers() {
    const std::vector<RecordedFrame> theirs = recorded_answers();
    for (size_t i = 0; i < std::max(theirs.size(), ours_.size()); ++i) {
      if (i >= ours_.size()) {
        complain(theirs[i].number, "we do not answer " + answer_line(theirs[i].packet));
      } else if (i >= theirs.size()) {
        complain(ours_[i].request, "we answer " + answer_line(ours_[i].packet) + ", they do not");
      } else {
        compare(theirs[i], ours_[i].packet);
      }
    }
  }

  void compare_end() {
    const std::vector<RecordedFrame> theirs = recorded_answers();
    if (ours_.empty() || ours_.size() > theirs.size()) {
      complain(0, std::to_string(ours_.size()) + " answers instead of " + std::to_string(theirs.size()));
    } else {
      compare(theirs.back(), ours_.back().packet);
    }
  }

  void compare_memory(ReplayHost& host) {
    for (const auto& [key, region] : scenario_.regions_after) {
      const ByteVector& ours = host.regions().at(key).bytes;
      const auto at = std::ranges::mismatch(region.bytes, ours).in1;
      if (at != region.bytes.end()) {
        complain(0, "region " + std::to_string(key) + " differs at byte " +
                        std::to_string(at - region.bytes.begin()));
      }
    }
    const auto received = host.received();
    if (received != scenario_.received) {
      complain(0, std::to_string(received.size()) + " messages received are not the " +
                      std::to_string(scenario_.received.size()) + " sent");
    }
  }

  void compare_differences() {
    for (size_t i = 0; i < differences_.size(); ++i) {
      if (!used_[i]) complain(differences_[i].frame, "the entry in the list of differences is not needed");
    }
  }

  [[nodiscard]] const ReplayHost::Config& host() const { return scenario_.host; }
  std::vector<std::string> complaints() { return std::move(complaints_); }

 private:
  void complain(int frame, const std::string& what) {
    complaints_.push_back(exchange_.capture + " frame " + std::to_string(frame) + ": " + what);
  }

  // Performs the actions of the responder's program before this frame.
  void prepare(ReplayHost& host, int frame) {
    for (const Scenario::LocalWrite& write : scenario_.local_writes) {
      if (write.frame == frame) host.write(write.rkey, write.va, write.bytes);
    }
    if (frame != scenario_.receives_before) return;
    for (const uint32_t length : scenario_.receives) host.post_receive(length);
  }

  // Returns the entry of this kind for this frame and marks it as used; null if there is none.
  const Difference* find(Kind kind, int frame, const std::string& line) {
    for (size_t i = 0; i < differences_.size(); ++i) {
      const Difference& d = differences_[i];
      if (d.kind != kind || d.frame != frame || d.what != line || used_[i]) continue;
      used_[i] = true;
      return &d;
    }
    return nullptr;
  }

  bool is_lost(int request, const Packet& answer) {
    return find(Kind::kAnswerLost, request, answer_line(answer)) != nullptr;
  }

  std::vector<RecordedFrame> recorded_answers() {
    std::vector<RecordedFrame> answers;
    for (const RecordedFrame& frame : exchange_.frames) {
      if (frame.is_request()) continue;
      if (find(Kind::kTheirsOnly, frame.number, answer_line(frame.packet)) == nullptr)
        answers.push_back(frame);
    }
    return answers;
  }

  void compare(const RecordedFrame& theirs, Packet ours) {
    const Packet as_sent = ours;
    if (Packet(ours).finish() != as_sent) complain(theirs.number, "our checksums or ICRC are wrong");
    // The identification has no meaning if a packet must not be fragmented (RFC 6864 4.1). It is copied, and the
    // checksum and the ICRC, which cover it, are recomputed and compared.
    ours.v4().id = theirs.packet.v4().id;
    ours.finish();
    std::vector<std::string> lines = packet_differences(theirs.packet, ours);
    if (lines.empty()) return;
    if (const Difference* known = find(Kind::kFields, theirs.number, answer_line(theirs.packet))) {
      // Differences that follow from other fields need no entry.
      std::erase_if(lines, [](const std::string& line) {
        return line.starts_with("data.icrc") || line.starts_with("ip.checksum") ||
               line.starts_with("ip.total_length") || line.starts_with("udp.length");
      });
      if (std::ranges::equal(lines, known->fields)) return;
    }
    for (const std::string& line : lines)
      complain(theirs.number, answer_line(theirs.packet) + ": theirs and ours differ in " + line);
  }

  const Exchange& exchange_;
  std::vector<Difference> differences_;
  std::vector<bool> used_;
  Scenario scenario_;
  std::vector<Answer> ours_;
  std::vector<std::string> complaints_;
};

}  // namespace

std::vector<std::string> replay(const Exchange& exchange, std::span<const Difference> differences) {
  ResponderComparison run(exchange, differences);
  ReplayHost host(run.host());
  run.feed_singly(host);
  run.compare_answers();
  run.compare_memory(host);
  run.compare_differences();
  return run.complaints();
}

std::vector<std::string> replay_in_bursts(const Exchange& exchange, std::span<const Difference> differences) {
  ResponderComparison run(exchange, differences);
  ReplayHost host(run.host());
  run.feed_bursts(host);
  run.compare_end();
  run.compare_memory(host);
  return run.complaints();
}

}  // namespace roci::test
