"""Two processes: shared memory compared with other transports of the same machine."""

from harness.case import Case, Group, at_least, at_most
from harness.peers import (fabric_bandwidth, fabric_latency, kernel_latency, kernel_tcp_bandwidth, kernel_udp_bandwidth,
                           testpmd_bandwidth, testpmd_memif, ucx_bandwidth, ucx_latency)
from harness.programs import bandwidth, median_latency, over_memif

FRAME = 14 + 20 + 8 + 12 + 4096 + 4  # Ethernet, IPv4, UDP, BTH, payload, ICRC


def write(size):
    return bandwidth("roci-perf write bw", over_memif(f"write bw -s {size} -m 4096 -D {{seconds}}"))


PORT = testpmd_bandwidth(testpmd_memif(FRAME), 4096)
UCX_64K, UCX_1M = ucx_bandwidth("tag_bw", 65536, 20000), ucx_bandwidth("tag_bw", 1 << 20, 1500)
UCX_LATENCY = ucx_latency("tag_lat", 64, 50000)

GROUP = Group(
    name="memif",
    target="4",
    what="two processes over shared memory (memif), compared with UCX, libfabric, TCP and UDP",
    cases=(
        Case("WRITE 64 KiB", write(65536),
             (UCX_64K, ucx_bandwidth("ucp_put_bw", 65536, 20000), fabric_bandwidth(65536, 10000),
              kernel_tcp_bandwidth(65536), kernel_udp_bandwidth(), PORT),
             (at_least(5, UCX_64K.name),)),
        Case("WRITE 1 MiB", write(1 << 20),
             (UCX_1M, ucx_bandwidth("ucp_put_bw", 1 << 20, 1500), fabric_bandwidth(1 << 20, 1000),
              kernel_tcp_bandwidth(1 << 20), PORT),
             (at_least(5, UCX_1M.name),)),
        Case("WRITE latency, 64 bytes",
             median_latency("roci-perf write lat", over_memif("write lat -s 64 -D {seconds}")),
             (UCX_LATENCY, ucx_latency("ucp_put_lat", 64, 50000), fabric_latency(64, 20000), kernel_latency("tcp", 64),
              kernel_latency("udp", 64)),
             (at_most(0.25, UCX_LATENCY.name),)),
    ),
    notes="Each process has its own core. Latencies are half round trips: medians; an average for libfabric.",
)
