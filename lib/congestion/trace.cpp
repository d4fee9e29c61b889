#include "congestion/trace.hpp"

#include <cstddef>
#include <cstring>

namespace roci {

TraceRecord& Trace::next(const ControlFlow& flow, TraceRecord::Kind kind) {
  TraceRecord& record = records_[count_++ % records_.size()];
  record.flow = flow.id;
  record.kind = kind;
  record.profile = &flow.profile;
  record.info = flow.info;
  record.event = {};
  record.has_path = false;
  record.path = {};
  record.decision = flow.decision;
  return record;
}

void Trace::put_beginning(ControlFlow& flow, TraceRecord::Kind kind, uint64_t now_ns) {
  TraceRecord& record = next(flow, kind);
  record.event.now_ns = now_ns;
  if (kind == TraceRecord::Kind::kState)
    std::memcpy(record.state(), flow.state(), flow.profile.plugin->state_bytes);
  flow.traced_from = count_;
}

void Trace::put(ControlFlow& flow, const roci_cc_event& event) {
  TraceRecord& record = next(flow, TraceRecord::Kind::kEvent);
  record.event = event;
  record.event.path = nullptr;
  if (event.path != nullptr) {  // bytes after the last hop are undefined
    record.has_path = true;
    std::memcpy(&record.path, event.path,
                offsetof(roci_cc_path, hop) + event.path->hops * sizeof(roci_cc_hop));
  }
  if (records_.size() >= kMinForStates && count_ - flow.traced_from >= records_.size() / 2)
    put_beginning(flow, TraceRecord::Kind::kState, event.now_ns);
}

std::vector<TraceRecord> Trace::records() const {
  std::vector<TraceRecord> all;
  const uint64_t first = lost();
  all.reserve(count_ - first);
  for (uint64_t i = first; i < count_; ++i) all.push_back(records_[i % records_.size()]);
  return all;
}

}  // namespace roci
