#include "roci-run/networks.hpp"

#include <array>
#include <cstdio>
#include <fstream>

#include "base/os/private_folder.hpp"
#include "net/net_control.hpp"
#include "net/net_slot.hpp"
#include "net/runtime_folder.hpp"

namespace roci::run {
namespace {

std::string slots_text(const std::vector<TakenSlot>& taken) {
  std::string text;
  for (const TakenSlot& slot : taken) {
    std::string program = "?";
    std::ifstream{"/proc/" + std::to_string(slot.pid) + "/comm"} >> program;
    text += (text.empty() ? "" : ", ") + std::to_string(slot.number) + ": " + program + " (" +
            std::to_string(slot.pid) + ")";
  }
  return text.empty() ? "-" : text;
}

Result<NetConfig> net_in(const std::filesystem::path& path) {
  const auto folder = PrivateFolder::open(path);
  if (!folder) return fail(folder.error());
  return read_net(*folder);
}

Result<std::string> row(const std::string& name) {
  const auto folder = find_net(name);
  if (!folder) return fail(folder.error());
  const auto net = net_in(*folder);
  if (!net) return fail(net.error());
  const auto taken = taken_slots(*folder, net->slots);
  if (!taken) return fail(taken.error());
  const auto state = net_switch_state(*folder);
  if (!state) return fail(state.error());
  std::string runs = state->pid == 0 ? "starting" : std::to_string(state->pid);
  if (!state->running) runs = net->needs_switch() ? "ended" : "none";
  const std::string used = std::to_string(taken->size()) + "/" + std::to_string(net->slots);
  std::array<char, 160> line;
  std::snprintf(line.data(), line.size(), "%-16s %9s %8s  %-18s ", name.c_str(), runs.c_str(), used.c_str(),
                net->networks.front().to_string().c_str());
  return line.data() + slots_text(*taken) + "\n";
}

}  // namespace

Result<std::string> networks_table() {
  const auto names = list_nets();
  if (!names) return fail(names.error());
  if (names->empty()) return std::string{"no networks\n"};
  std::array<char, 160> heading;
  std::snprintf(heading.data(), heading.size(), "%-16s %9s %8s  %-18s %s\n", "network", "switch", "slots",
                "addresses", "processes by slot");
  std::string table = heading.data();
  for (const std::string& name : *names) {
    const auto text = row(name);
    table += text ? *text : name + ": " + text.error().message + "\n";
  }
  return table;
}

Result<std::string> stop_network(const std::string& name) {
  constexpr Nanos kStopTimeout = 5s;
  const auto folder = find_net(name);
  if (!folder) return fail(folder.error());
  const auto net = net_in(*folder);
  const auto state = net_switch_state(*folder);
  if (!state) return fail(state.error());
  if (net && !net->needs_switch() && !state->running)
    return "network '" + name + "' has no switch; it ends with its last process\n";
  const auto ended = stop_switch(*folder, kStopTimeout);
  if (!ended) return fail(ended.error().within("network '" + name + "'"));
  return "network '" + name + "' " + (*ended ? "was stopped" : "was not running") + "\n";
}

}  // namespace roci::run
