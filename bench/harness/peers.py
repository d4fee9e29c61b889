"""Third-party programs: their commands, parsers of their output, and the Debian packages that contain them."""

import dataclasses
import json
import re
import statistics

from harness.case import Figure, LESS, Pair, Unreadable
from harness.programs import command

PACKAGES = {
    "cmtime": "rdmacm-utils",
    "dpdk-testpmd": "dpdk-dev",
    "fi_pingpong": "libfabric-bin",
    "ibv_devinfo": "ibverbs-utils",
    "iperf3": "iperf3",
    "mpirun": "openmpi-bin",
    "ns-3": "libns3-dev",
    "perf": "linux-perf",
    "perftest": "perftest",
    "sockperf": "sockperf",
    "ucx_perftest": "ucx-utils",
    "valgrind": "valgrind",
}
# Scripts and programs of the project that require one of them.
SCRIPTS = {"{bench}/budget.py": "valgrind", "{bench}/stages.py": "perf", "{bin}/roci-lab-ns3": "ns-3",
           "{bench}/programs/patient.sh": "perftest", "{bench}/processes/beside.sh": "perftest", "{bench}/processes/costs.py": "ibv_devinfo", "{bench}/connections/both.py": "cmtime"}
# The same for packages that start services on installation: they are unpacked into build/peers instead.
UNPACKED = {"{bench}/forwarding/open_vswitch.py": ("openvswitch-common", "openvswitch-switch", "openvswitch-switch-dpdk")}

ON_FIRST, ON_SECOND = "taskset -c {core0}", "taskset -c {core1}"
NUMBER = r"(\d+(?:\.\d+)?)"


def search(pattern, text, what):
    found = re.search(pattern, text, re.MULTILINE)
    if not found:
        raise Unreadable(f"{what} is not in the output")
    return float(found.group(1))


# UCX: the line of final results has iterations, three times (or overheads), two bandwidths and two rates.

def ucx(test, size, iterations, transport):
    common = "UCX_TLS=tcp UCX_NET_DEVICES=lo" if transport == "tcp" else f"UCX_TLS={transport},self"
    return Pair(command(f"{common} {ON_FIRST} ucx_perftest -p {{port}}"),
                command(f"{common} {ON_SECOND} ucx_perftest -p {{port}} -t {test} -s {size} -n {iterations} -w 1000 -f "
                        "127.0.0.1"), "tcp")


def ucx_final(column, factor):
    def take(output):
        found = re.findall(rf"^(?:Final:)? +\d+(?: +{NUMBER})(?: +{NUMBER})(?: +{NUMBER})(?: +{NUMBER})(?: +{NUMBER}) +\d+ +"
                           r"\d+ *$", output.text, re.MULTILINE)
        if len(found) != 1:
            raise Unreadable("the line with ucx_perftest's final numbers is not in the output")
        value = float(found[0][column]) * factor
        if value <= 0:
            raise Unreadable("ucx_perftest reports nothing that moved")
        return value
    return take


def ucx_bandwidth(test, size, iterations):
    # In UCX, "MB" is 2^20 bytes.
    return Figure(f"UCX over TCP, {test}", ucx(test, size, iterations, "tcp"), ucx_final(4, 8 * 2**20 / 1e9), "Gb/s")


def ucx_latency(test, size, iterations, transport="tcp"):
    name = f"UCX over {'TCP' if transport == 'tcp' else 'shared memory (' + transport + ')'}, {test}"
    return Figure(name, ucx(test, size, iterations, transport), ucx_final(0, 1000), "ns", LESS)


def ucx_latency_beside_loops(test, size, iterations):
    """Average, as a median does not show preemption."""
    return Figure(f"UCX over TCP, {test} with two busy loops, average", beside(ucx(test, size, iterations, "tcp")),
                  ucx_final(2, 1000), "ns", LESS)


def beside(pair):
    """Runs the client of a pair together with a busy loop on each of the two cores, which end with the client."""
    words = ("{bench}/processes/beside.sh", "{core0},{core1}", *pair.client.words)
    return dataclasses.replace(pair, client=dataclasses.replace(pair.client, words=words, limit=60))


