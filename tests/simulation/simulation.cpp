#include "simulation/simulation.hpp"

#include <memory>
#include <vector>

#include "simulation/scenario/network.hpp"
#include "simulation/traffic/datagrams.hpp"
#include "simulation/traffic/reliable.hpp"
#include "simulation/traffic/shared_pool.hpp"
#include "simulation/traffic/unreliable.hpp"

namespace roci::test {
namespace {

constexpr Nanos kLimit = 600s;  // of virtual time; a longer run is considered to hang

class Simulation : public Poller {
 public:
  Simulation(const Scenario& scenario, uint64_t seed)
      : scenario_(scenario), rng_(~seed), verifier_(runner_) {}
  SimulationResult run();

 private:
  // Runs all applications at random times.
  bool poll(Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override { return next_action_; }
  [[nodiscard]] std::string_view name() const override { return "applications"; }
  void build();
  void pair_with_linux(uint32_t connection, size_t& from, size_t& to);
  [[nodiscard]] bool finished() const;
  void play();

  Scenario scenario_;
  Rng rng_;
  VirtualRunner runner_;
  Verifier verifier_;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<SharedPool>> pools_;  // one per host, or none
  std::vector<std::unique_ptr<Actor>> actors_;
  Nanos next_action_{0};
};

void Simulation::build() {
  runner_.add(*this);
  network_ = std::make_unique<Network>(scenario_, rng_.fork(), runner_, verifier_);
  const size_t hosts = network_->hosts();
  for (size_t i = 0; i < hosts && scenario_.shared_receives; ++i)
    pools_.push_back(network_->linux_host(i) != nullptr
                         ? nullptr
                         : std::make_unique<SharedPool>(*network_, i, rng_.fork(), verifier_, kSlotBytes));
  const auto pool = [&](size_t host) {
    return pools_.empty() || pools_[host] == nullptr ? nullptr : &pools_[host]->receives;
  };
  for (uint32_t i = 0; i < scenario_.reliable; ++i) {
    size_t from = rng_.below(hosts);
    size_t to = (from + 1 + rng_.below(hosts - 1)) % hosts;
    pair_with_linux(i, from, to);
    actors_.push_back(std::make_unique<ReliableConnection>(*network_, scenario_, rng_.fork(), verifier_,
                                                           std::array{from, to},
                                                           std::array{pool(from), pool(to)}));
  }
  for (uint32_t i = 0; i < scenario_.unreliable; ++i) {
    const size_t from = rng_.below(hosts);
    const size_t to = (from + 1 + rng_.below(hosts - 1)) % hosts;
    actors_.push_back(std::make_unique<UnreliableConnection>(*network_, scenario_, rng_.fork(), verifier_,
                                                             std::array{from, to}));
  }
  if (scenario_.datagrams)
    actors_.push_back(std::make_unique<Datagrams>(*network_, scenario_, rng_.fork(), verifier_));
}

// With Linux hosts, which are the hosts from 1 on, host 0 has a connection to one of them, and one to a Rocinante host
// if there is another. No connection is between two Linux hosts.
void Simulation::pair_with_linux(uint32_t connection, size_t& from, size_t& to) {
  const size_t last = network_->hosts() - 1;
  if (network_->linux_host(1) == nullptr) return;
  if (connection == 0) {
    from = 0;
    to = 1;
  } else if (connection == 1 && network_->linux_host(last) == nullptr) {
    from = 0;
    to = last;
  } else if (network_->linux_host(from) != nullptr && network_->linux_host(to) != nullptr) {
    (connection % 2 == 0 ? from : to) = 0;
  }
}

bool Simulation::finished() const {
  for (const auto& actor : actors_) {
    if (!actor->finished()) return false;
  }
  return true;
}

bool Simulation::poll(Nanos now) {
  if (now < next_action_) return false;
  network_->collect_events();
  for (const auto& pool : pools_) {
    if (pool != nullptr) pool->act(scenario_.late_receives);
  }
  for (const auto& actor : actors_) actor->act(now);
  // Occasional long pauses, so that all packets in flight arrive and timeouts expire.
  const uint64_t pause = rng_.chance(0.05) ? rng_.below(20'000'000) : 1 + rng_.below(50'000);
  next_action_ = finished() ? kNever : now + Nanos{static_cast<int64_t>(pause)};
  return true;
}

void Simulation::play() {
  const auto ended = runner_.run_while(
      [this] {
        for (const auto& actor : actors_) actor->reap();
        return verifier_.content() && !finished();
      },
      kLimit);
  if (!ended) verifier_.fail(ended.error().message);
  if (verifier_.content() && !finished()) {
    std::string states;
    for (const auto& actor : actors_) {
      if (!actor->finished()) states += (states.empty() ? "" : " | ") + actor->state();
    }
    verifier_.fail("it hangs (" + states + ")");
  }
  if (!verifier_.content()) return;
  next_action_ = kNever;
  if (const auto idle = runner_.run_until_idle(runner_.now() + 3s); !idle)
    verifier_.fail(idle.error().message);
  network_->collect_events();
  for (const auto& actor : actors_) actor->check();
  for (const auto& pool : pools_) {
    if (pool != nullptr) pool->check();
  }
  network_->check_counters();
  if (verifier_.tally.gave_up > 0 && scenario_.loses_nothing())
    verifier_.fail("a queue pair gave up on a network whose links lose nothing");
}

SimulationResult Simulation::run() {
  build();
  play();
  network_->add_up();
  const std::string counters =
      verifier_.content() && verifier_.tally.gave_up == 0 ? std::string() : network_->counters();
  actors_.clear();
  pools_.clear();
  network_->take_down();
  return {verifier_.failure(), scenario_.describe(), counters, network_->digest(), verifier_.tally};
}

}  // namespace

SimulationResult run_simulation(uint64_t seed, std::string_view without, DrawScenario draw) {
  return Simulation(draw(seed, without), seed).run();
}

}  // namespace roci::test
