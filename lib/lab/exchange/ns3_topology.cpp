#include "lab/exchange/ns3_topology.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>

#include "lab/exchange/ns3_words.hpp"
#include "lab/network/topology.hpp"

namespace roci::lab {
namespace {

constexpr uint64_t kMaxNodes = kMaxHosts + kMaxSwitches;
constexpr uint64_t kMaxLinks = 1U << 20;
constexpr Nanos kMaxDelay = 1s;

Result<double> parse_loss(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 1) return value;
  return fail("the error rate must be a number from 0 to 1");
}

Result<Ns3Link> read_link(Ns3Words& words, uint32_t nodes, size_t& line) {
  Ns3Link link;
  auto a = words.number("the first node of a link", 0, nodes - 1);
  if (!a) return fail(a.error());
  auto b = words.number("the second node of a link", 0, nodes - 1);
  if (!b) return fail(b.error());
  link.a = static_cast<uint32_t>(*a);
  link.b = static_cast<uint32_t>(*b);
  auto word = words.next("the rate of a link");
  if (!word) return fail(word.error());
  line = word->line;
  auto rate = parse_ns3_rate(word->text);
  if (!rate) return fail(words.error(line, rate.error().message));
  if (rate->value() == 0) return fail(words.error(line, "the rate of a link must be above 0"));
  link.rate = *rate;
  word = words.next("the delay of a link");
  if (!word) return fail(word.error());
  auto delay = parse_ns3_time(word->text);
  if (!delay) return fail(words.error(word->line, delay.error().message));
  if (*delay <= Nanos{0} || *delay > kMaxDelay)
    return fail(words.error(word->line, "the delay of a link must be 1 ns to 1 s"));
  link.delay = *delay;
  word = words.next("the error rate of a link");
  if (!word) return fail(word.error());
  auto loss = parse_loss(word->text);
  if (!loss) return fail(words.error(word->line, loss.error().message));
  link.loss = *loss;
  return link;
}

// Checks the ends of a link with those before it.
class LinkRules {
 public:
  explicit LinkRules(const Ns3Topology& of) : of_(of) {}

  Status check(const Ns3Link& link) {
    if (link.a == link.b) return fail("link from node " + std::to_string(link.a) + " to itself");
    if (!of_.is_switch[link.a] && !of_.is_switch[link.b])
      return fail("link between the hosts " + std::to_string(link.a) + " and " + std::to_string(link.b) +
                  "; hosts must be connected to switches");
    for (const uint32_t node : {link.a, link.b}) {
      if (!of_.is_switch[node] && !hosts_.insert(node).second)
        return fail("host " + std::to_string(node) + " already has a link (max. 1)");
    }
    if (!pairs_.insert(std::minmax(link.a, link.b)).second)
      return fail("second link between the switches " + std::to_string(link.a) + " and " +
                  std::to_string(link.b) + "; the simulator uses only one of them");
    return {};
  }
  [[nodiscard]] bool has(uint32_t host) const { return hosts_.contains(host); }

