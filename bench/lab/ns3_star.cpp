// The network of config/lab/incast.yaml in ns-3, for `./roci bench lab`: hosts at one switch, point-to-point links of
// 100 Gb/s and 1 us; the last host receives from all others. Three programs with a different amount of work in ns-3:
//   tcp   BulkSend over TCP and IPv4, one acknowledgment per segment
//   udp   OnOff over UDP and IPv4, each sender at its share of the receiver's line rate
//   bare  packets without a protocol between devices; the switch is a function that forwards them
// For tcp and udp the switch is an IPv4 router, as point-to-point links have no addresses that a bridge could learn. A
// packet has 1,106 bytes on the line, like one with 1,024 bytes of payload in the lab. With --each BYTES, every host
// instead sends BYTES to the next host over TCP. Prints lines of a name and a number.
#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kOnTheLine = 1106;                          // bytes per packet
constexpr double kLine = 100e9;                                // bit/s
constexpr uint32_t kPpp = 2, kIpv4 = 20, kUdp = 8, kTcp = 32;  // TCP with time stamps
constexpr uint16_t kPort = 9;
constexpr uint16_t kIpv4Protocol = 0x0800;  // of the bare frames: PPP supports only two

struct Options {
  std::string traffic;
  uint32_t hosts = 17;
  double milliseconds = 20;
  uint32_t each = 0;
};

// ns-3 passes packets to callbacks in smart pointers by value.
// NOLINTBEGIN(performance-unnecessary-value-param)

// Frames received by devices of hosts and of the switch.
uint64_t packet_hops = 0;
void count_hop(ns3::Ptr<const ns3::Packet>) { ++packet_hops; }

