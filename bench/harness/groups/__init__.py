"""The groups of cases, in the order of listing and measurement."""

from harness.groups import (acknowledgments, bandwidth, budget, congestion_control, connections, footprint, forwarding, lab, latency,
                            loss, memif, message_rate, processes, programs, stages)

GROUPS = (bandwidth.GROUP, message_rate.GROUP, latency.GROUP, memif.GROUP, programs.GROUP, processes.GROUP, connections.GROUP, acknowledgments.GROUP, loss.GROUP,
          congestion_control.GROUP,
          footprint.GROUP, budget.GROUP, stages.GROUP, forwarding.GROUP, lab.GROUP)
# The groups whose targets `./roci bench targets` shows.
WITH_TARGETS = tuple(group for group in GROUPS if group.target)
