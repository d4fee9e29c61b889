// The one device of the process, as the environment describes it: ROCI_CONFIG names a file with a `device` section, ROCI_NET the
// folder of a network of this machine. It is there from the first look at the list of devices on, starts with the first
// ibv_open_device, and stays until the process ends, however many contexts come and go.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "cm/service.hpp"
#include "net/device_identity.hpp"
#include "roci/device.hpp"
#include "roci/result.hpp"

namespace roci::verbs {

// What ibv_get_device_list shows; null without a device, with the reason in the log.
ibv_device* listed_device();
// What its attributes say of vendor and part.
DeviceIdentity listed_identity();
// In network order; 0 for a device whose MAC is not known before it starts.
uint64_t listed_guid();

// A user of the device of its own. Starts DPDK and the port at the first call.
Result<std::unique_ptr<Device>> open_listed_device();

// Of the device, which somebody has opened. Stays until the process ends.
cm::Service& connection_manager();

// For `roci-run --stats`: what there is to say of a queue pair that is about to go.
void note_end_of(Device& device, uint32_t qp_num);

// What the worker has to send is sent, as far as that goes in a short time: before queue pairs or the process go.
void settle(Device& device, const QueuePair* queue_pair);
// What was sent is on its way, as far as that can be known: before the process may go, also by _exit(), as children of fio do.
void wait_until_taken(Device& device);

}  // namespace roci::verbs
