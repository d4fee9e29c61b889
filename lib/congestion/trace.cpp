#include "congestion/trace.hpp"

#include <cstddef>
#include <cstring>

namespace roci {

void Trace::put(const ControlFlow& flow, const roci_cc_event* event, Nanos now) {
  TraceRecord& record = records_[count_++ % records_.size()];
  record.flow = flow.id;
  record.starts = event == nullptr;
  record.profile = &flow.profile;
  record.info = flow.info;
  record.event = event != nullptr ? *event : roci_cc_event{};
  record.event.now_ns = static_cast<uint64_t>(now.count());
  record.has_path = event != nullptr && event->path != nullptr;
  record.path = {};
  if (record.has_path) {  // behind the last hop there may be anything
    std::memcpy(&record.path, event->path,
                offsetof(roci_cc_path, hop) + event->path->hops * sizeof(roci_cc_hop));
  }
  record.event.path = nullptr;
  record.decision = flow.decision;
}

std::vector<TraceRecord> Trace::records() const {
  std::vector<TraceRecord> all;
  const uint64_t first = lost();
  all.reserve(count_ - first);
  for (uint64_t i = first; i < count_; ++i) all.push_back(records_[i % records_.size()]);
  return all;
}

}  // namespace roci
