#!/usr/bin/env python3
"""Runs unmodified RDMA programs between a Rocinante device and the soft-RoCE of a Linux kernel in an emulated guest, in both roles.

    tests/live/live_test.py build/release/bin                      kernel 6.12, all cases
    tests/live/live_test.py build/release/bin --kernel 6.1 --only rping 'ib_send_bw -R'
    tests/live/live_test.py build/release/bin --list

Each case is a pair of processes of the same program: the server on one side, the client on the other. Both must exit with 0. The
network is a namespace of its own. Requires root. Exit status 77 and one sentence where a requirement is not met."""

import argparse
import re
import subprocess
import sys
import tempfile
import time

import guest
import session

LIMIT = 120  # seconds, of one program
LISTENS_WITHIN = 10  # seconds, for a server to start
REJECTED = ("REJECTED", "rejected", "Unexpected CM event bl blka 8", "Connection refused", "Couldn't connect")


class Case:
    """Command lines of a server and a client. `target`: the client connects by TCP to an address of a kernel ("tcp"), or by rdma_cm to
    that of the device ("rdma")."""

    def __init__(self, name, server, client, target="tcp", families=(4,)):
        self.name, self.server, self.client, self.target, self.families = name, server, client, target, families


def perftest(program, *flags, families=(4,)):
    line = " ".join((program, "-F", *flags))
    return Case(" ".join((program, *flags)), line, line, "rdma" if "-R" in flags else "tcp", families)


def pingpong(program, *flags):
    line = " ".join((program, *flags))
    return Case(line, line, line, "tcp", (4, 6))


def cases():
    found = [
        Case("rping", "rping -s -v -C 1000 -a {local}", "rping -c -v -C 1000 -a {remote}", "rdma", (4, 6)),
        Case("ucmatose", "ucmatose -b {local}", "ucmatose -s {remote}", "rdma", (4, 6)),
        Case("ucmatose -c 50", "ucmatose -c 50 -b {local}", "ucmatose -c 50 -s {remote}", "rdma"),
        Case("udaddy", "udaddy -b {local}", "udaddy -s {remote}", "rdma", (4, 6)),
        Case("rstream", "rstream -S all", "rstream -S all -s {remote}", "rdma"),
    ]
    found += [pingpong(f"ibv_{kind}_pingpong", "-c") for kind in ("rc", "uc", "ud", "srq")]
    for operation in ("send", "write", "read"):
        bandwidth = f"ib_{operation}_bw"
        found.append(perftest(bandwidth, "-n", "1000", families=(4, 6)))
        found += [perftest(bandwidth, *flags) for flags in (
            ("-a", "-n", "5"), ("-q", "4", "-n", "100"), ("-q", "16", "-n", "100"), ("-b", "-n", "200"), ("-R", "-n", "200"))]
        found.append(perftest(f"ib_{operation}_lat", "-n", "200"))
    found += [perftest(program, "-c", kind, "-n", "200") for program, kind in (
        ("ib_send_bw", "UC"), ("ib_write_bw", "UC"), ("ib_send_bw", "UD"), ("ib_send_lat", "UD"))]
    found += [perftest(f"ib_atomic_{what}", "-A", kind, "-n", "200") for what in ("bw", "lat") for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP")]
    return found


class Side:
    """Device of a program. The GID indices are the same on both sides: 0 link-local, 1 IPv4, 2 IPv6."""

    def __init__(self, device, rdma_host, tcp_host):
        self.device, self.rdma_host, self.tcp_host = device, rdma_host, tcp_host

    def line(self, line, target, other, family, is_client):
        line = line.format(local=guest.address(self.rdma_host, family), remote=guest.address(other.rdma_host, family))
        index = 1 if family == 4 else 2
        if line.startswith("ib_"):
            line += f" -d {self.device} -x {index}"
        elif line.startswith("ibv_"):
            line += f" -d {self.device} -g {index}"
        else:
            return line
        if is_client:
            line += " " + guest.address(other.rdma_host if target == "rdma" else other.tcp_host)
        return line


class RociProgram:
    """A program with the Rocinante device."""

    def __init__(self, options, line):
        self.output = tempfile.TemporaryFile(dir=options.folder)
        self.process = subprocess.Popen([options.bin / "roci-run", "--config", options.config, *line.split()],
                                        stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)

    def wait(self, limit):
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None, self.text()
        return self.process.returncode, self.text()

    def text(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


class GuestProgram:
    """A program with the soft-RoCE device of the guest."""

    def __init__(self, peer, line):
        self.peer, self.name = peer, line.split()[0]
        self.command = peer.start(line, LIMIT)

    def wait(self, limit):
        status, text = self.command.wait(limit)
        if status is None:
            self.peer.run(f"killall -9 {self.name}")
        return status, text


def run_pair(options, peer, case, family, roci_serves):
    """Empty when both programs have exited with 0, else the output of both."""
    roci = Side("roci0", guest.DEVICE, guest.HOST)
    rxe = Side("rxe0", guest.GUEST, guest.GUEST)
    server, client = (roci, rxe) if roci_serves else (rxe, roci)

    def start(side, line):
        return RociProgram(options, line) if side is roci else GuestProgram(peer, line)

    first = start(server, server.line(case.server, case.target, client, family, False))
    line = client.line(case.client, case.target, server, family, True)
    deadline = time.monotonic() + LIMIT
    time.sleep(0.5)
    while True:
        # The server refuses connections until it listens.
        status, text = start(client, line).wait(max(deadline - time.monotonic(), 1))
        was_rejected = status is not None and 0 < status < 128 and any(word in text for word in REJECTED)  # not by a signal
        if not was_rejected or time.monotonic() > deadline - LIMIT + LISTENS_WITHIN:
            break
        time.sleep(0.3)
    server_status, server_text = first.wait(10 if status == 0 else 1)
    if status == 0 and server_status == 0:
        return ""
    return f"client: exit status {status}\n{text[-800:]}\nserver: exit status {server_status}\n{server_text[-800:]}"


def run_all(options, peer):
    failed, count, begin = [], 0, time.monotonic()
    for case in cases():
        if options.only and not any(re.search(pattern, case.name) for pattern in options.only):
            continue
        for family in case.families:
            for roci_serves in (True, False):
                count += 1
                started = time.monotonic()
                problem = run_pair(options, peer, case, family, roci_serves)
                name = f"{case.name}, IPv{family}, {'server' if roci_serves else 'client'}"
                print(f"{'FAILED' if problem else 'ok':<7} {name} ({time.monotonic() - started:.1f} s)", flush=True)
                if problem:
                    failed.append(name)
                    print(problem, flush=True)
    print(f"{peer.kernel()}, path MTU {options.path_mtu}: {count - len(failed)} of {count} pairs passed "
          f"({time.monotonic() - begin:.0f} s)" + "".join(f"\n  failed: {name}" for name in failed))
    return 1 if failed or count == 0 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    session.add_arguments(parser)
    parser.add_argument("--path-mtu", type=int, choices=(1024, 4096), default=1024, help="1024")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="cases whose name has one of the regular expressions")
    parser.add_argument("--list", action="store_true", help="print the cases")
    options = parser.parse_args()
    if options.list:
        print("\n".join(case.name for case in cases()))
        return 0
    with session.session(options, 1500 if options.path_mtu == 1024 else 4200) as peer:
        return run_all(options, peer)


if __name__ == "__main__":
    sys.exit(main())