 private:
  const Ns3Topology& of_;
  std::set<uint32_t> hosts_;  // with a link
  std::set<std::pair<uint32_t, uint32_t>> pairs_;
};

Status read_links(Ns3Words& words, uint64_t count, Ns3Topology& topology) {
  LinkRules rules(topology);
  for (uint64_t i = 0; i < count; ++i) {
    size_t line = 0;
    auto link = read_link(words, topology.nodes(), line);
    if (!link) return fail(link.error());
    if (Status good = rules.check(*link); !good) return fail(words.error(line, good.error().message));
    topology.links.push_back(*link);
  }
  for (uint32_t node = 0; node < topology.nodes(); ++node) {
    if (!topology.is_switch[node] && !rules.has(node))
      return fail(words.error(1, "host " + std::to_string(node) + " has no link"));
  }
  return {};
}

struct Neighbor {
  uint32_t node;
  const Ns3Link* link;
};
using Neighbors = std::vector<std::vector<Neighbor>>;

Neighbors neighbors_in(const Ns3Topology& topology) {
  Neighbors out(topology.nodes());
  for (const Ns3Link& link : topology.links) {
    out[link.a].push_back({link.b, &link});
    out[link.b].push_back({link.a, &link});
  }
  return out;
}

// Shortest paths by hops from `host` to all other hosts.
void add_round_trips(const Ns3Topology& topology, const Neighbors& neighbors, uint32_t host, uint64_t payload,
                     Ns3RoundTrip& longest) {
  struct Reached {
    uint64_t delay = 0, sending = 0, rate = UINT64_MAX;
    bool is = false;
  };
  std::vector<Reached> reached(topology.nodes());
  std::vector<uint32_t> open{host};
  reached[host].is = true;
  for (size_t at = 0; at < open.size(); ++at) {
    const Reached here = reached[open[at]];
    for (const Neighbor& next : neighbors[open[at]]) {
      if (reached[next.node].is) continue;
      const uint64_t rate = next.link->rate.value();
      const Reached there{here.delay + static_cast<uint64_t>(next.link->delay.count()),
                          here.sending + payload * 8'000'000'000 / rate, std::min(here.rate, rate), true};
      reached[next.node] = there;
      if (topology.is_switch[next.node]) {
        open.push_back(next.node);
        continue;
      }
      const uint64_t rtt = 2 * there.delay + there.sending;
      longest.rtt = std::max(longest.rtt, Nanos{static_cast<int64_t>(rtt)});
      const double bdp = static_cast<double>(rtt) * static_cast<double>(there.rate) / 8e9;
      longest.bdp = std::max(longest.bdp, static_cast<uint64_t>(bdp));
    }
  }
}

}  // namespace

BitsPerSec Ns3Topology::host_rate() const {
  uint32_t first = 0;
  while (first < nodes() && is_switch[first]) ++first;
  const auto found =
      std::ranges::find_if(links, [&](const Ns3Link& link) { return link.a == first || link.b == first; });
  return found == links.end() ? BitsPerSec{0} : found->rate;
}

Result<Ns3Topology> parse_ns3_topology(std::string_view text, const std::string& name) {
  Ns3Words words(text, name);
  auto nodes = words.number("the number of nodes", 3, kMaxNodes);
  if (!nodes) return fail(nodes.error());
  auto switches = words.number("the number of switches", 1, std::min<uint64_t>(kMaxSwitches, *nodes - 2));
  if (!switches) return fail(switches.error());
  auto links = words.number("the number of links", 2, kMaxLinks);
  if (!links) return fail(links.error());
  Ns3Topology out;
  out.is_switch.resize(*nodes);
  for (uint64_t i = 0; i < *switches; ++i) {
    auto number = words.number("the number of a switch", 0, *nodes - 1);
    if (!number) return fail(number.error());
    const auto node = static_cast<uint32_t>(*number);
    if (out.is_switch[node]) return fail(words.error(2, "duplicate switch " + std::to_string(node)));
    out.is_switch[node] = true;
    out.switches.push_back(node);
  }
  if (*nodes - *switches > kMaxHosts)
    return fail(words.error(1, std::to_string(*nodes - *switches) + " hosts; at most " +
                                   std::to_string(kMaxHosts) + " are allowed"));
  ROCI_TRY(read_links(words, *links, out));
  out.ignored_words = words.rest();
  return out;
}

std::string format_ns3_topology(const Ns3Topology& topology) {
  std::string out = std::to_string(topology.nodes()) + " " + std::to_string(topology.switches.size()) + " " +
                    std::to_string(topology.links.size()) + "\n";
  for (size_t i = 0; i < topology.switches.size(); ++i)
    out += (i == 0 ? "" : " ") + std::to_string(topology.switches[i]);
  out += "\n";
  for (const Ns3Link& link : topology.links) {
    out += std::to_string(link.a) + " " + std::to_string(link.b) + " " +
           ns3_rate(static_cast<double>(link.rate.value())) + " " + std::to_string(link.delay.count()) +
           "ns " + shortest_number(link.loss) + "\n";
  }
  return out;
}

Ns3RoundTrip longest_ns3_round_trip(const Ns3Topology& topology, uint64_t payload) {
  const Neighbors neighbors = neighbors_in(topology);
  Ns3RoundTrip longest;
  for (uint32_t node = 0; node < topology.nodes(); ++node)
    if (!topology.is_switch[node]) add_round_trips(topology, neighbors, node, payload, longest);
  return longest;
}

}  // namespace roci::lab
