"""Pairs of command lines for the live tests: a server and a client."""

import re


class Case:
    """Command lines of a server and a client.

    `target`: the client connects by TCP to an address of a kernel ("tcp"), or by rdma_cm to the address of the device
    ("rdma").
    `share`: belongs to the cases of CI.
    `reliable`: completes on a path that loses packets.
    `expect`: regular expression for the output of a client that always exits with 0.
    `faults`: faults of this case (relay.py).
    `packets`: minimum number of RoCEv2 packets before the connections end.
    `waits`: the client waits for the completions of its requests before it destroys its queue pair.
    """

    def __init__(self, name, server, client, target="tcp", families=(4,), share=False, reliable=True, expect=None,
                 faults="", packets=300, waits=True):
        self.name, self.server, self.client, self.target = name, server, client, target
        self.families, self.share, self.reliable, self.expect = families, share, reliable, expect
        self.faults, self.packets, self.waits = faults, packets, waits

    def is_chosen(self, options):
        if options.only:
            return any(re.search(pattern, self.name) for pattern in options.only)
        if options.faults or options.netem:
            return (self.share or not options.share) and self.reliable and not self.faults
        return self.share or not options.share

    def all_faults(self, options):
        return self.faults or (f"{options.faults},until={self.packets}" if options.faults else "")


def perftest(program, *flags, families=(4,), share=False):
    line = " ".join((program, "-F", *flags))
    unreliable = "UC" in flags or "UD" in flags
    packets = 300
    if program.endswith("_bw") and not {"-a", "-A", "-s"} & set(flags):  # Messages of 64 KiB.
        packets = int(flags[flags.index("-n") + 1]) * 16  # Path MTU of 4096.
    return Case(" ".join((program, *flags)), line, line, "rdma" if "-R" in flags else "tcp", families, share, not unreliable,
                packets=packets)


def pingpong(program, reliable=True):
    line = f"{program} -c"
    return Case(line, line, line, "tcp", (4, 6), True, reliable, packets=1800)


def fio(verb, depth):
    """In fio 3.33, a verifying RDMA server ends after one block, so only the client has checksums in its data."""
    engine = "--ioengine=rdma --bs=64k --size=2m --port=10001"
    return Case(f"fio --verb={verb}", f"fio --name=server {engine} --rw=read --iodepth={depth}",
                f"fio --name=client {engine} --rw=write --iodepth=1 --verify=crc32c --do_verify=0 --verb={verb} --hostname={{remote}}",
                "rdma", expect=r"WRITE:.*io=2048KiB")


def chosen_faults():
    """Drops, repeats, reorders and corrupts one packet of each kind, in each direction. rping compares the data."""
    rping = "rping {role} -v -V -C 20 -S 10000 -a "
    opcodes = ("RC_SEND_ONLY", "RC_READ_REQUEST", "RC_READ_RESPONSE_FIRST", "RC_READ_RESPONSE_MIDDLE", "RC_READ_RESPONSE_LAST",
               "RC_WRITE_FIRST", "RC_WRITE_MIDDLE", "RC_WRITE_LAST", "RC_ACK")
    found = []
    for fault in ("drop", "repeat", "hold", "damage"):
        for opcode in opcodes:
            faults = f"{fault}={opcode}:3"
            found.append(Case(f"rping, {faults}", rping.format(role="-s") + "{local}", rping.format(role="-c") + "{remote}", "rdma",
                              share=fault == "drop", expect="rdma-ping-19: ", faults=faults))
        for opcode in ("RC_FETCH_ADD", "RC_ATOMIC_ACK"):
            line = "ib_atomic_lat -F -A FETCH_AND_ADD -n 20"
            found.append(Case(f"ib_atomic_lat, {fault}={opcode}:3", line, line, share=fault == "drop", faults=f"{fault}={opcode}:3"))
        # The first message of connection management.
        found.append(Case(f"ucmatose, {fault}=UD_SEND_ONLY:1", "ucmatose -b {local}", "ucmatose -s {remote}", "rdma",
                          share=fault == "drop", faults=f"{fault}=UD_SEND_ONLY:1"))
    return found


def cases():
    found = [
        Case("rping", "rping -s -v -C 1000 -a {local}", "rping -c -v -C 1000 -a {remote}", "rdma", (4, 6), True,
             expect="rdma-ping-999: ", packets=5000),
        Case("ucmatose", "ucmatose -b {local}", "ucmatose -s {remote}", "rdma", (4, 6), True, packets=8),
        Case("ucmatose -c 50", "ucmatose -c 50 -b {local}", "ucmatose -c 50 -s {remote}", "rdma", share=True),
        Case("udaddy", "udaddy -b {local}", "udaddy -s {remote}", "rdma", (4, 6), True, reliable=False),
        Case("mckey", "mckey -m 239.77.0.1 -b {local}", "mckey -s -m 239.77.0.1 -b {local}", "rdma", reliable=False, waits=False),
        Case("rstream -S 4096", "rstream -S 4096 -C 200", "rstream -S 4096 -C 200 -s {remote}", "rdma", share=True),
        Case("rstream -S 65536", "rstream -S 65536 -C 50", "rstream -S 65536 -C 50 -s {remote}", "rdma"),
    ]
    found += [pingpong(f"ibv_{kind}_pingpong", kind in ("rc", "srq")) for kind in ("rc", "uc", "ud", "srq")]
    for operation in ("send", "write", "read"):
        bandwidth = f"ib_{operation}_bw"
        found.append(perftest(bandwidth, "-n", "1000", families=(4, 6)))
        found.append(perftest(bandwidth, "-a", "-n", "5", share=operation == "write"))
        found += [perftest(bandwidth, *flags, share=True) for flags in (
            ("-q", "16", "-n", "50"), ("-b", "-n", "100"), ("-R", "-n", "100"))]
        found.append(perftest(bandwidth, "-q", "4", "-n", "100"))
        found.append(perftest(f"ib_{operation}_lat", "-n", "200", share=True))
    # Long enough that the losses of the start, where 16 windows exceed the queue in front of the guest, are few.
    found.append(perftest("ib_write_bw", "-s", "65536", "-q", "16", "-n", "500"))
    # UC and UD have no acknowledgments that keep a sender from overflowing the queue in front of the emulated guest.
    found += [perftest(program, "-c", kind, *flags, share=True) for program, kind, flags in (
        ("ib_send_bw", "UC", ("-s", "1024", "-n", "200")), ("ib_write_bw", "UC", ("-s", "1024", "-n", "200")),
        ("ib_send_bw", "UD", ("-n", "200")), ("ib_send_lat", "UD", ("-n", "200")))]
    found += [perftest(f"ib_atomic_{what}", "-A", kind, "-n", "200", share=True)
              for what in ("bw", "lat") for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP")]
    found += [fio(verb, depth) for verb, depth in (("write", 16), ("read", 16), ("send", 64))]
    return found + chosen_faults()
