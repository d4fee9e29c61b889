// What a port knows of the processes behind addresses, where it can know: between processes of one machine (shm_port.hpp). By it a
// time-out of the transport means that the peer is silent, and not that its process had no processor.
#pragma once

#include <optional>

#include "base/types.hpp"
#include "wire/headers.hpp"

namespace roci {

struct PeerTime {
  // For how long, since the port was opened, the peer could not have answered: its process was runnable and did not run, or
  // had frames of ours still to read. Never decreases. The time of a process that is stopped (SIGSTOP) is not counted: that is
  // silence.
  Nanos lost{0};
  // When `lost` last increased; 0: never.
  Nanos lost_at{0};
};

// One thread at a time, the one that polls the port.
class PeerPresence {
 public:
  PeerPresence() = default;
  PeerPresence(const PeerPresence&) = delete;
  PeerPresence& operator=(const PeerPresence&) = delete;
  virtual ~PeerPresence() = default;

  virtual PeerTime time_of(const MacAddress& peer, Nanos now) = 0;
  // Whether frames that were sent to the peer have not been read yet, or its process does not run at the moment: another copy
  // could tell it nothing new.
  [[nodiscard]] virtual bool is_busy(const MacAddress& peer, Nanos now) = 0;
  // Identifies the process that has the address now; 0: no process, or not known. Two processes have the same value with a
  // probability of 2^-15.
  [[nodiscard]] virtual uint16_t process_of(const MacAddress& peer) = 0;
  // Whether no process has the address, and no frame of an earlier process can still arrive. False while an exit is still to be reported.
  [[nodiscard]] virtual bool is_absent(const MacAddress& peer) = 0;
  // The address of a process that has exited since the last call. Another process may have the address already.
  virtual std::optional<MacAddress> take_exit() = 0;
};

}  // namespace roci