# perftest with Rocinante's libibverbs.so.1. A line has bytes, iterations, peak or minimum, average or maximum, and for
# latencies the median.

NETWORK = "{bench}/programs/net.yaml"
WAYS = {
    "network": (NETWORK, NETWORK, "tcp", "perftest"),
    "memif": ("{bench}/memif/server.yaml", "{bench}/memif/client.yaml", "unix roci-bench", "perftest over memif"),
}


def perftest(program, options, way):
    server, client, ready, name = WAYS[way]
    test = f"{program} -F -p {{port}} {options}"
    return name, Pair(
        command(f"{{bin}}/roci-run --config {server} {ON_FIRST} {test}"),
        command(f"{{bench}}/programs/patient.sh {{bin}}/roci-run --config {client} {ON_SECOND} {test} 127.0.0.1"), ready)


def perftest_of(program, options, network):
    """Runs perftest in the network that a file describes."""
    test = f"{program} -F -p {{port}} {options}"
    return Pair(command(f"{{bin}}/roci-run --config {network} {ON_FIRST} {test}"),
                command(f"{{bench}}/programs/patient.sh {{bin}}/roci-run --config {network} {ON_SECOND} {test} 127.0.0.1"), "tcp")


def perftest_column(size, column, factor):
    def take(output):
        found = re.findall(rf"^ *{size} +\d+((?:[ \t]+{NUMBER})+)[ \t]*$", output.text, re.MULTILINE)
        if len(found) != 1:
            raise Unreadable(f"perftest's line of figures of {size} bytes is not in the output")
        return float(found[0][0].split()[column]) * factor
    return take


def perftest_average(size):
    """Reads the average latency of a run of -D, whose line has only the average and its reciprocal."""
    def take(output):
        found = re.findall(rf"^ *{size} +\d+[ \t]+{NUMBER}[ \t]+{NUMBER}[ \t]*$", output.text, re.MULTILINE)
        if len(found) != 1:
            raise Unreadable(f"perftest's line with the average of {size} bytes is not in the output")
        return float(found[0][0]) * 1000
    return take


def perftest_bandwidth(program, size, way):
    name, run = perftest(program, f"-s {size} -m 4096 -D {{seconds}} --report_gbits", way)
    return Figure(name, run, perftest_column(size, 1, 1), "Gb/s")


def perftest_latency(program, size, iterations, way):
    name, run = perftest(program, f"-s {size} -m 4096 -n {iterations}", way)
    return Figure(name, run, perftest_column(size, 2, 1000), "ns", LESS)


# libfabric: a table with one line, whose last three columns are MB/s (10^6), microseconds and M transfers/s.

def fabric(size, iterations):
    test = f"fi_pingpong -p tcp -e msg -S {size} -I {iterations}"
    return Pair(command(f"{ON_FIRST} {test} -B {{port}}"), command(f"{ON_SECOND} {test} -P {{port}} 127.0.0.1"), "tcp")


def fabric_column(column, factor):
    def take(output):
        found = re.search(rf"^\S+ +\S+ +=\S+ +\S+ +\S+s +{NUMBER} +{NUMBER} +{NUMBER} *$", output.text, re.MULTILINE)
        if not found:
            raise Unreadable("fi_pingpong's line of figures is not in the output")
        return float(found.group(column)) * factor
    return take


def fabric_bandwidth(size, iterations):
    return Figure("libfabric over TCP, one at a time", fabric(size, iterations), fabric_column(1, 8e-3), "Gb/s")


def fabric_latency(size, iterations):
    return Figure("libfabric over TCP", fabric(size, iterations), fabric_column(2, 1000), "ns", LESS)


# TCP and UDP of the kernel between two processes.

def iperf(options):
    return Pair(command(f"{ON_FIRST} iperf3 -s -1 -B 127.0.0.1 -p {{port}}"),
                command(f"{ON_SECOND} iperf3 -c 127.0.0.1 -p {{port}} -t {{seconds}} -J {options}"), "tcp")