class Star {
 public:
  explicit Star(const Options& options) : options_(options) {
    hosts_.Create(options.hosts);
    switch_.Create(1);
    ns3::PointToPointHelper cable;
    cable.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(static_cast<uint64_t>(kLine))));
    cable.SetChannelAttribute("Delay", ns3::TimeValue(ns3::MicroSeconds(1)));
    cable.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("64MiB"));
    cable.DisableFlowControl();  // no traffic control queues above the device queues
    for (uint32_t host = 0; host < options.hosts; ++host) {
      const ns3::NetDeviceContainer ends = cable.Install(hosts_.Get(host), switch_.Get(0));
      at_host_.Add(ends.Get(0));
      at_switch_.Add(ends.Get(1));
      for (uint32_t end = 0; end < 2; ++end)
        ends.Get(end)->TraceConnectWithoutContext("MacRx", ns3::MakeCallback(&count_hop));
    }
  }

  void run() {
    if (options_.traffic == "bare") {
      send_bare();
    } else {
      address();
      options_.traffic == "tcp" ? send_tcp() : send_udp();
    }
    const ns3::Time duration = ns3::Seconds(options_.milliseconds * 1e-3);
    for (uint32_t i = 0; i < applications_.GetN(); ++i) applications_.Get(i)->SetStartTime(ns3::Seconds(0));
    ns3::Simulator::Stop(duration);
    ns3::Simulator::Run();
    for (uint32_t i = 0; i < sinks_.GetN(); ++i)
      received_ += ns3::DynamicCast<ns3::PacketSink>(sinks_.Get(i))->GetTotalRx();
    std::printf("packet_hops %llu\nreceived_gbps %.2f\ndropped %llu\n",
                static_cast<unsigned long long>(packet_hops),
                static_cast<double>(received_) * 8e-9 / duration.GetSeconds(),
                static_cast<unsigned long long>(dropped()));
  }

 private:
  [[nodiscard]] uint32_t last() const { return options_.hosts - 1; }

  // Assigns a subnet to each cable. Hosts have a default route; the switch is connected to all subnets.
  void address() {
    ns3::InternetStackHelper stack;
    ns3::Ipv4StaticRoutingHelper routing;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.Install(hosts_);
    stack.Install(switch_);
    ns3::Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    for (uint32_t host = 0; host < options_.hosts; ++host) {
      const ns3::Ipv4InterfaceContainer ends =
          addresses.Assign(ns3::NetDeviceContainer(at_host_.Get(host), at_switch_.Get(host)));
      routing.GetStaticRouting(ends.Get(0).first)->SetDefaultRoute(ends.GetAddress(1), ends.Get(0).second);
      address_.push_back(ends.GetAddress(0));
      addresses.NewNetwork();
    }
  }

  void receive(const char* protocol, uint32_t host) {
    const ns3::InetSocketAddress any(ns3::Ipv4Address::GetAny(), kPort);
    sinks_.Add(ns3::PacketSinkHelper(protocol, any).Install(hosts_.Get(host)));
  }

  void send_tcp() {
    constexpr uint32_t kSegment = kOnTheLine - kPpp - kIpv4 - kTcp;
    ns3::Config::SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(kSegment));
    ns3::Config::SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(1));
    const bool incast = options_.each == 0;
    if (incast) receive("ns3::TcpSocketFactory", last());
    for (uint32_t host = 0; host < (incast ? last() : options_.hosts); ++host) {
      const uint32_t to = incast ? last() : (host + 1) % options_.hosts;
      if (!incast) receive("ns3::TcpSocketFactory", to);
      ns3::BulkSendHelper sender("ns3::TcpSocketFactory", ns3::InetSocketAddress(address_[to], kPort));
      sender.SetAttribute("SendSize", ns3::UintegerValue(kSegment));
      sender.SetAttribute("MaxBytes", ns3::UintegerValue(options_.each));
      applications_.Add(sender.Install(hosts_.Get(host)));
    }
  }

  void send_udp() {
    constexpr uint32_t kDatagram = kOnTheLine - kPpp - kIpv4 - kUdp;
    receive("ns3::UdpSocketFactory", last());
    const double rate = kLine / last() * kDatagram / kOnTheLine;
    for (uint32_t host = 0; host < last(); ++host) {
      ns3::OnOffHelper sender("ns3::UdpSocketFactory", ns3::InetSocketAddress(address_[last()], kPort));
      sender.SetConstantRate(ns3::DataRate(static_cast<uint64_t>(rate)), kDatagram);
      applications_.Add(sender.Install(hosts_.Get(host)));
    }
  }

  void send_bare() {
    at_host_.Get(last())->SetReceiveCallback(ns3::MakeCallback(&Star::take_bare, this));
    for (uint32_t host = 0; host < last(); ++host) {
      at_switch_.Get(host)->SetReceiveCallback(ns3::MakeCallback(&Star::forward_bare, this));
      send_bare_from(host);
    }
  }
  void send_bare_from(uint32_t host) {
    const ns3::Ptr<ns3::NetDevice> device = at_host_.Get(host);
    device->Send(ns3::Create<ns3::Packet>(kOnTheLine - kPpp), device->GetBroadcast(), kIpv4Protocol);
    ns3::Simulator::Schedule(ns3::Seconds(kOnTheLine * 8 / kLine * last()), &Star::send_bare_from, this,
                             host);
  }
  bool forward_bare(ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet> packet, uint16_t protocol,
                    const ns3::Address&) {
    const ns3::Ptr<ns3::NetDevice> out = at_switch_.Get(last());
    return out->Send(packet->Copy(), out->GetBroadcast(), protocol);
  }
  bool take_bare(ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet> packet, uint16_t,
                 const ns3::Address&) {
    received_ += packet->GetSize();
    return true;
  }

  [[nodiscard]] uint64_t dropped() const {
    uint64_t sum = 0;
    for (const ns3::NetDeviceContainer* devices : {&at_host_, &at_switch_}) {
      for (uint32_t i = 0; i < devices->GetN(); ++i)
        sum += ns3::DynamicCast<ns3::PointToPointNetDevice>(devices->Get(i))
                   ->GetQueue()
                   ->GetTotalDroppedPackets();
    }
    return sum;
  }

  const Options& options_;
  ns3::NodeContainer hosts_, switch_;
  ns3::NetDeviceContainer at_host_, at_switch_;  // the two ends of each host's cable
  std::vector<ns3::Ipv4Address> address_;        // of the hosts
  ns3::ApplicationContainer applications_, sinks_;
  uint64_t received_ = 0;  // bytes
};
// NOLINTEND(performance-unnecessary-value-param)

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Star topology in ns-3; all hosts send to the last one.", "roci-lab-ns3"};
  Options options;
  app.add_option("traffic", options.traffic, "Traffic: tcp, udp or bare")
      ->required()
      ->check(CLI::IsMember({"tcp", "udp", "bare"}));
  app.add_option("--hosts", options.hosts, "Number of hosts, including the receiver")
      ->check(CLI::Range(2, 4096));
  app.add_option("--ms", options.milliseconds, "Virtual time in ms")->check(CLI::PositiveNumber);
  app.add_option("--each", options.each,
                 "Bytes from each host to the next one over TCP, instead of an incast");
  CLI11_PARSE(app, argc, argv);
  Star star(options);
  star.run();
  ns3::Simulator::Destroy();
  return 0;
}
