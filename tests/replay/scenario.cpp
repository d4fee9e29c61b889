#include "replay/scenario.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "wire/headers/aeth.hpp"

namespace roci::test {
namespace {

bool has_kind(std::span<const Difference> differences, Difference::Kind kind, int frame) {
  return std::ranges::any_of(differences,
                             [&](const Difference& d) { return d.kind == kind && d.frame == frame; });
}

// Memory range that a request names.
struct Area {
  MemoryKey rkey;
  uint64_t va = 0;
  uint64_t length = 0;
};
std::optional<Area> area_of(const Packet& p) {
  if (p.reth) return Area{p.reth->rkey, p.reth->va, p.reth->length};
  if (p.atomic_eth) return Area{p.atomic_eth->rkey, p.atomic_eth->va, sizeof(uint64_t)};
  return std::nullopt;
}

// A 64-bit word in host byte order.
ByteVector bytes_of_word(uint64_t word) {
  ByteVector bytes(sizeof word);
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

// Memory before the exchange, as far as it is known, and after each request.
class Memory {
 public:
  explicit Memory(const Exchange& exchange) {
    for (const RecordedFrame& frame : exchange.frames) {
      const auto area = area_of(frame.packet);
      if (!frame.is_request() || !area || area->length == 0) continue;
      auto& [first, end] = ranges_.try_emplace(area->rkey.value(), UINT64_MAX, 0).first->second;
      first = std::min(first, area->va);
      end = std::max(end, area->va + area->length);
    }
    for (const auto& [key, range] : ranges_) {
      const uint64_t size = range.second - range.first;
      before_[key] = after_[key] = {range.first, ByteVector(size, ReplayHost::kUntouched)};
      known_[key].resize(size);
    }
  }

  // A READ response contains these bytes: they are the initial contents unless they were written before.
  void show(const Area& area, std::span<const uint8_t> bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const size_t at = area.va + i - before_[area.rkey.value()].va;
      if (known_[area.rkey.value()][at]) continue;
      known_[area.rkey.value()][at] = true;
      before_[area.rkey.value()].bytes[at] = after_[area.rkey.value()].bytes[at] = bytes[i];
    }
  }
  [[nodiscard]] bool holds(const Area& area, std::span<const uint8_t> bytes) const {
    const Region& region = after_.at(area.rkey.value());
    return std::ranges::equal(bytes, std::span(region.bytes).subspan(area.va - region.va, bytes.size()));
  }
  void write(const Area& area, std::span<const uint8_t> bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const size_t at = area.va + i - after_[area.rkey.value()].va;
      known_[area.rkey.value()][at] = true;
      after_[area.rkey.value()].bytes[at] = bytes[i];
    }
  }
  // The 64-bit word at this address, in host byte order.
  uint64_t word(const Area& area) {
    uint64_t value = 0;
    Region& region = after_[area.rkey.value()];
    std::memcpy(&value, &region.bytes[area.va - region.va], sizeof value);
    return value;
  }

  Regions before() { return before_; }
  Regions after() { return after_; }

 private:
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> ranges_;  // first byte, one past the last byte
  Regions before_, after_;
  std::map<uint32_t, std::vector<bool>> known_;
};

// Model of a responder without NAKs, acknowledgments or validation: executes each request with the expected PSN.
class Model {
 public:
  Model(const Exchange& exchange, uint32_t path_mtu)
      : memory(exchange), mtu_(path_mtu), expected_(exchange.first_request().bth.psn) {}

  void request(const RecordedFrame& frame, bool receives_posted) {
    const Packet& p = frame.packet;
    const OpcodeInfo& info = *find_opcode(static_cast<uint8_t>(p.bth.opcode));
    if (info.operation == Operation::kReadRequest)
      last_reads_.push_back({p.bth.psn, *area_of(p), frame.number});
    const bool needs_receive = info.operation == Operation::kSend || info.consumes_receive();
    if (p.bth.psn != expected_ || !icrc_is_right(p) || (needs_receive && !receives_posted)) return;
    if (info.operation == Operation::kReadRequest) {
      expected_ += std::max(1U, (p.reth->length + mtu_ - 1) / mtu_);
      return;
    }
    ++expected_;
    if (p.atomic_eth) {
      const Area area = *area_of(p);
      const uint64_t before = memory.word(area);
      uint64_t after = before;
      if (info.operation == Operation::kFetchAdd) after += p.atomic_eth->swap_or_add;
      if (info.operation == Operation::kCompareSwap && before == p.atomic_eth->compare)
        after = p.atomic_eth->swap_or_add;
      memory.write(area, bytes_of_word(after));
      return;
    }
    if (info.starts_message()) {
      message_.clear();
      if (p.reth) target_ = *area_of(p);
    }
    if (info.operation == Operation::kWrite) {
      memory.write(target_, p.payload);
      target_.va += p.payload.size();
    } else {
      message_.insert(message_.end(), p.payload.begin(), p.payload.end());
    }
    if (p.imm) {
      for (int shift = 24; shift >= 0; shift -= 8) message_.push_back(static_cast<uint8_t>(*p.imm >> shift));
    }
    if (info.ends_message() && info.consumes_receive()) received.push_back(message_);
  }

