// What plugins were told and what they decided, the last of it: for people (CSV, JSON), and to be run again.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/types.hpp"
#include "congestion/control_flow.hpp"

namespace roci {

struct TraceRecord {
  enum class Kind : uint8_t {
    kStart,  // a flow begins; `event` is empty but for its time
    kEvent,
    kState,  // what the plugin has kept by then: from here on a flow can be run again; `event` as of kStart
  };
  uint32_t flow = 0;  // ControlFlow::id
  Kind kind = Kind::kEvent;
  const Profile* profile = nullptr;
  roci_cc_flow info{};
  roci_cc_event event{};  // its path is `path`
  bool has_path = false;
  roci_cc_path path{};          // of kState, the hops' place has the plugin's state
  roci_cc_decision decision{};  // in force afterwards

  [[nodiscard]] void* state() { return path.hop; }
  [[nodiscard]] const void* state() const { return path.hop; }
};
static_assert(sizeof(roci_cc_path::hop) >= ROCI_CC_MOST_STATE);

// A ring: the newest records displace the oldest. Of each flow it has a kStart or a kState not much older than half of the
// ring, so at least the newer half of what it holds can be run again. Owned by one thread; what it holds is copied out with that
// thread at rest.
class Trace {
 public:
  explicit Trace(uint32_t most) : records_(most) {}

  void add_start(ControlFlow& flow, Nanos now) {
    if (!records_.empty()) [[unlikely]]
      put_beginning(flow, TraceRecord::Kind::kStart, plain_nanos(now));
  }
  void add(ControlFlow& flow, const roci_cc_event& event) {
    if (!records_.empty()) [[unlikely]]
      put(flow, event);
  }
  // The oldest first.
  [[nodiscard]] std::vector<TraceRecord> records() const;
  // That were displaced.
  [[nodiscard]] uint64_t lost() const { return count_ > records_.size() ? count_ - records_.size() : 0; }

 private:
  static constexpr size_t kLeastForStates = 16;  // records: of fewer, states would be the most

  TraceRecord& next(const ControlFlow& flow, TraceRecord::Kind kind);
  void put_beginning(ControlFlow& flow, TraceRecord::Kind kind, uint64_t now_ns);
  void put(ControlFlow& flow, const roci_cc_event& event);

  std::vector<TraceRecord> records_;
  uint64_t count_ = 0;
};

// For a table: a heading, and a line for each event with names instead of numbers. What has no limit is an empty cell. `path`
// has node:port:queue_bytes:sent_units:time_ns:rate for each hop, with blanks between them.
void write_trace_csv(const std::vector<TraceRecord>& records, std::ostream& out);

// A line for each event (JSON Lines), with every bit of it: read_trace() gives the same records. Files may be joined: flows
// of one device have different numbers.
//
//   {"type":"trace","version":1}
//   {"type":"start","flow":7,"profile":"p","plugin":"hpcc","parameters":{…},"info":{…},"now_ns":…,"decision":{…}}
//   {"type":"event","flow":7,"event":{"now_ns":…,"kinds":1,…},"notice":{…},"path":{…},"hops":[{…},…],"decision":{…}}
//   {"type":"state",… as "start" …,"bytes":"00ff…","sum":…}
//
// An event, a notice, a path and a hop leave out what is 0. A state's sum is the FNV-1a hash of its bytes, of 64 bits. Before the first
// event of a flow whose beginning was displaced there is a line of the type "flow", as "start" but without a time and a decision.
void write_trace_json(const std::vector<TraceRecord>& records, std::ostream& out);

// What was read from a file, with the profiles that it speaks of.
struct RecordedTrace {
  std::list<Profile> profiles;  // their addresses are the records'
  std::vector<TraceRecord> records;
};
// An error names the line. Refused are also plugins that there are not, values that they do not allow, and what no engine
// says: time that goes back, packets without bytes, a state whose sum is another one. A parameter that the plugin has got since then has its standard value.
Result<std::unique_ptr<RecordedTrace>> read_trace(std::istream& in, const Algorithms& algorithms);

// Runs the events of a trace through their plugins again.
struct ReplayOutcome {
  uint64_t flows = 0;   // whose start, or a state, is there
  uint64_t events = 0;  // of those
  uint64_t without =
      0;  // events before the first state of a flow whose start was displaced: they cannot be replayed
  uint64_t different =
      0;  // decisions that came out another way; after the first of a flow, later ones often follow from it
  std::string
      first;  // the first of these: "flow 7 (hpcc), event 12: window is 9000 in the trace and 8000 now"
};
ReplayOutcome replay(const std::vector<TraceRecord>& records);

}  // namespace roci
