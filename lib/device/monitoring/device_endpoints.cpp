#include "device/monitoring/device_endpoints.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>

#include "device/monitoring/queue_pair_report.hpp"
#include "telemetry/rdma_statistic.hpp"
#include "transport/queue_pair/qp_transitions.hpp"

namespace roci {
namespace {

constexpr uint32_t kNoQpn = 0x1000000;  // above all QPNs
// More rows than fit into one answer.
constexpr size_t kActivitiesAPage = 512, kQueuePairsAPage = 128;
constexpr size_t kReportsAhead = 32;  // created before it is known whether they fit
constexpr size_t kMaxGids = 64;

// "QPN" or "QPN/responses".
constexpr std::string_view kResponses = "/responses";
std::string flow_name(uint32_t qp_num, bool responses) {
  return std::to_string(qp_num) + std::string(responses ? kResponses : "");
}

Result<uint32_t> number_of(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size())
    return fail("'" + std::string(text) + "' is not a number");
  return number;
}

// Index or number of the first row; 0 if omitted.
Result<uint32_t> first_of(std::string_view parameters) {
  if (parameters.empty()) return 0U;
  return number_of(parameters);
}

// Removes the text up to the next comma, and the comma, from the parameters.
std::string_view take_word(std::string_view& parameters) {
  const std::string_view word = parameters.substr(0, parameters.find(','));
  parameters.remove_prefix(std::min(word.size() + 1, parameters.size()));
  return word;
}

uint64_t limit_or_nothing(double limit) {
  return limit < 0 ? 0 : std::max<uint64_t>(1, static_cast<uint64_t>(limit));
}

TelemetryMap row_of(const QueuePairReport& report) {
  const CongestionFlowReport& flow = report.flow;
  return {{"qpn", uint64_t{flow.qp_num}},
          {"responses", uint64_t{flow.responses}},
          {"type", qp_type_name(report.type)},
          {"state", std::string(qp_state_name(report.state))},
          {"peer", report.peer},
          {"peer_qpn", uint64_t{report.peer_qp_num}},
          {"send_psn", uint64_t{report.send_psn}},
          {"sent_packets", flow.sent_packets},
          {"sent_bytes", flow.sent_bytes},
          {"acked_bytes", report.acked_bytes},
          {"received_packets", report.received_packets},
          {"received_bytes", report.received_bytes},
          {"profile", flow.profile},
          {"algorithm", flow.algorithm},
          {"cc_state", flow.state},
          {"cc_reason", flow.last_reason},
          {"rate", limit_or_nothing(flow.rate)},
          {"window", limit_or_nothing(flow.window)},
          {"gap_ns", flow.gap},
          {"in_flight", flow.in_flight},
          {"rtt_ns", flow.rtt},
          {"least_rtt_ns", flow.least_rtt},
          {"acked_packets", flow.acked_packets},
          {"marked_packets", flow.marked_packets},
          {"rp_cnp_handled", flow.cnps},
          {"cnms", flow.cnms},
          {"telemetry", flow.telemetry},
          {"losses", flow.losses},
          {"timeouts", flow.timeouts}};
}

// Adds rows for queue pairs. Returns the index in `numbers` of the first one that did not fit.
size_t add_queue_pairs(Host& host, std::span<const uint32_t> numbers, TelemetryTable& table) {
  for (size_t done = 0; done < numbers.size(); done += kReportsAhead) {
    const auto piece = numbers.subspan(done, std::min(kReportsAhead, numbers.size() - done));
    const std::vector<QueuePairReport> reports = report_queue_pairs(host, piece);
    for (auto from = reports.begin(); from != reports.end();) {
      const uint32_t number = from->flow.qp_num;
      std::vector<TelemetryMap> rows;  // of one queue pair; added together
      for (; from != reports.end() && from->flow.qp_num == number; ++from) rows.push_back(row_of(*from));
      if (!table.add(rows))
        return done + static_cast<size_t>(std::ranges::find(piece, number) - piece.begin());
    }
  }
  return numbers.size();
}

// Start of the page after the one that contains the first `fitted` of `numbers`; at most `most` numbers had been
// requested.
uint64_t next_of(std::span<const uint32_t> numbers, size_t fitted, size_t most) {
  if (fitted < numbers.size()) return numbers[fitted];
  return numbers.size() < most ? 0 : numbers.back() + 1;
}

void add_limit(TelemetryMap& out, const std::string& name, double limit) {
  if (limit < 0) {
    out.emplace_back(name, std::string("no limit"));
  } else {
    out.emplace_back(name, static_cast<uint64_t>(limit));
  }
}

std::vector<std::string> controlled_flows(Host& host) {
  std::vector<std::string> names;
  for (const auto& [number, directions] : queue_pair_flows(host, queue_pair_numbers(host, 0, kNoQpn))) {
    for (const uint32_t direction : {ROCI_CC_REQUESTS, ROCI_CC_RESPONSES}) {
      if ((directions >> direction & 1U) != 0)
        names.push_back(flow_name(number, direction == ROCI_CC_RESPONSES));
    }
  }
  return names;
}

std::optional<CongestionFlowReport> find_flow(Host& host, std::string_view name) {
  const bool responses = name.ends_with(kResponses);
  const auto number = number_of(name.substr(0, name.size() - (responses ? kResponses.size() : 0)));
  if (!number || *number >= kNoQpn) return std::nullopt;
  Worker& worker = host.worker_of(Qpn{*number});
  const std::scoped_lock guard(worker.token());
  AttachedQueuePair* qp = worker.find(Qpn{*number});
  if (qp == nullptr) return std::nullopt;
  std::vector<CongestionFlowReport> flows;
  CongestionControl::report(*qp, flows);
  for (CongestionFlowReport& flow : flows) {
    if (flow.responses == responses) return std::move(flow);
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<DeviceEndpoints>> DeviceEndpoints::open(std::vector<Device*> devices) {
  std::unique_ptr<DeviceEndpoints> made(new DeviceEndpoints(std::move(devices)));
  DeviceEndpoints* const self = made.get();
  using Answer = Result<TelemetryAnswer> (DeviceEndpoints::*)(std::string_view) const;
  struct Question {
    const char* command;
    const char* help;
    Answer answer;
  };
  const Question questions[] = {
      {"/roci/device/counters", "Counters of a device. Parameters: device[,first]",
       &DeviceEndpoints::counters},
      {"/roci/device/statistic", "Counters with the names of 'rdma statistic'. Parameters: device",
       &DeviceEndpoints::statistic},
      {"/roci/device/info", "Values of the whole device. Parameters: device", &DeviceEndpoints::info},
      {"/roci/device/states", "Queue pairs by type and state. Parameters: device", &DeviceEndpoints::states},
      {"/roci/device/activity", "State and progress of queue pairs. Parameters: device[,first QPN]",
       &DeviceEndpoints::activity},
      {"/roci/device/queue_pairs", "All values of queue pairs. Parameters: device[,first QPN]",
       &DeviceEndpoints::queue_pairs},
      {"/roci/device/queue_pair", "All values of the given queue pairs. Parameters: device,QPN[,QPN...]",
       &DeviceEndpoints::queue_pair},
      {"/roci/device/flows", "Flows under congestion control. Parameters: device[,first]",
       &DeviceEndpoints::flows},
      {"/roci/device/flow", "Congestion control state of a flow. Parameters: device,flow",
       &DeviceEndpoints::flow},
  };
  auto list = Endpoint::open("/roci/device/list", "Names of devices. No parameters",
                             [self](std::string_view) { return self->list(); });
  if (!list) return fail(list.error());
  made->endpoints_.push_back(std::move(*list));
  for (const Question& question : questions) {
    auto endpoint =
        Endpoint::open(question.command, question.help,
                       [self, answer = question.answer](std::string_view p) { return (self->*answer)(p); });
    if (!endpoint) return fail(endpoint.error());
    made->endpoints_.push_back(std::move(*endpoint));
  }
  return made;
}

Result<DeviceEndpoints::Page> DeviceEndpoints::take_page(std::string_view parameters, size_t most) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  auto first = first_of(parameters);
  if (!first) return fail(first.error());
  Host& host = (*device)->host();
  Page page{&host, queue_pair_numbers(host, *first, most), {}};
  page.table.facts = {{"queue_pairs", uint64_t{host.queue_pairs()}}, {"next", uint64_t{0}}};
  return page;
}

Result<Device*> DeviceEndpoints::take_device(std::string_view& parameters) const {
  const std::string_view name = take_word(parameters);
  for (Device* device : devices_) {
    if (device->name() == name) return device;
  }
  std::string names;
  for (const Device* device : devices_) names += (names.empty() ? "" : ", ") + device->name();
  return fail("unknown device '" + std::string(name) + "'; available are " + names);
}

Result<TelemetryAnswer> DeviceEndpoints::list() const {
  TelemetryList names;
  for (const Device* device : devices_) names.push_back(device->name());
  return TelemetryAnswer{std::move(names)};
}

Result<TelemetryAnswer> DeviceEndpoints::counters(std::string_view parameters) const {
  constexpr size_t kMax = 200;  // below DPDK's limit of 256 entries per map
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  auto first = first_of(parameters);
  if (!first) return fail(first.error());
  TelemetryMap out;
  const auto all = (*device)->counters();
  for (size_t i = *first; i < all.size() && out.size() < kMax; ++i)
    out.emplace_back(all[i].first, all[i].second);
  return TelemetryAnswer{std::move(out)};
}

Result<TelemetryAnswer> DeviceEndpoints::statistic(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  const Host& host = (*device)->host();
  TelemetryMap out;
  for (const RdmaStatistic& statistic : rdma_statistics()) {
    uint64_t sum = 0;
    for (const Counter counter : statistic.of) sum += counter == Counter::kCount ? 0 : host.counter(counter);
    out.emplace_back(std::string(statistic.name), sum);
  }
  return TelemetryAnswer{std::move(out)};
}

Result<TelemetryAnswer> DeviceEndpoints::info(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  Host& host = (*device)->host();
  const DeviceConfig& config = host.config();
  const ibv_port_attr port = (*device)->query_port();
  std::string addresses;
  for (const std::string& address : config.addresses) addresses += (addresses.empty() ? "" : ", ") + address;
  const PortStats stats = host.port().stats();
  TelemetryMap out{{"name", config.name},
                   {"mac", host.mac().to_string()},
                   {"addresses", addresses},
                   {"mtu", uint64_t{host.port_mtu()}},
                   {"path_mtu", uint64_t{128} << port.active_mtu},
                   {"link_up", uint64_t{port.state == IBV_PORT_ACTIVE}},
                   {"link_rate", host.port().capabilities().link_rate.value()},
                   {"workers", uint64_t{host.workers()}},
                   {"control_cores", uint64_t{host.control_cores().size()}},
                   {"queue_pairs", uint64_t{host.queue_pairs()}},
                   {"max_qp", uint64_t{config.max_qp}},
                   {"port/rx_packets", stats.rx_packets.load()},
                   {"port/rx_bytes", stats.rx_bytes.load()},
                   {"port/tx_packets", stats.tx_packets.load()},
                   {"port/tx_bytes", stats.tx_bytes.load()},
                   {"port/tx_refused", stats.tx_refused.load()},
                   {"port/tx_dropped", stats.tx_dropped.load()},
                   {"port/rx_dropped", stats.rx_dropped.load()}};
  for (const Port::Detail& detail : host.port().details())
    out.emplace_back(std::string{"port/"} + detail.name, detail.value);
  const std::vector<Gid>& gids = host.gids();
  for (size_t i = 0; i < std::min(gids.size(), kMaxGids); ++i)
    out.emplace_back("gid/" + std::to_string(i), gids[i].to_string());
  return TelemetryAnswer{std::move(out)};
}

Result<TelemetryAnswer> DeviceEndpoints::states(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  Host& host = (*device)->host();
  constexpr std::array kTypes = {IBV_QPT_RC,       IBV_QPT_UC,       IBV_QPT_UD,
                                 IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET};
  std::array<uint64_t, kTypes.size()> types{};
  std::array<uint64_t, IBV_QPS_ERR + 1> states{};
  for (const QueuePairActivity& qp : queue_pair_activity(host, queue_pair_numbers(host, 0, kNoQpn))) {
    for (size_t i = 0; i < kTypes.size(); ++i) types[i] += qp.type == kTypes[i] ? 1 : 0;
    ++states[qp.state];
  }
  TelemetryMap out;
  for (size_t i = 0; i < kTypes.size(); ++i) out.emplace_back(qp_type_name(kTypes[i]), types[i]);
  for (size_t i = 0; i < states.size(); ++i)
    out.emplace_back(std::string(qp_state_name(static_cast<ibv_qp_state>(i))), states[i]);
  return TelemetryAnswer{std::move(out)};
}

Result<TelemetryAnswer> DeviceEndpoints::activity(std::string_view parameters) const {
  auto page = take_page(parameters, kActivitiesAPage);
  if (!page) return fail(page.error());
  uint64_t next = next_of(page->numbers, page->numbers.size(), kActivitiesAPage);
  for (const QueuePairActivity& qp : queue_pair_activity(*page->host, page->numbers)) {
    const TelemetryMap row{{"qpn", uint64_t{qp.qp_num}},
                           {"state", std::string(qp_state_name(qp.state))},
                           {"psns", uint64_t{qp.psns}}};
    if (page->table.add({&row, 1})) continue;
    next = qp.qp_num;
    break;
  }
  page->table.facts[1].second = next;
  return TelemetryAnswer{std::move(page->table)};
}

Result<TelemetryAnswer> DeviceEndpoints::queue_pairs(std::string_view parameters) const {
  auto page = take_page(parameters, kQueuePairsAPage);
  if (!page) return fail(page.error());
  const size_t fitted = add_queue_pairs(*page->host, page->numbers, page->table);
  page->table.facts[1].second = next_of(page->numbers, fitted, kQueuePairsAPage);
  return TelemetryAnswer{std::move(page->table)};
}

Result<TelemetryAnswer> DeviceEndpoints::queue_pair(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  std::vector<uint32_t> numbers;
  while (!parameters.empty()) {
    const auto number = number_of(take_word(parameters));
    if (!number) return fail(number.error());
    if (*number >= kNoQpn) return fail(std::to_string(*number) + " is not a queue pair number");
    numbers.push_back(*number);
  }
  TelemetryTable table;
  table.facts = {{"next", uint64_t{0}}};
  const size_t fitted = add_queue_pairs((*device)->host(), numbers, table);
  table.facts[0].second = uint64_t{fitted < numbers.size() ? fitted : 0};
  return TelemetryAnswer{std::move(table)};
}

Result<TelemetryAnswer> DeviceEndpoints::flows(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  auto first = first_of(parameters);
  if (!first) return fail(first.error());
  return TelemetryAnswer{telemetry_page(controlled_flows((*device)->host()), *first)};
}

Result<TelemetryAnswer> DeviceEndpoints::flow(std::string_view parameters) const {
  auto device = take_device(parameters);
  if (!device) return fail(device.error());
  const auto found = find_flow((*device)->host(), parameters);
  if (!found) return fail("unknown flow '" + std::string(parameters) + "' of device " + (*device)->name());
  const CongestionFlowReport& flow = *found;
  TelemetryMap out{{"profile", flow.profile},         {"algorithm", flow.algorithm},   {"state", flow.state},
                   {"last_reason", flow.last_reason}, {"last_event", flow.last_event}, {"gap_ns", flow.gap}};
  add_limit(out, "rate", flow.rate);
  add_limit(out, "window", flow.window);
  for (const auto& [name, value] : numbers_of(flow)) out.emplace_back(name, value);
  for (const auto& [name, value] : flow.states) out.emplace_back("state_ns/" + name, value);
  for (const auto& [name, value] : flow.reasons) out.emplace_back("reason/" + name, value);
  return TelemetryAnswer{std::move(out)};
}

}  // namespace roci