  // Returns what the responder's program must have written to its memory before the READ.
  std::optional<Scenario::LocalWrite> answer(const Packet& p) {
    const auto read = std::find_if(last_reads_.rbegin(), last_reads_.rend(), [&](const auto& candidate) {
      const auto packets = static_cast<uint32_t>((candidate.area.length + mtu_ - 1) / mtu_);
      return packets > 0 && is_within(p.bth.psn, candidate.psn, candidate.psn + (packets - 1));
    });
    if (p.payload.empty() || read == last_reads_.rend()) return std::nullopt;
    Area area = read->area;
    area.va += uint64_t{mtu_} * ((p.bth.psn.value() - read->psn.value()) & Psn::kMask);
    memory.show(area, p.payload);
    if (memory.holds(area, p.payload)) return std::nullopt;
    return Scenario::LocalWrite{read->frame, area.rkey, area.va, p.payload};
  }

  Memory memory;
  std::vector<ByteVector> received;

 private:
  uint32_t mtu_;
  Psn expected_;
  Area target_;         // of the WRITE in progress
  ByteVector message_;  // the SEND in progress
  struct Read {
    Psn psn;
    Area area;
    int frame;
  };
  std::vector<Read> last_reads_;
};

// The original value in the first response to an atomic.
std::optional<uint64_t> recorded_original(const Exchange& exchange, const Packet& request) {
  if (!request.atomic_eth) return std::nullopt;
  for (const RecordedFrame& frame : exchange.frames) {
    if (frame.packet.atomic_ack && frame.packet.bth.psn == request.bth.psn) return frame.packet.atomic_ack;
  }
  return std::nullopt;
}

ReplayHost::Config describe_host(const Exchange& exchange) {
  const Packet& request = exchange.first_request();
  ReplayHost::Config host = ReplayHost::Config::receiver_of(request);
  host.qpn = exchange.responder;
  host.peer_qpn = exchange.requester;
  host.first_psn = request.bth.psn;
  host.path_mtu = exchange.path_mtu(kUsualMtu);
  host.traffic_class = exchange.first_answer().traffic_class();
  if (exchange.managed) host.udp_source_port = request.udp_source_port;
  return host;
}

}  // namespace

Scenario make_scenario(const Exchange& exchange, std::span<const Difference> differences) {
  Scenario scenario;
  scenario.host = describe_host(exchange);

  // No receive was posted until the last RNR NAK.
  int last_rnr = 0;
  for (const RecordedFrame& frame : exchange.frames) {
    const auto& aeth = frame.packet.aeth;
    if (frame.is_request() || !aeth || aeth_kind(aeth->syndrome) != AethKind::kRnrNak) continue;
    last_rnr = frame.number;
    scenario.host.min_rnr_timer = aeth_value(aeth->syndrome);
  }
  scenario.receives_before = std::numeric_limits<int>::max();
  for (const RecordedFrame& frame : exchange.frames) {
    if (frame.is_request() && frame.number > last_rnr)
      scenario.receives_before = std::min(scenario.receives_before, frame.number);
  }

  Model model(exchange, scenario.host.path_mtu);
  for (const RecordedFrame& frame : exchange.frames) {
    if (!frame.is_request()) {
      const auto write = model.answer(frame.packet);
      if (write && exchange.managed) {
        model.memory.write({write->rkey, write->va, write->bytes.size()}, write->bytes);
        scenario.local_writes.push_back(*write);
      }
      continue;
    }
    if (has_kind(differences, Difference::Kind::kNotDelivered, frame.number)) continue;
    if (const auto original = recorded_original(exchange, frame.packet)) {
      model.memory.show(*area_of(frame.packet), bytes_of_word(*original));
    }
    model.request(frame, frame.number >= scenario.receives_before);
    scenario.requests.push_back({frame.number, frame.bytes});
  }
  scenario.host.regions = model.memory.before();
  scenario.regions_after = model.memory.after();
  scenario.received = model.received;
  for (const ByteVector& message : scenario.received)
    scenario.receives.push_back(static_cast<uint32_t>(message.size()));
  return scenario;
}

}  // namespace roci::test
