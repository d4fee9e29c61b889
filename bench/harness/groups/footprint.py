"""Start time, idle CPU time and memory of a host."""

from harness.case import Case, Figure, Group, LESS, at_most
from harness.programs import command, line


def footprint(name, run, key, unit):
    return Figure(name, command(f"{{bin}}/roci-footprint {run}"), line(key), unit, LESS)


HOST = footprint("resident memory", "memory", "resident_host_mib", "MiB")

GROUP = Group(
    name="footprint",
    target="7",
    what="start to first message, idle CPU, memory of a host and of a queue pair",
    cases=(
        Case("start", footprint("start to first message", "start", "start_to_first_message_ms", "ms"), (),
             (at_most(300),)),
        Case("idle CPU", footprint("CPU time, idle policy sleep", "idle 3", "idle_cpu_percent", "%"), (), (at_most(2),)),
        Case("memory of a host", HOST,
             (footprint("DPDK alone, before the host", "memory", "resident_eal_mib", "MiB"),
              footprint("program alone, before DPDK", "memory", "resident_program_mib", "MiB")), (at_most(64),)),
        Case("memory of an idle queue pair",
             footprint("resident memory per queue pair, 20,000, depth 16", "queue-pairs", "idle_qp_bytes", "B"),
             (footprint("the same after one message on each", "queue-pairs", "used_qp_bytes", "B"),), (at_most(1024),)),
    ),
)
