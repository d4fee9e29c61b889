#include "wire/extensions/extension_auth.hpp"

#include <cstring>

namespace roci {
namespace {

constexpr uint32_t kMacBytes = 8;

template <class T>
std::span<const uint8_t> bytes_of(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

// Returns the lowest sequence that is not below `next` and has the low half `wire`.
uint64_t sequence_from(uint32_t wire, uint64_t next) {
  return next + static_cast<uint32_t>(wire - static_cast<uint32_t>(next));
}

}  // namespace

SipKey derive_auth_key(const AuthMaterial& of_receiver, Qpn receiver, Qpn sender) {
  SipKey key;
  for (uint8_t half = 0; half < 2; ++half) {
    struct {
      std::array<char, 8> purpose{'c', 'c', 'x', '-', 'a', 'u', 't', 'h'};
      uint8_t half = 0;
      Be24 receiver, sender;
    } input;
    input.half = half;
    input.receiver.set(receiver.value());
    input.sender.set(sender.value());
    static_assert(sizeof input == 15);
    const uint64_t bits = siphash(of_receiver, bytes_of(input));
    for (unsigned i = 0; i < 8; ++i) key[8U * half + i] = static_cast<uint8_t>(bits >> (8 * i));
  }
  return key;
}

uint64_t compute_auth(const SipKey& key, const FrameView& view, const ExtensionView& block,
                      uint64_t sequence) {
  SipHash hash(key);
  hash.update(view.source_ip().bytes);
  hash.update(view.destination_ip().bytes);
  hash.update(bytes_of(view.udp().source_port));
  Bth bth = view.bth();
  bth.congestion = 0;
  hash.update(bytes_of(bth));
  hash.update(bytes_of(Be64{sequence}));
  const uint8_t* extended = view.frame + view.bth_offset + sizeof(Bth);
  const uint8_t* mac = block.block + block.bytes - kMacBytes;
  hash.update({extended, static_cast<size_t>(mac - extended)});
  return hash.finish();
}

void sign(const SipKey& key, const FrameView& view, const ExtensionView& block, uint64_t sequence) {
  auto& auth = const_cast<Auth&>(block.auth());
  auth.sequence.set(static_cast<uint32_t>(sequence));
  auth.mac.set(compute_auth(key, view, block, sequence));
}

std::string_view auth_outcome_name(AuthOutcome outcome) {
  constexpr std::string_view kNames[kAuthOutcomeCount] = {"right", "missing", "replayed", "wrong MAC"};
  return kNames[static_cast<unsigned>(outcome)];
}

AuthOutcome AuthReceiver::check(const FrameView& view, const ExtensionView& block) {
  if (!block.accepted() || !block.has(ExtensionType::kAuth)) return AuthOutcome::kMissing;
  const uint64_t sequence = sequence_from(block.auth().sequence.get(), next_);
  if (is_same_mac(compute_auth(key_, view, block, sequence), block.auth().mac.get())) {
    next_ = sequence + 1;
    return AuthOutcome::kRight;
  }
  // Distinguishes an old sequence with a correct MAC from a wrong MAC. Only the counters use the difference.
  const auto behind = static_cast<uint32_t>(static_cast<uint32_t>(next_) - block.auth().sequence.get());
  const bool is_old = behind != 0 && behind <= next_ &&
                      is_same_mac(compute_auth(key_, view, block, next_ - behind), block.auth().mac.get());
  return is_old ? AuthOutcome::kReplayed : AuthOutcome::kWrongMac;
}

}  // namespace roci
