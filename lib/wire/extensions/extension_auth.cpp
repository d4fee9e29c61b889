#include "wire/extensions/extension_auth.hpp"

#include <cstring>

namespace roci {
namespace {

constexpr uint32_t kMacBytes = 8;

template <class T>
std::span<const uint8_t> bytes_of(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}

void put_le64(uint8_t* at, uint64_t value) {
  for (unsigned i = 0; i < 8; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
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
    put_le64(&key[8U * half], bits);
  }
  return key;
}

NetworkKeys derive_network_keys(const SipKey& network_key) {
  NetworkKeys keys;
  const auto derive = [&](const std::array<char, 8>& purpose, SipKey& key) {
    for (uint8_t half = 0; half < 2; ++half) {
      SipHash hash(network_key);
      hash.update(bytes_of(purpose));
      hash.update({&half, 1});
      put_le64(&key[8U * half], hash.finish());
    }
  };
  derive({'c', 'c', 'x', '-', 'm', 'a', 'd', 's'}, keys.datagrams);
  derive({'c', 'c', 'x', '-', 's', 'e', 's', 's'}, keys.sessions);
  return keys;
}

AuthMaterial mix_network_key(const NetworkKeys& keys, const AuthMaterial& of_receiver, uint64_t receiver,
                             uint64_t sender) {
  AuthMaterial mixed;
  for (uint8_t half = 0; half < 2; ++half) {
    SipHash hash(keys.sessions);
    hash.update(of_receiver);
    hash.update(bytes_of(Be64{receiver}));
    hash.update(bytes_of(Be64{sender}));
    hash.update({&half, 1});
    put_le64(&mixed[8U * half], hash.finish());
  }
  return mixed;
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
  return check(
      block.auth().sequence.get(), block.auth().mac.get(),
      [&](const SipKey& key, uint64_t sequence) { return compute_auth(key, view, block, sequence); });
}

}  // namespace roci
