#include "switch/cnp/ack_correlator.hpp"

#include <algorithm>

namespace roci {

// Symmetric: both directions have the same value.
uint8_t AckCorrelator::pair_of(const RoceFlow& flow) {
  unsigned sum = 0;
  for (size_t i = 0; i < flow.source.bytes.size(); ++i)
    sum = sum * 5 + (flow.source.bytes[i] ^ flow.destination.bytes[i]);
  return static_cast<uint8_t>(sum ^ sum >> 8);
}

bool AckCorrelator::watch(const RoceFlow& flow, bool responses, Nanos now) {
  Watch* free = nullptr;
  for (Watch& w : watches_) {
    if (w.active && w.until <= now) release(w);
    if (!w.active) {
      free = &w;
    } else if (w.flow == flow) {
      return true;
    }
  }
  if (free == nullptr) return false;
  *free = Watch{.flow = flow,
                .active = true,
                .responses = responses,
                .newest = {},
                .voted_at = {},
                .candidate = {},
                .until = now + kTimeout};
  ++pairs_[pair_of(flow)];
  ++watched_;
  return true;
}

void AckCorrelator::release(Watch& watch) {
  watch.active = false;
  --pairs_[pair_of(watch.flow)];
  --watched_;
}

// Returns whether a packet of the reverse direction can belong to the watched flow: as response to one of its requests,
// or as the READ request of its responses.
bool AckCorrelator::fits(const Watch& watch, const RocePeek& packet) {
  if (!watch.started || packet.info->transport != TransportClass::kRc) return false;
  const int32_t behind = watch.newest - packet.psn;
  if (!watch.responses) return packet.info->is_response() && behind >= 0 && behind < kWindow;
  const bool asks = packet.info->operation == Operation::kReadRequest;
  return asks && behind > -kWindow && behind < kWindow;
}

bool AckCorrelator::vote(Watch& watch, Qpn candidate) {
  if (watch.votes == 0 || watch.candidate != candidate) {
    watch.candidate = candidate;
    watch.votes = 1;
    watch.voted_at = watch.newest;
  } else if (watch.newest - watch.voted_at >= kStep) {
    ++watch.votes;
    watch.voted_at = watch.newest;
  }
  return watch.votes >= kVotes;
}

std::optional<AckCorrelator::Found> AckCorrelator::observe(const RocePeek& packet, Nanos now) {
  if (pairs_[pair_of(packet.flow)] == 0) return std::nullopt;
  Watch* fitting = nullptr;
  unsigned fits_to = 0;
  for (Watch& w : watches_) {
    if (!w.active) continue;
    if (w.until <= now) {
      release(w);
    } else if (w.flow == packet.flow) {
      const bool is_watched_kind =
          w.responses ? packet.info->operation == Operation::kReadResponse : packet.info->is_request();
      if (is_watched_kind && (!w.started || is_after(packet.psn, w.newest))) w.newest = packet.psn;
      w.started |= is_watched_kind;
    } else if (w.flow.source == packet.flow.destination && w.flow.destination == packet.flow.source &&
               fits(w, packet)) {
      fitting = &w;
      ++fits_to;
    }
  }
  if (fits_to > 1) ++ambiguous_;
  if (fits_to != 1 || !vote(*fitting, packet.flow.queue_pair)) return std::nullopt;
  release(*fitting);
  return Found{fitting->flow, fitting->candidate};
}

}  // namespace roci
