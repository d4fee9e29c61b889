"""What the lab simulates for a second of a core, next to ns-3; what a host takes of memory; what a second thread brings."""

from harness.case import Case, Figure, Group, LESS, at_least
from harness.programs import command, line

TCP = "ns-3, TCP"
SIZES = (16, 128, 1024)  # hosts


def cost(run, cpus="{core1}", options="", limit=60):
    return command(f"taskset -c {cpus} python3 {{bench}}/lab/cost.py {options} {run}", limit=limit)


def roci(scenario, options, threads=1):
    return f"{{bin}}/roci-lab run {{root}}/{scenario} --threads {threads} {options} -q -o out"


def millions(key):
    take = line(key)
    return lambda output: take(output) * 1e-6


def hops(name, run):
    return Figure(name, run, millions("hops_per_cpu_second"), "M/s")


# Virtual time for two to three seconds of a core each.
NS3 = tuple(hops(name, cost(f"{{bin}}/roci-lab-ns3 {traffic}"))
            for name, traffic in ((TCP, "tcp --ms 10"), ("ns-3, UDP", "udp --ms 30"), ("ns-3, bare packets", "bare --ms 100")))


def incast(variant):
    run = cost(roci("config/lab/incast.yaml", f"--only {variant} --set duration=100ms"), options="--results out")
    return Case(f"incast, {variant}", hops("roci-lab", run), NS3, (at_least(5, TCP),))


def memory(name, run, options=""):
    sizes = f"--hosts {','.join(str(size) for size in SIZES)}"
    return cost(run, options=f"{sizes} {options}", limit=180), name


def per_host(measured, hosts):
    run, name = measured
    return Figure(f"{name}, from {SIZES[SIZES.index(hosts) - 1]} to {hosts} hosts", run, line(f"kib_per_host_{hosts}"), "KiB", LESS)


OURS = memory("roci-lab", roci("bench/lab/hosts.yaml", "--set topology.leaves=HOSTS/8"), "--results out")
THEIRS = memory("ns-3, TCP", "{bin}/roci-lab-ns3 tcp --hosts HOSTS --each 65536 --ms 0.1")


def threads(number, key):
    cpus = "{core1}" if number == 1 else "{core0},{core1}"
    run = roci("config/lab/fat_tree.yaml", "--only hpcc", number)
    return Figure(f"roci-lab, {number} thread{'s'[:number - 1]}", cost(run, cpus, "--results out"), millions(key), "M/s")


def second_thread(name, key):
    return Case(f"fat-tree of 320 hosts, {name}", threads(2, key), (threads(1, key),))


GROUP = Group(
    name="lab",
    what="packet-hops a second that a core simulates in the lab and in ns-3; memory of a host; a second thread",
    cases=(
        *(incast(variant) for variant in ("ldcp", "hpcc", "dcqcn")),
        *(Case(f"memory of a host of {hosts}", per_host(OURS, hosts), (per_host(THEIRS, hosts),)) for hosts in SIZES[1:]),
        second_thread("time", "hops_per_second"),
        second_thread("CPU time", "hops_per_cpu_second"),
    ),
    notes="A packet-hop is a frame that a host or a switch receives. In the incast 16 hosts at a switch of 100 Gb/s send to one,\n"
          "on one core, per second of CPU time of the whole process. The lab runs whole hosts, their congestion control and the\n"
          "switch, and looks at all queues each microsecond; it and TCP in ns-3 send an acknowledgement for each packet, UDP and bare\n"
          "packets have none. Nobody carries payload or traces. What two threads do for a second of the CPU time of both, over what\n"
          "one does, tells what sharing costs, waiting for each other included.",
)
