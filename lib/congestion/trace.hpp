// Trace of congestion control: the last events and decisions of plugins, for output (CSV, JSON) and replay.
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
    kStart,  // start of a flow; `event` has only the time
    kEvent,
    // State of the plugin after the previous event: a replay of the flow can start here. `event` as for kStart.
    kState,
  };
  uint32_t flow = 0;  // ControlFlow::id
  Kind kind = Kind::kEvent;
  const Profile* profile = nullptr;
  roci_cc_flow info{};
  roci_cc_event event{};  // its path is in `path`
  bool has_path = false;
  roci_cc_path path{};          // kState: the plugin's state is stored in place of the hops
  roci_cc_decision decision{};  // after the event

  [[nodiscard]] void* state() { return path.hop; }
  [[nodiscard]] const void* state() const { return path.hop; }
};
static_assert(sizeof(roci_cc_path::hop) >= ROCI_CC_MAX_STATE);

// Ring of records: the newest replace the oldest. For each flow it contains a kStart or kState that is not much older
// than half of the ring, so at least the newer half can be replayed. Owned by one thread; records() may be called while
// that thread is not running.
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
  // Number of replaced records.
  [[nodiscard]] uint64_t lost() const { return count_ > records_.size() ? count_ - records_.size() : 0; }

 private:
  // Minimum ring size for kState records; in a smaller ring they would be the majority.
  static constexpr size_t kMinForStates = 16;

  TraceRecord& next(const ControlFlow& flow, TraceRecord::Kind kind);
  void put_beginning(ControlFlow& flow, TraceRecord::Kind kind, uint64_t now_ns);
  void put(ControlFlow& flow, const roci_cc_event& event);

  std::vector<TraceRecord> records_;
  uint64_t count_ = 0;
};

// Writes CSV: a header, and a line per event with names instead of numbers. A missing limit is an empty cell. `path`
// has node:port:queue_bytes:sent_units:time_ns:rate for each hop, separated by spaces.
void write_trace_csv(const std::vector<TraceRecord>& records, std::ostream& out);

// Writes JSON Lines, a line per event with all bits: read_trace() returns the same records. Files of one device may be
// concatenated, because its flows have different ids.
//
//   {"type":"trace","version":1}
//   {"type":"start","flow":7,"profile":"p","plugin":"hpcc","parameters":{…},"info":{…},"now_ns":…,"decision":{…}}
//   {"type":"event","flow":7,"event":{"now_ns":…,"kinds":1,…},"notice":{…},"path":{…},"hops":[{…},…],"decision":{…}}
//   {"type":"state",… as "start" …,"bytes":"00ff…","sum":…}
//
// In an event, a notice, a path and a hop, members with the value 0 are omitted. `sum` of a state is the 64-bit FNV-1a
// hash of its bytes. If the start of a flow was replaced in the ring, a line of type "flow" precedes its first event;
// it is like "start" without time and decision.
void write_trace_json(const std::vector<TraceRecord>& records, std::ostream& out);

// Content of a trace file, with the profiles that it refers to.
struct RecordedTrace {
  std::list<Profile> profiles;  // referenced by the records
  std::vector<TraceRecord> records;
};
// The error contains the line number. Rejects unknown plugins, values that they do not allow, and events that no engine
// creates: decreasing time, packets without bytes, a state with a wrong sum. A parameter that the plugin did not have
// when the trace was written has its default value.
Result<std::unique_ptr<RecordedTrace>> read_trace(std::istream& in, const Algorithms& algorithms);

// Result of a replay.
struct ReplayOutcome {
  uint64_t flows = 0;   // with a start or a state
  uint64_t events = 0;  // of these flows
  // Events before the first state of a flow whose start was replaced in the ring: not replayed.
  uint64_t without = 0;
  // Decisions that differ. After the first one of a flow, later ones often follow from it.
  uint64_t different = 0;
  // First difference: "flow 7 (hpcc), event 12: window is 9000 in the trace and 8000 now".
  std::string first;
};
// Passes the events of a trace to their plugins again and compares the decisions.
ReplayOutcome replay(const std::vector<TraceRecord>& records);

}  // namespace roci
