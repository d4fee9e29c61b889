#include "lab/exchange/ns3_flows.hpp"

#include "lab/exchange/ns3_words.hpp"
#include "lab/traffic/flow_list.hpp"

namespace roci::lab {
namespace {

constexpr uint64_t kNs3Priorities = 8;

// Reads the words of a flow in their order.
class FlowWords {
 public:
  FlowWords(const std::vector<Ns3Word>& words, const Ns3Topology& topology)
      : words_(words), topology_(topology) {}

  Status host(const char* what, uint32_t& out) {
    uint64_t node = 0;
    ROCI_TRY(number(what, 0, topology_.nodes() - 1, node));
    if (topology_.is_switch[node])
      return fail(std::string(what) + ": node " + std::to_string(node) + " is a switch");
    out = static_cast<uint32_t>(node);
    return {};
  }
  Status number(const char* what, uint64_t low, uint64_t high, uint64_t& out) {
    auto value = parse_ns3_number(words_[at_++].text, low, high);
    if (!value) return fail(std::string(what) + ": " + value.error().message);
    out = *value;
    return {};
  }
  Status time(Nanos& out) {
    auto value = parse_ns3_time(words_[at_++].text);
    if (!value) return fail("start: " + value.error().message);
    out = *value;
    return {};
  }

 private:
  const std::vector<Ns3Word>& words_;
  const Ns3Topology& topology_;
  size_t at_ = 0;
};

Status read_flow(const std::vector<Ns3Word>& words, const Ns3Topology& topology, Ns3Flow& flow) {
  constexpr size_t kWithPort = 6, kWithoutPort = 5;
  if (words.size() != kWithPort && words.size() != kWithoutPort)
    return fail(std::to_string(words.size()) +
                " words; sender, receiver, priority, port (optional), bytes and start are required");
  FlowWords reader(words, topology);
  uint64_t priority = 0, port = flow.port;
  ROCI_TRY(reader.host("sender", flow.from));
  ROCI_TRY(reader.host("receiver", flow.to));
  if (flow.from == flow.to) return fail("the sender is the receiver; two hosts are required");
  ROCI_TRY(reader.number("priority", 0, kNs3Priorities - 1, priority));
  if (words.size() == kWithPort) ROCI_TRY(reader.number("destination port", 0, UINT16_MAX, port));
  ROCI_TRY(reader.number("bytes", 1, kMaxNs3Bytes, flow.bytes));
  ROCI_TRY(reader.time(flow.start));
  flow.priority = static_cast<uint8_t>(priority);
  flow.port = static_cast<uint16_t>(port);
  return {};
}

}  // namespace

Result<Ns3Flows> parse_ns3_flows(std::string_view text, const std::string& name,
                                 const Ns3Topology& topology) {
  Ns3Words words(text, name);
  auto count = words.number("the number of flows", 1, kMaxListedFlows);
  if (!count) return fail(count.error());
  Ns3Flows out;
  for (uint64_t i = 0; i < *count; ++i) {
    const auto line = words.line();
    if (line.empty())
      return fail(words.error(
          1, std::to_string(*count) + " flows are specified, but the file has " + std::to_string(i)));
    if (Status read = read_flow(line, topology, out.flows.emplace_back()); !read)
      return fail(words.error(line.front().line, read.error().message));
  }
  out.ignored_words = words.rest();
  return out;
}

std::string format_ns3_flows(const std::vector<Ns3Flow>& flows) {
  std::string out = std::to_string(flows.size()) + "\n";
  for (const Ns3Flow& flow : flows) {
    out += std::to_string(flow.from) + " " + std::to_string(flow.to) + " " +
           std::to_string(int{flow.priority}) + " " + std::to_string(flow.port) + " " +
           std::to_string(flow.bytes) + " " + ns3_seconds(flow.start) + "\n";
  }
  return out;
}

}  // namespace roci::lab
