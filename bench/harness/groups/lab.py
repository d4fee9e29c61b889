"""Simulation rate of roci-lab per second of CPU time, compared with ns-3; memory per host; scaling to two threads."""

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


# Virtual times that take two to three seconds on one core.
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


ROCI_LAB = memory("roci-lab", roci("bench/lab/hosts.yaml", "--set topology.leaves=HOSTS/8"), "--results out")
IDLE = memory("roci-lab", roci("bench/lab/idle_hosts.yaml", "--set topology.leaves=HOSTS/8"), "--results out")
NS3_TCP = memory("ns-3, TCP", "{bin}/roci-lab-ns3 tcp --hosts HOSTS --each 65536 --ms 0.1")


def threads(number, key):
    cpus = "{core1}" if number == 1 else "{core0},{core1}"
    run = roci("config/lab/fat_tree.yaml", "--only hpcc", number)
    return Figure(f"roci-lab, {number} thread{'s'[:number - 1]}", cost(run, cpus, "--results out"), millions(key), "M/s")


def second_thread(name, key):
    return Case(f"fat-tree of 320 hosts, {name}", threads(2, key), (threads(1, key),))


GROUP = Group(
    name="lab",
    what="packet-hops per second of a core in roci-lab and ns-3; memory per host; scaling to two threads",
    cases=(
        *(incast(variant) for variant in ("ldcp", "hpcc", "dcqcn")),
        *(Case(f"memory per host, {hosts} hosts", per_host(ROCI_LAB, hosts), (per_host(NS3_TCP, hosts),)) for hosts in SIZES[1:]),
        *(Case(f"memory per host without traffic, {hosts} hosts", per_host(IDLE, hosts), (per_host(NS3_TCP, hosts),))
          for hosts in SIZES[1:]),
        second_thread("time", "hops_per_second"),
        second_thread("CPU time", "hops_per_cpu_second"),
    ),
    notes="A packet-hop is a frame that a host or a switch receives. Incast: 16 hosts send to one at a switch of 100 Gb/s, on one\n"
          "core; rates are per second of CPU time of the whole process. roci-lab runs complete hosts with congestion control and the\n"
          "switch, and samples all queues every microsecond. roci-lab and ns-3 with TCP acknowledge each packet; UDP and bare packets\n"
          "have no acknowledgments. Payload is not carried, and no traces are written. The ratio of CPU time of two threads to one\n"
          "is the cost of sharing, including waiting for each other.",
)
