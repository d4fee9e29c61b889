#include "roci-top/tables/table.hpp"

#include <array>

#include "roci-top/tables/host_table.hpp"
#include "roci-top/tables/queue_pair_table.hpp"
#include "roci-top/tables/switch_table.hpp"

namespace roci::top {

const char* sort_name(Sort sort) {
  constexpr std::array<const char*, kSorts> kNames = {"name", "transmit", "queue", "drops"};
  return kNames[static_cast<unsigned>(sort)];
}

std::vector<Line> render(const Snapshot& now, const Snapshot& before, const Look& look) {
  std::vector<Line> lines;
  add_hosts(lines, now, before, look);
  for (const ProcessSample& process : now.processes) {
    for (const SwitchSample& sw : process.switches) {
      if (!lines.empty()) lines.emplace_back();
      add_switch(lines, process, sw, before.find(process, sw), look);
    }
  }
  if (!look.queue_pairs) return lines;
  for (const ProcessSample& process : now.processes) {
    for (const HostSample& host : process.hosts)
      add_queue_pairs(lines, process, host, before.find(process, host), look);
  }
  return lines;
}

}  // namespace roci::top
