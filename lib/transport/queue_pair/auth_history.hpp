// AUTH state of a session, and the sequences that earlier sessions have used. A queue pair that is connected again to
// the same peer, or gets a new session for another reason, derives the same keys. It must neither sign a second packet
// with a sequence nor accept a recorded one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "wire/extensions/extension_auth.hpp"

namespace roci {

// Next sequence of each of the latest keys. A set of kWays keys replaces its oldest one.
template <size_t kSets, size_t kWays>
class AuthSequences {
 public:
  // The lowest sequence that was not used with this key; 0 for an unknown key.
  [[nodiscard]] uint64_t next(const SipKey& key) const {
    for (const Entry& entry : sets_[index(key)].entries) {
      if (entry.next != 0 && entry.key == key) return entry.next;
    }
    return 0;
  }
  // Never lowers the sequence of a key.
  void store(const SipKey& key, uint64_t next) {
    if (next == 0) return;
    Set& set = sets_[index(key)];
    for (Entry& entry : set.entries) {
      if (entry.next == 0 || entry.key != key) continue;
      if (entry.next < next) entry.next = next;
      return;
    }
    set.entries[set.oldest] = {key, next};
    set.oldest = (set.oldest + 1) % kWays;
  }
  template <class F>
  void for_each(F&& visit) const {  // visit(const SipKey&, uint64_t next)
    for (const Set& set : sets_) {
      for (const Entry& entry : set.entries) {
        if (entry.next != 0) visit(entry.key, entry.next);
      }
    }
  }

 private:
  struct Entry {
    SipKey key{};
    uint64_t next = 0;  // 0: unused
  };
  struct Set {
    std::array<Entry, kWays> entries;
    size_t oldest = 0;
  };
  // Keys are results of SipHash, so their bytes need no further hash.
  [[nodiscard]] static size_t index(const SipKey& key) {
    uint32_t bits = 0;
    std::memcpy(&bits, key.data(), sizeof bits);
    return bits % kSets;
  }
  std::array<Set, kSets> sets_;
};

// Sequences of the latest 4,096 keys of one worker, which owns it: 100 KiB, allocated with the first session that
// authenticates. A sequence is reused only if a queue pair is connected to the same peer again after thousands of
// others, or if two random queue pair numbers are both reused.
class AuthHistory {
 public:
  // False without memory. The other functions require a successful call.
  bool prepare() {
    if (sequences_ == nullptr) sequences_.reset(new (std::nothrow) Sequences);
    return sequences_ != nullptr;
  }
  [[nodiscard]] uint64_t next(const SipKey& key) const { return sequences_->next(key); }
  void store(const SipKey& key, uint64_t next) { sequences_->store(key, next); }

 private:
  using Sequences = AuthSequences<512, 8>;
  std::unique_ptr<Sequences> sequences_;
};

// Sequences of both directions of a session, which continue those of earlier sessions with the same keys.
class AuthState {
 public:
  // `require_signed`: unsigned feedback is never accepted. `history`: null without authentication.
  template <class History>
  AuthState(const SipKey& send_key, const SipKey& receive_key, bool require_signed, const History* history)
      : receiver_(receive_key, history == nullptr ? 0 : history->next(receive_key)),
        send_sequence_(history == nullptr ? 0 : history->next(send_key)),
        peer_signs_(require_signed || receiver_.next() > 0) {}
  [[nodiscard]] AuthReceiver& receiver() { return receiver_; }
  [[nodiscard]] const AuthReceiver& receiver() const { return receiver_; }
  // Whether feedback with this outcome of its check is accepted. Until the first signed packet of the peer, unsigned
  // feedback is accepted, since the peer may not have finished the negotiation. Afterwards, or if signed feedback is
  // required, unsigned feedback is rejected.
  bool accepts(AuthOutcome outcome) {
    if (outcome == AuthOutcome::kRight) peer_signs_ = true;
    return outcome == AuthOutcome::kRight || (outcome == AuthOutcome::kMissing && !peer_signs_);
  }
  [[nodiscard]] bool peer_signs() const { return peer_signs_; }
  // The sequence of the next packet to be signed.
  uint64_t take_sequence() { return send_sequence_++; }
  [[nodiscard]] uint64_t send_sequence() const { return send_sequence_; }
  // Called when the session ends.
  template <class History>
  void store(const SipKey& send_key, History& history) const {
    history.store(send_key, send_sequence_);
    history.store(receiver_.key(), receiver_.next());
  }

 private:
  AuthReceiver receiver_;
  uint64_t send_sequence_;
  bool peer_signs_;
};

}  // namespace roci
