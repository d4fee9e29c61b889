#include "lab/traffic/flow_list.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace roci::lab {
namespace {

constexpr int64_t kMaxListedStart = 3'600'000'000'000;  // ns: one hour

using HostNumbers = std::map<std::string, uint32_t, std::less<>>;

// Words of a line, without its comment. Further words than fit are counted only.
struct LineWords {
  std::array<std::string_view, 4> words;
  size_t count = 0;

  explicit LineWords(std::string_view line) {
    constexpr std::string_view kSpace = " \t\r";
    line = line.substr(0, line.find('#'));
    for (size_t at = line.find_first_not_of(kSpace); at != std::string_view::npos;
         at = line.find_first_not_of(kSpace, at)) {
      const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
      if (count < words.size()) words[count] = line.substr(at, end - at);
      ++count;
      at = end;
    }
  }
};

template <class Number>
bool parse_in_range(std::string_view word, Number low, Number high, Number& out) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
  return error == std::errc{} && end == word.data() + word.size() && out >= low && out <= high;
}

Status host_of(const HostNumbers& hosts, std::string_view name, uint32_t& out) {
  const auto found = hosts.find(name);
  if (found == hosts.end()) return fail("'" + std::string(name) + "' is not a host of the topology");
  out = found->second;
  return {};
}

Result<ListedFlow> flow_of(const LineWords& line, const HostNumbers& hosts) {
  if (line.count != line.words.size())
    return fail(std::to_string(line.count) + " words; sender, receiver, bytes and start in ns are required");
  ListedFlow flow;
  ROCI_TRY(host_of(hosts, line.words[0], flow.from));
  ROCI_TRY(host_of(hosts, line.words[1], flow.to));
  if (flow.from == flow.to) return fail("the sender is the receiver; two hosts are required");
  if (!parse_in_range<uint64_t>(line.words[2], 1, kMaxListedBytes, flow.bytes))
    return fail("'" + std::string(line.words[2]) + "' is not a number of bytes from 1 to 2^40");
  int64_t start = 0;
  if (!parse_in_range<int64_t>(line.words[3], 0, kMaxListedStart, start))
    return fail("'" + std::string(line.words[3]) + "' is not a start in ns of at most one hour");
  flow.start = Nanos{start};
  return flow;
}

}  // namespace

Result<std::vector<ListedFlow>> parse_flow_list(std::string_view text, const std::string& name,
                                                const Topology& topology) {
  HostNumbers hosts;
  for (uint32_t i = 0; i < topology.hosts.size(); ++i) hosts.emplace(topology.hosts[i].name, i);
  std::vector<ListedFlow> out;
  size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    const LineWords words(line);
    if (words.count == 0) continue;
    auto flow = flow_of(words, hosts);
    if (!flow) return fail(flow.error().within(name + ":" + std::to_string(number)));
    if (out.size() == kMaxListedFlows)
      return fail(name + ": more than " + std::to_string(kMaxListedFlows) + " flows");
    out.push_back(*flow);
  }
  if (out.empty()) return fail(name + ": contains no flows");
  return out;
}

Result<std::vector<ListedFlow>> read_flow_list(const std::string& file, const Topology& topology) {
  std::ifstream in{file, std::ios::binary};
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || in.bad())
    return fail("the list of flows '" + file + "' cannot be read: " + std::strerror(errno), errno);
  return parse_flow_list(text.view(), file, topology);
}

}  // namespace roci::lab
