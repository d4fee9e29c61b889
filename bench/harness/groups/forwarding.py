"""What one core of the switch forwards, next to other software switches between the same ports."""

from harness.case import Case, Group, at_least
from harness.switches import figure, load_alone, open_vswitch, roci, SIZES, testpmd

MAC, OUTPUT, NORMAL = "dpdk-testpmd, mac forwarding", "Open vSwitch, port to port", "Open vSwitch, learning bridge"
INT_BYTES = 32  # shim, header and a hop
FEATURES = {
    "a bridge": roci("bridge"),
    "WRED and ECN": roci("marking", "--marked"),
    "INT": roci("telemetry", f"--longer {INT_BYTES}"),
    "everything": roci("everything", f"--marked --longer {INT_BYTES}"),
}


def peers(size):
    yield figure("dpdk-testpmd, io forwarding", testpmd("io"), size)
    yield figure(MAC, testpmd("mac"), size)
    yield figure(OUTPUT, open_vswitch("output"), size)
    yield figure(NORMAL, open_vswitch("normal"), size)


def cases(size):
    for name, run in FEATURES.items():
        targets = (at_least(0.5, MAC), at_least(1, OUTPUT), at_least(1, NORMAL)) if name == "WRED and ECN" else ()
        limits = (load_alone(size),) if name == "a bridge" else ()
        yield Case(f"{size} bytes, {name}", figure("roci-switch", run, size), (*peers(size), *limits), targets)


GROUP = Group(
    name="forwarding",
    what="frames that a core forwards between memif ports, with more and more of what a switch does",
    cases=tuple(case for size in SIZES for case in cases(size)),
    notes="Another process on the other core sends RoCEv2 frames of 64 flows, of at most so many bytes without FCS, and counts;\n"
          "it touches none of them, and a run in which it was not waiting for the switch most of the time is refused.",
)