def iperf_received(output):
    try:
        end = json.loads(output.text)["end"]
        if "sum_received" in end and end["sum_received"].get("bytes"):
            return float(end["sum_received"]["bits_per_second"]) * 1e-9
        total = end["sum"]  # UDP: sent data and its loss rate
        return float(total["bits_per_second"]) * 1e-9 * (1 - float(total["lost_percent"]) / 100)
    except (ValueError, KeyError, TypeError) as problem:
        raise Unreadable("iperf3's JSON has no received bytes") from problem


def kernel_tcp_bandwidth(size):
    return Figure("kernel TCP", iperf(f"-l {size}"), iperf_received, "Gb/s")


def kernel_udp_bandwidth():
    # The largest datagram that iperf3 sends.
    return Figure("kernel UDP, received", iperf("-u -b 0 -l 65507"), iperf_received, "Gb/s")


def sockperf(protocol, size):
    option = " --tcp" if protocol == "tcp" else ""
    return Pair(command(f"{ON_FIRST} sockperf server -i 127.0.0.1 -p {{port}}{option}"),
                command(f"{ON_SECOND} sockperf ping-pong -i 127.0.0.1 -p {{port}}{option} -m {size} -t {{seconds}}"),
                protocol)


def sockperf_median(output):
    return search(rf"percentile 50\.000 = +{NUMBER}", output.text, "sockperf's median") * 1000


def kernel_latency(protocol, size):
    return Figure(f"kernel {protocol.upper()}", sockperf(protocol, size), sockperf_median, "ns", LESS)


# dpdk-testpmd: the rate of the port alone, from the packets per second that it prints every second.

TESTPMD = "dpdk-testpmd --no-huge --no-shconf --no-pci --no-telemetry -m 256"


def testpmd_rings(frame_bytes):
    """One core at each end of two rings sends generated frames and drops received ones."""
    return command(f"timeout --preserve-status -s INT 5 {TESTPMD} --lcores 0@{{core0}},1@{{core0}},2@{{core1}} "
                   "--vdev=net_ring0 --vdev=net_ring1 -- --nb-cores=2 --total-num-mbufs=4096 --mbuf-size=4736 "
                   f"--txpkts={frame_bytes} --forward-mode=flowgen --stats-period=1")


def testpmd_memif(frame_bytes):
    """One process sends at full rate, the other drops the frames."""
    device = "--vdev=net_memif0,id=0,bsize=4608,socket=roci-bench-testpmd,role="
    buffers = "--nb-cores=1 --total-num-mbufs=4096 --mbuf-size=4736 --stats-period=1"
    def side(core, prefix, role, seconds, mode):
        return command(f"timeout --preserve-status -s INT {seconds} {TESTPMD} --lcores 0@{core},1@{core} --file-prefix "
                       f"roci-bench-{prefix}-{{port}} {device}{role} -- {buffers} {mode}")
    return Pair(side("{core0}", "server", "server", 8, "--forward-mode=rxonly"),
                side("{core1}", "client", "client", 5, f"--forward-mode=txonly --txpkts={frame_bytes}"),
                "unix roci-bench-testpmd")


def testpmd_received(output):
    """Returns the packets per second received by the first port: the median over the seconds with traffic."""
    text = output.server or output.text
    blocks = re.findall(r"NIC statistics for port 0 .*?Rx-pps: +(\d+)", text, re.DOTALL)
    if not blocks:
        raise Unreadable("dpdk-testpmd's packets per second are not in the output")
    seconds = [int(rate) for rate in blocks if int(rate) > 0]
    if not seconds:
        raise Unreadable("dpdk-testpmd received nothing")
    return float(statistics.median(seconds))


def testpmd_bandwidth(run, payload_bytes):
    return Figure("dpdk-testpmd, payload of as many frames", run, lambda out: testpmd_received(out) * payload_bytes * 8e-9,
                  "Gb/s")


def testpmd_rate(run):
    return Figure("dpdk-testpmd, frames", run, lambda out: testpmd_received(out) * 1e-6, "M/s")
