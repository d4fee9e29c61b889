// Interface for the state of the processes that own peer addresses, between processes of one machine (shm_port.hpp).
// With it, a time-out of the transport means that the peer is silent, and not that its process had no CPU time.
#pragma once

#include <optional>

#include "base/types.hpp"
#include "wire/headers/headers.hpp"

namespace roci {

struct PeerTime {
  // Time since the port was opened during which the peer could not respond: its process was runnable
  // and did not run, or had not yet read frames of this port. Never decreases. Excludes the time of
  // a stopped process (SIGSTOP), which counts as silence.
  Nanos lost{0};
  // When `lost` last increased; 0: never.
  Nanos lost_at{0};
  // The part of `lost` in which the process did not run, and when that part last increased.
  Nanos away{0};
  Nanos away_at{0};
  // The peer has read all frames that this port sent before this time.
  Nanos read_until{0};
};

// One thread at a time: the thread that polls the port.
class PeerPresence {
 public:
  PeerPresence() = default;
  PeerPresence(const PeerPresence&) = delete;
  PeerPresence& operator=(const PeerPresence&) = delete;
  virtual ~PeerPresence() = default;

  virtual PeerTime time_of(const MacAddress& peer, Nanos now) = 0;
  // Whether the peer has not yet read frames that were sent to it, or its process does not run at the moment. A
  // retransmission would then be useless.
  [[nodiscard]] virtual bool is_busy(const MacAddress& peer, Nanos now) = 0;
  // Identifies the process that owns the address now; 0: no process, or unknown. Two
  // processes have the same value with a probability of 2^-15.
  [[nodiscard]] virtual uint16_t process_of(const MacAddress& peer) = 0;
  // Whether no process owns the address, and no frame of an earlier process can
  // still arrive. False until take_exit() has returned the exit.
  [[nodiscard]] virtual bool is_absent(const MacAddress& peer) = 0;
  // The address of a process that has exited since the last call. Another process may already own the address.
  virtual std::optional<MacAddress> take_exit() = 0;
};

}  // namespace roci
