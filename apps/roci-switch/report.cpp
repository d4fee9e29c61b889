#include "roci-switch/report.hpp"

#include <algorithm>
#include <string>

#include "port/port_config.hpp"

namespace roci {
namespace {

double gigabits(uint64_t bytes, Nanos span) {
  return span <= Nanos{0} ? 0.0 : static_cast<double>(bytes) * 8 / static_cast<double>(span.count());
}

// Text list of nonzero counters: "queue_full 12, runt 1".
class Listing {
 public:
  void add(std::string_view name, uint64_t count) {
    if (count == 0) return;
    text_ += text_.empty() ? "" : ", ";
    text_ += std::string{name} + " " + std::to_string(count);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string drops_of(const SwitchPortCounters& counters) {
  Listing all;
  for (unsigned i = 1; i < kDropReasonCount; ++i)
    all.add(drop_reason_name(static_cast<DropReason>(i)), counters.drops[i]);
  return all.text();
}

// Lists an array of event counters by name.
template <class Counters, class Name>
std::string events_of(const Counters& counters, Name name) {
  Listing all;
  for (size_t i = 0; i < counters.events.size(); ++i) all.add(name(i), counters.events[i]);
  return all.text();
}

// Lists the injected faults.
std::string injected_of(const PortFaultCounters& counters) {
  Listing all;
  all.add("lost", counters.lost);
  all.add("corrupted", counters.corrupted);
  all.add("duplicated", counters.duplicated);
  all.add("reordered", counters.reordered);
  all.add("delayed", counters.delayed);
  all.add("delay_full", counters.delay_full);
  all.add("no_buffer", counters.no_buffer);
  all.add("down_rx", counters.down_rx);
  all.add("down_tx", counters.down_tx);
  return all.text();
}

}  // namespace

SwitchReport::SwitchReport(const Switch& sw, const std::vector<FaultyPort*>& faulty)
    : switch_(sw), faulty_(faulty), last_(sample()) {}

void SwitchReport::start(Nanos now) { started_ = last_time_ = now; }

void SwitchReport::print(std::FILE* out, Nanos now) {
  print_since(out, last_, now - last_time_);
  last_ = sample();
  last_time_ = now;
}

void SwitchReport::print_total(std::FILE* out, Nanos now) {
  print_since(out, std::vector<Sample>(last_.size()), now - started_);
}

std::vector<SwitchReport::Sample> SwitchReport::sample() const {
  std::vector<Sample> out;
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    const SwitchPortCounters& c = switch_.counters(i);
    out.push_back({c.rx_bytes, c.tx_bytes});
  }
  return out;
}

void SwitchReport::print_since(std::FILE* out, const std::vector<Sample>& from, Nanos span) {
  int width = 4;
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    width = std::max(width, static_cast<int>(switch_.port_config(i).name.size()));
  }
  std::fprintf(out, "%-*s %12s %8s %12s %8s %10s %10s %10s  %s\n", width, "port", "rx packets", "rx Gb/s",
               "tx packets", "tx Gb/s", "queue B", "peak B", "dropped", "reasons");
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    const SwitchPortCounters& c = switch_.counters(i);
    const auto value = [](const SwitchPortCounters::Counter& x) {
      return static_cast<unsigned long long>(x);
    };
    std::fprintf(out, "%-*s %12llu %8.3f %12llu %8.3f %10llu %10llu %10llu  %s\n", width,
                 switch_.port_config(i).name.c_str(), value(c.rx_packets),
                 gigabits(c.rx_bytes - from[i].rx_bytes, span), value(c.tx_packets),
                 gigabits(c.tx_bytes - from[i].tx_bytes, span), value(c.queue_bytes),
                 value(c.queue_peak_bytes), static_cast<unsigned long long>(c.dropped()),
                 drops_of(c).c_str());
  }
  print_classes(out, width);
  print_injected(out);
  const auto line = [out](const char* what, const std::string& events) {
    if (!events.empty()) std::fprintf(out, "%s: %s\n", what, events.c_str());
  };
  line("CNMs",
       events_of(switch_.cnm_counts(), [](size_t i) { return cnm_event_name(static_cast<CnmEvent>(i)); }));
  line("CNPs",
       events_of(switch_.cnp_counts(), [](size_t i) { return cnp_event_name(static_cast<CnpEvent>(i)); }));
  line("telemetry responses", events_of(switch_.int_response_counts(), [](size_t i) {
         return int_response_event_name(static_cast<IntResponseEvent>(i));
       }));
  line("senders", events_of(switch_.sender_counts(),
                            [](size_t i) { return sender_event_name(static_cast<SenderEvent>(i)); }));
  print_shapers(out);
}

