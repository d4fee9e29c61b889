"""Switches between two memif ports: roci-forwarding-load sends into one on its core, the switch forwards on the
other core, and the load counts the frames from the second port. All use memory in pages of 4 KiB and buffers of 2
KiB."""

import signal

from harness.case import Figure, Pair, Unreadable
from harness.programs import command, line

SIZES = (64, 1024)
WAITING = 50  # percent; if the load finds the ring full less often, the load is the limit
LOAD = "taskset -c {core0} {bin}/roci-forwarding-load"
SENT = f"--size {' '.join(str(size) for size in SIZES)} --seconds {{seconds}}"
SOCKETS = ("roci-bench-in", "roci-bench-out")
DEVICES = [f"net_memif{number},role=server,id=0,socket={socket},bsize=2048" for number, socket in enumerate(SOCKETS)]


# DPDK's memif server (22.11) unmaps the rings of a client that exits while another thread may still read them. The load
# checks that the switch is running before it exits.
ENDINGS = (0, -signal.SIGSEGV)


def loaded(switch, ports=tuple(f"@{socket}" for socket in SOCKETS), options=""):
    return Pair(switch, command(f"{LOAD} {' '.join(ports)} {SENT} {options}", limit=60))


def roci(configuration, options=""):
    return loaded(command(f"taskset -c {{core1}} {{bin}}/roci-switch --config {{bench}}/forwarding/{configuration}.yaml",
                          accepted=ENDINGS), options=options)


def testpmd(mode):
    devices = " ".join(f"--vdev={device}" for device in DEVICES)
    return loaded(command("dpdk-testpmd --no-huge --no-shconf --no-pci --no-telemetry -m 256 --lcores 0@{core0},1@{core1} "
                          f"{devices} -- --nb-cores=1 --total-num-mbufs=8192 --disable-link-check --stats-period=60 "
                          f"--forward-mode={mode}", accepted=ENDINGS))


def open_vswitch(flows):
    # Open vSwitch sends on one queue per thread that may send.
    return loaded(command("python3 {bench}/forwarding/open_vswitch.py --programs {root}/build/peers --core {core1} "
                          f"--other-core {{core0}} --flows {flows}"), ("in", "out"), "--switch-queues 2")


def forwarded(size):
    """Reads the forwarded frames, in millions per second."""
    def take(output):
        waiting = line(f"{size}_waiting_percent")(output)
        if waiting < WAITING:
            raise Unreadable(f"the load found the way in full at only {waiting:g} % of its looks, so it was the limit itself")
        return rate(size)(output)
    return take


def rate(size):
    def take(output):
        value = line(f"{size}_frames_per_second")(output) * 1e-6
        if value <= 0:
            raise Unreadable("the switch forwarded no frames")
        return value
    return take


def figure(name, run, size):
    return Figure(name, run, forwarded(size), "M/s")


def load_alone(size):
    run = command(f"{LOAD} --device-core {{core1}} {SENT}", limit=60)
    return Figure("limit: the load generator alone", run, rate(size), "M/s")
