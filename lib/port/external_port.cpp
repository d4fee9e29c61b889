#include "port/external_port.hpp"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <utility>
#include <vector>

namespace roci {
namespace {

constexpr uint16_t kMinExternalMtu = 576;  // as in configuration files
// A packet buffer has at most 65,535 bytes.
constexpr uint16_t kMaxExternalMtu =
    UINT16_MAX - RTE_PKTMBUF_HEADROOM - sizeof(EthernetHeader) - 2 * sizeof(VlanHeader);
static_assert(kMaxExternalMtu == 65'385, "as documented in roci/port.hpp");

// Whether a program cannot use the packet buffers of this library, because it contains a DPDK of its own: the portable
// archive.
#ifdef ROCI_PORTABLE
constexpr bool kHasPrivateDpdk = true;
#else
constexpr bool kHasPrivateDpdk = false;
#endif

auto no_shared_buffers(const std::string& name) {
  return fail(name + ": this build contains a DPDK of its own, with which a program cannot share packet " +
                  "buffers; ports of a program require a build with shared DPDK libraries",
              EOPNOTSUPP);
}

// Factories of the process.
struct Factories {
  std::mutex mutex;
  std::vector<std::pair<std::string, PortFactory>> entries;
};
Factories& factories() {
  static Factories instance;
  return instance;
}

class AdaptedPort final : public Port {
 public:
  AdaptedPort(std::unique_ptr<ExternalPort> port, std::string name, std::shared_ptr<MbufPool> buffers)
      : buffers_(std::move(buffers)), port_(std::move(port)), name_(std::move(name)), mac_{port_->mac()} {
    const ExternalPort::Capabilities from = port_->capabilities();
    capabilities_.mtu = from.mtu;
    capabilities_.link_rate = BitsPerSec{from.link_rate};
    capabilities_.needs_icrc = from.needs_icrc;
    capabilities_.tx_multi_segment = true;
  }

  uint16_t rx_burst(std::span<rte_mbuf*> out, Nanos /*now*/) override {
    const uint16_t received =
        port_->receive(out.data(), static_cast<uint16_t>(std::min<size_t>(out.size(), UINT16_MAX)));
    uint16_t kept = 0;
    uint64_t bytes = 0;
    for (rte_mbuf* frame : out.first(received)) {
      if (exceeds_mtu(*frame, capabilities_.mtu)) {
        rte_pktmbuf_free(frame);
        bump(stats_.rx_dropped);
        continue;
      }
      bytes += frame->pkt_len;
      out[kept++] = frame;
    }
    bump(stats_.rx_packets, kept);
    bump(stats_.rx_bytes, bytes);
    return kept;
  }

  uint16_t tx_burst(std::span<rte_mbuf*> frames, Nanos /*now*/) override {
    size_t done = 0;
    while (done < frames.size()) {
      if (exceeds_mtu(*frames[done], capabilities_.mtu)) {
        rte_pktmbuf_free(frames[done++]);
        bump(stats_.tx_dropped);
        continue;
      }
      const auto rest = frames.subspan(done, std::min<size_t>(frames.size() - done, UINT16_MAX));
      const auto end = std::ranges::find_if(
          rest, [&](const rte_mbuf* frame) { return exceeds_mtu(*frame, capabilities_.mtu); });
      const auto batch = rest.first(static_cast<size_t>(end - rest.begin()));
      uint64_t bytes = 0;
      for (const rte_mbuf* frame : batch) bytes += frame->pkt_len;
      const uint16_t accepted = port_->transmit(batch.data(), static_cast<uint16_t>(batch.size()));
      for (const rte_mbuf* refused : batch.subspan(accepted)) bytes -= refused->pkt_len;
      bump(stats_.tx_packets, accepted);
      bump(stats_.tx_bytes, bytes);
      done += accepted;
      if (accepted < batch.size()) break;
    }
    if (done < frames.size()) bump(stats_.tx_refused, frames.size() - done);
    return static_cast<uint16_t>(done);
  }

  [[nodiscard]] Nanos next_arrival() const override { return Nanos{0}; }
  [[nodiscard]] const PortCapabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] MacAddress mac() const override { return mac_; }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] PortStats stats() const override { return stats_; }
  [[nodiscard]] bool link_up() const override { return port_->link_up(); }

 private:
  const std::shared_ptr<MbufPool> buffers_;  // of received frames; outlives the port
  const std::unique_ptr<ExternalPort> port_;
  const std::string name_;
  const MacAddress mac_;
  PortCapabilities capabilities_;
  PortStats stats_;
};

}  // namespace

Result<std::unique_ptr<Port>> adapt_port(std::unique_ptr<ExternalPort> port, std::string name,
                                         std::shared_ptr<MbufPool> buffers) {
  if (kHasPrivateDpdk) return no_shared_buffers("port " + name);
  const uint16_t mtu = port->capabilities().mtu;
  if (mtu < kMinExternalMtu)
    return fail("port " + name + ": MTU " + std::to_string(mtu) + " is too small; at least " +
                std::to_string(kMinExternalMtu) + " bytes");
  if (mtu > kMaxExternalMtu)
    return fail("port " + name + ": MTU " + std::to_string(mtu) + " is too large; at most " +
                std::to_string(kMaxExternalMtu) + " bytes");
  return std::make_unique<AdaptedPort>(std::move(port), std::move(name), std::move(buffers));
}

PortFactory find_port_factory(std::string_view device) {
  const std::lock_guard lock(factories().mutex);
  for (const auto& [prefix, factory] : factories().entries) {
    if (device.starts_with(prefix)) return factory;
  }
  return nullptr;
}

Status register_port(const std::string& prefix, PortFactory factory) {
  const bool is_name =
      std::ranges::all_of(prefix, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  if (prefix.empty() || !is_name || prefix.starts_with("net_"))
    return fail("'" + prefix +
                "' cannot be a prefix of port names: it must consist of letters, digits and '_', and not " +
                "start with 'net_' as DPDK's drivers");
  if (kHasPrivateDpdk) return no_shared_buffers("port " + prefix);
  if (!factory) return fail("the factory of ports '" + prefix + "' is empty");
  const std::lock_guard lock(factories().mutex);
  for (const auto& [other, _] : factories().entries) {
    if (other.starts_with(prefix) || prefix.starts_with(other))
      return fail("port names with '" + prefix + "' already belong to the factory of '" + other + "'",
                  EEXIST);
  }
  factories().entries.emplace_back(prefix, std::move(factory));
  return {};
}

}  // namespace roci
