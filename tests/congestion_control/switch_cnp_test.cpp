// L3QCN: CNPs from a congested switch, compared with receivers that respond to its marks.
#include "congestion_control/settings.hpp"

namespace roci::test {
namespace {

constexpr uint64_t kThreshold = 100'000;  // bytes of queue

struct Reaction {
  Nanos first{0};  // from the start until a sender receives the first CNP
  uint64_t peak = 0, p99 = 0;
  double part = 0;
};
Reaction reaction(const std::string& name, bool by_switch, AqmConfig::MarkAt mark_at) {
  FanInOptions options;
  options.control = with_profile("dcqcn");
  options.extensions.source_qpn = true;  // identifies the sender's queue pair to the switch
  if (!by_switch) options.aqm = step_aqm(kThreshold);
  options.aqm.mark_at = mark_at;
  FanIn net(options, [&](SwitchConfig& config) {
    if (!by_switch) return;
    config.cnp.rate = 10'000'000;
    config.cnp.spacing = 4us;  // per queue pair, as in the receiver
    for (SwitchPortConfig& port : config.ports) {
      for (ClassConfig& one : port.classes) {
        one.notify = ClassConfig::Notify::kCnp;
        // Sample each frame: only then all 16 senders get CNPs as often as DCQCN expects from receivers. With one
        // frame in four their alpha, and so their cuts, are smaller.
        one.cnp = {.threshold = Bytes{kThreshold}, .sample = Bytes{1'000}};
      }
    }
  });
  const Nanos begin = net.runner.now();
  Reaction of;
  for (size_t i = 0; i < options.senders; ++i) {
    net.link(i).set_script(SimLink::kBToA, [&](const rte_mbuf& frame, uint64_t) {
      if (of.first == Nanos{0} && bytes_of(&frame)[42] == static_cast<uint8_t>(Opcode::kCnp))
        of.first = net.runner.now() + options.delay - begin;
      return SimVerdict{};
    });
  }
  net.take_queue();
  net.drive(kSlowMachine ? 4ms : 10ms);
  of.peak = FanIn::percentile(net.take_queue(), 1);
  of.part = net.measure(kSlowMachine ? 2ms : 5ms).sum / net.most_goodput();
  of.p99 = FanIn::percentile(net.take_queue(), 0.99);
  note(name + "_first_cnp_ns", of.first.count()), note(name + "_peak", of.peak);
  note(name + "_p99", of.p99), note(name + "_part", of.part);
  EXPECT_GT(of.first, Nanos{0});
  return of;
}

TEST(SwitchCnp, arrives_half_a_round_trip_before_receiver_cnp) {
  const Reaction direct = reaction("switch", true, AqmConfig::MarkAt::kEnqueue);
  const Reaction early = reaction("receiver_marked_last", false, AqmConfig::MarkAt::kDequeue);
  const Reaction late = reaction("receiver_marked_first", false, AqmConfig::MarkAt::kEnqueue);
  EXPECT_LE(direct.first + 2100ns, early.first);
  EXPECT_LE(direct.first + 2100ns, late.first) << "the mark waits in the queue that it tells of";
  EXPECT_LE(direct.peak, early.peak * 11 / 10);
  if (kSlowMachine) return;  // the initial queue has not drained yet
  EXPECT_LE(direct.p99, early.p99 * 11 / 10);
  EXPECT_GE(direct.part, early.part * 0.97);
}

}  // namespace
}  // namespace roci::test
