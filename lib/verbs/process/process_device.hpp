// The single device of the process, described by environment variables: ROCI_CONFIG names a file with a `device`
// section, ROCI_NET the folder of a network of this machine. The device is found when the device list is first read,
// starts with the first ibv_open_device, and runs until the process exits, regardless of the number of contexts.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "cm/service.hpp"
#include "net/device_identity.hpp"
#include "roci/device.hpp"
#include "roci/result.hpp"

namespace roci::verbs {

// The device of ibv_get_device_list; null if there is none, with the reason in the log.
ibv_device* listed_device();
// Vendor and part in the device's attributes.
DeviceIdentity listed_identity();
// In network byte order; 0 if the MAC address is unknown before the device starts.
uint64_t listed_guid();

// Creates a user of the device. The first call starts DPDK and the port.
Result<std::unique_ptr<Device>> open_listed_device();

// The connection manager of the device, which must be open. Exists until the process exits.
cm::Service& connection_manager();

// For `roci-run --stats`: writes the statistics of a queue pair before its destruction.
void write_final_stats(Device& device, uint32_t qp_num);

// Sends the pending frames of the queue pair (null: of the device), for a short time. Called before a queue pair is
// destroyed or the process exits.
void send_pending(Device& device, const QueuePair* queue_pair);
// Waits until the peer has probably received the sent frames. Called before
// the process may exit, also with _exit() (children of fio).
void wait_until_received(Device& device);

}  // namespace roci::verbs
