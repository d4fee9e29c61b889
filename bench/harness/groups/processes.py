"""Unmodified programs of one machine in a network of roci-run without a switch: the targets of shared-memory links."""

from harness.case import Case, Figure, Group, LESS, at_least, at_most
from harness.peers import (NETWORK, beside, perftest_average, perftest_column, perftest_of, ucx_bandwidth, ucx_latency,
                           ucx_latency_beside_loops)
from harness.programs import command, line


def latency(program, network, name):
    run = perftest_of(program, "-s 8 -m 4096 -n 20000", network)
    return Figure(name, run, perftest_column(8, 2, 1000), "ns", LESS)


def latency_beside_loops(program, network, name):
    """Average of a run of seconds, as a median does not show preemption."""
    run = perftest_of(program, "-s 8 -m 4096 -D {seconds}", network)
    return Figure(name, beside(run), perftest_average(8), "ns", LESS)


def bandwidth(size, network, name):
    run = perftest_of("ib_write_bw", f"-s {size} -m 4096 -D {{seconds}} --report_gbits", network)
    return Figure(name, run, perftest_column(size, 1, 1), "Gb/s")


def mpi(ranks, test, name, tls, before=""):
    """Runs `test` under mpirun. All ranks share the two CPUs."""
    variables = f"UCX_TLS={tls},self UCX_NET_DEVICES={'roci0:1' if before else 'lo'} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    run = command(f"{variables} {before} mpirun -n {ranks} --oversubscribe --mca pml ucx --mca osc ucx --mca opal_common_ucx_tls any "
                  f"--mca opal_common_ucx_devices any --mca mpi_yield_when_idle 1 {{bin}}/mpi-times {test}", limit=120)
    return Figure(name, run, line("median_us"), "us", LESS)


def mpi_case(name, ranks, test, most):
    tcp = mpi(ranks, test, "UCX over TCP", "tcp")
    return Case(name, mpi(ranks, test, "UCX over rc", "rc_v", f"{{bin}}/roci-run --config {NETWORK}"), (tcp,), (at_most(most, tcp.name),))


def cost(name, arguments, key, unit, most):
    run = command(f"{{bench}}/processes/costs.py {{bin}} {arguments}", limit=120)
    return Case(name, Figure(name, run, line(key), unit, LESS), (), (at_most(most),))


TAG, PUT = ucx_latency("tag_lat", 8, 20000), ucx_latency("ucp_put_lat", 8, 20000)
POSIX = ucx_latency("tag_lat", 8, 100000, "posix")
TAG_BESIDE = ucx_latency_beside_loops("tag_lat", 8, 20000)


def bandwidth_case(name, size, messages, least):
    tcp = ucx_bandwidth("tag_bw", size, messages)
    return Case(name, bandwidth(size, NETWORK, "perftest"),
                (bandwidth(size, "{bench}/processes/net-icrc.yaml", "perftest, icrc: on"), tcp), (at_least(least, tcp.name),))


GROUP = Group(
    name="processes",
    target="",
    what="unmodified programs in processes of one machine, over shared memory, compared with UCX",
    cases=(
        Case("ib_send_lat, 8 bytes", latency("ib_send_lat", NETWORK, "perftest"), (TAG, POSIX),
             (at_most(0.15, TAG.name), at_most(3, POSIX.name))),
        Case("ib_send_lat, 8 bytes, with a busy loop per core",
             latency_beside_loops("ib_send_lat", NETWORK, "perftest with two busy loops, average"), (TAG_BESIDE,),
             (at_most(0.5, TAG_BESIDE.name),)),
        Case("ib_write_lat, 8 bytes", latency("ib_write_lat", NETWORK, "perftest"), (PUT,), (at_most(1.0, PUT.name),)),
        Case("ib_write_lat, 8 bytes, placed by the sender",
             latency("ib_write_lat", "{bench}/processes/net-placed.yaml", "perftest, placement: sender"), (PUT,), (at_most(0.3, PUT.name),)),
        bandwidth_case("ib_write_bw, 64 KiB", 65536, 20000, 6),
        bandwidth_case("ib_write_bw, 1 MiB", 1 << 20, 1500, 2),
        mpi_case("Open MPI, 2 ranks, 8 bytes", 2, "pingpong 8 20000", 0.5),
        mpi_case("Open MPI, 8 ranks, allreduce of 1 MiB", 8, "allreduce 1048576 20", 1.0),
        cost("start of the first process of a network", "start", "first_start_ms", "ms", 400),
        cost("start of the next process", "start", "next_start_ms", "ms", 150),
        cost("memory with one peer", "memory 1", "resident_mib", "MiB", 64),
        cost("memory with 31 peers", "memory 31", "resident_mib", "MiB", 96),
        cost("CPU time of a blocked process", "blocked", "blocked_percent", "%", 0.1),
        cost("wake-ups of a blocked process", "blocked", "wake_ups_per_second", "1/s", 10),
    ),
    notes="Each perftest program has its own core; MPI ranks share both. Latencies are half round trips: medians, and "
          "averages with busy loops. Start: from "
          "roci-run to the end of ibv_devinfo. Memory: resident, of a process with messages to and from 1 and 31 others.",
)