void SwitchReport::print_shapers(std::FILE* out) {
  for (size_t i = 0; i < switch_.shaper_count(); ++i) {
    const SwitchShaperConfig& config = switch_.shaper_config(i);
    const ShaperCounts c = switch_.shaper_counts(i);
    if (i == 0) {
      std::fprintf(out, "%-24s %5s %10s %10s %10s %10s %10s %10s %10s\n", "shaper", "class", "rate Gb/s",
                   "queue B", "peak B", "held", "marked", "dropped", "CNMs");
    }
    const auto value = [](uint64_t x) { return static_cast<unsigned long long>(x); };
    const std::string rate = c.rate == 0 ? "no limit" : std::to_string(static_cast<double>(c.rate) * 1e-9);
    std::fprintf(out, "%-24s %5u %10s %10llu %10llu %10llu %10llu %10llu %10llu\n",
                 config.prefix.to_string().c_str(), config.traffic_class, rate.c_str(), value(c.queue_bytes),
                 value(c.queue_peak_bytes), value(c.held), value(c.marked), value(c.dropped),
                 value(c.notices));
  }
}

// Prints the traffic classes, except an active class 0 without marked packets.
void SwitchReport::print_classes(std::FILE* out, int width) {
  bool headed = false;
  for (size_t i = 0; i < switch_.port_count(); ++i) {
    for (unsigned number = 0; number < kTrafficClasses; ++number) {
      const SwitchClassCounters& c = switch_.counters(i).classes[number];
      const bool used = c.tx_packets > 0 || c.queue_bytes > 0 || c.pauses_received > 0 || c.pauses_sent > 0;
      if (!used || (number == 0 && c.marked == 0)) continue;
      if (!headed) {
        std::fprintf(out, "%-*s %5s %12s %10s %10s %10s %10s %10s %10s %7s\n", width, "port", "class",
                     "tx packets", "marked", "queue B", "peak B", "pauses in", "paused ms", "pauses out",
                     "storms");
        headed = true;
      }
      const auto value = [](const SwitchClassCounters::Counter& x) {
        return static_cast<unsigned long long>(x);
      };
      std::fprintf(out, "%-*s %5u %12llu %10llu %10llu %10llu %10llu %10.3f %10llu %7llu\n", width,
                   switch_.port_config(i).name.c_str(), number, value(c.tx_packets), value(c.marked),
                   value(c.queue_bytes), value(c.queue_peak_bytes), value(c.pauses_received),
                   static_cast<double>(c.paused_nanos) * 1e-6, value(c.pauses_sent), value(c.pause_storms));
    }
  }
}

void SwitchReport::print_injected(std::FILE* out) {
  for (size_t i = 0; i < faulty_.size(); ++i) {
    const std::string done = injected_of(faulty_[i]->counters());
    const PortFaults faults = faulty_[i]->faults();
    if (done.empty() && faults == PortFaults{}) continue;
    std::fprintf(out, "injected at %s: %s (faults: %s)\n", switch_.port_config(i).name.c_str(),
                 done.empty() ? "nothing" : done.c_str(), describe(faults).c_str());
  }
}

}  // namespace roci
