#include "port/port_config.hpp"

#include <array>
#include <cstdio>

namespace roci {
namespace {

// Limits of EthdevPort: the packet size that every IPv4 host accepts (RFC 791), and the jumbo frames of common NICs.
constexpr uint16_t kMinConfiguredMtu = 576;
constexpr uint16_t kLargestMtu = 9600;

// EAL counts memory in MiB.
Result<uint32_t> parse_memory(std::string_view text) {
  constexpr uint64_t kMiB = 1U << 20;
  constexpr uint64_t kMaxMiB = 1U << 20;
  const auto bytes = parse_bytes(text);
  if (!bytes) return fail(bytes.error());
  if (bytes->value() % kMiB != 0 || bytes->value() == 0 || bytes->value() / kMiB > kMaxMiB) {
    return fail("'" + std::string{text} + "' is not a whole number of MiB from 1MiB to 1TiB");
  }
  return static_cast<uint32_t>(bytes->value() / kMiB);
}

Result<std::string> parse_device(std::string_view text) {
  if (text.empty() || text.front() == ',') {
    return fail("'" + std::string{text} +
                "' is not a device; examples: net_af_packet0,iface=veth0 and 0000:01:00.0");
  }
  return std::string{text};
}

Result<Nanos> parse_fault_delay(std::string_view text) {
  auto delay = parse_duration(text);
  if (delay && *delay > kMaxFaultDelay)
    return fail("'" + std::string{text} + "' exceeds the maximum delay of 1s");
  return delay;
}

}  // namespace

Status read_eal(ConfigNode& root, EalConfig& config) {
  return root.section("eal", Need::kOptional, [&](ConfigNode& node) -> Status {
    ROCI_TRY(node.optional(
        "hugepages", config.hugepages,
        one_of<Hugepages>(
            {{"auto", Hugepages::kAuto}, {"off", Hugepages::kOff}, {"require", Hugepages::kRequire}})));
    ROCI_TRY(node.optional("pci", config.pci));
    ROCI_TRY(node.optional("memory", config.memory_mib, parse_memory));
    ROCI_TRY(node.optional("share_buffers", config.share_buffers));
    ROCI_TRY(node.optional("telemetry", config.telemetry));
    return node.optional_list("args", config.extra_args);
  });
}

Status read_device(ConfigNode& node, EthdevConfig& config) {
  const auto descriptors = integer_in<uint16_t>(32, 32768);
  ROCI_TRY(node.required("device", config.device, parse_device));
  ROCI_TRY(node.optional("mtu", config.mtu, integer_in<uint16_t>(kMinConfiguredMtu, kLargestMtu)));
  ROCI_TRY(node.optional("rx_descriptors", config.rx_descriptors, descriptors));
  ROCI_TRY(node.optional("tx_descriptors", config.tx_descriptors, descriptors));
  ROCI_TRY(node.optional("connect_timeout", config.connect_timeout));
  return node.optional("mac", config.mac, [](std::string_view text) -> Result<std::optional<MacAddress>> {
    auto mac = MacAddress::parse(text);
    if (!mac) return fail(std::move(mac).error());
    return std::optional{*mac};
  });
}

Status read_faults(ConfigNode& node, PortFaults& faults) {
  ROCI_TRY(node.optional("loss", faults.loss, number_in(0, 1)));
  ROCI_TRY(node.optional("corrupt", faults.corruption, number_in(0, 1)));
  ROCI_TRY(node.optional("duplicate", faults.duplication, number_in(0, 1)));
  ROCI_TRY(node.optional("reorder", faults.reordering, number_in(0, 1)));
  ROCI_TRY(node.optional("delay", faults.delay, parse_fault_delay));
  return node.optional("down", faults.down);
}

std::string faults_text(const PortFaults& faults) {
  std::array<char, 192> text;
  std::snprintf(text.data(), text.size(),
                "loss: %.17g, corrupt: %.17g, duplicate: %.17g, reorder: %.17g, delay: %lldns, down: %s",
                faults.loss, faults.corruption, faults.duplication, faults.reordering,
                static_cast<long long>(faults.delay.count()), faults.down ? "true" : "false");
  return text.data();
}

std::string describe(const PortFaults& faults) {
  std::string out;
  const auto add = [&out](const char* name, const char* unit, double value) {
    std::array<char, 48> text;
    std::snprintf(text.data(), text.size(), "%s %g%s", name, value, unit);
    out += (out.empty() ? "" : ", ") + std::string{text.data()};
  };
  if (faults.loss > 0) add("loss", "", faults.loss);
  if (faults.corruption > 0) add("corrupt", "", faults.corruption);
  if (faults.duplication > 0) add("duplicate", "", faults.duplication);
  if (faults.reordering > 0) add("reorder", "", faults.reordering);
  if (faults.delay > Nanos{0}) add("delay", "us", static_cast<double>(faults.delay.count()) * 1e-3);
  if (faults.down) out += out.empty() ? "down" : ", down";
  return out.empty() ? "none" : out;
}

Status read_idle(ConfigNode& node, IdlePolicy& idle) {
  return node.optional(
      "idle", idle,
      one_of<IdlePolicy>(
          {{"spin", IdlePolicy::kSpin}, {"yield", IdlePolicy::kYield}, {"sleep", IdlePolicy::kSleep}}));
}

}  // namespace roci
