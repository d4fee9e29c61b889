#!/usr/bin/env python3
"""Runs unmodified RDMA programs between a Rocinante device and the soft-RoCE of a Linux kernel in an emulated guest, in both roles.

    tests/live/live_test.py build/release/bin                      kernel 6.12, all cases
    tests/live/live_test.py build/release/bin --kernel 6.1 --only rping 'ib_send_bw -R'
    tests/live/live_test.py build/release/bin --share --faults loss=0.01,seed=7
    tests/live/live_test.py build/release/bin --list

Each case is a pair of processes of the same program: the server on one side, the client on the other. Both must exit with 0. The
network is a namespace of its own. Requires root. Exit status 77 and one sentence if a requirement is not met, or 1 with
ROCI_REQUIRE_ALL, as in CI."""

import argparse
import atexit
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import connections
import guest
import relay
import session
from cases import cases

LIMIT = 120  # seconds, of one program
LISTENS_WITHIN = 10  # seconds, for a server to start
MOST_REPETITIONS = 10  # 3 were not enough while a compiler used both cores
REJECTED_EARLY = "RDMA_CM_EVENT_REJECTED; error: 8"  # no listener
# Output of clients while no process listens. The reason 8 of a reject message is an unknown service; fio and perftest do not
# print the reason.
NOT_LISTENING = re.compile("RDMA_CM_EVENT_REJECTED, error:? 8|event is RDMA_CM_EVENT_REJECTED|rejected|"
                           "Unexpected CM event bl blka 8|Connection refused|Couldn't connect")
RESENT = re.compile(r"packets_retransmitted +([\d,]+)")
SENT = re.compile(r"tx_frames +([\d,]+)")


class Side:
    """Device of a program. `gid_index`: by address family. `tcp_address`: replaces that of `tcp_host` if the device has
    a VLAN."""

    def __init__(self, device, rdma_host, tcp_host, gid_index, tcp_address=None):
        self.device, self.rdma_host, self.tcp_host, self.gid_index = device, rdma_host, tcp_host, gid_index
        self.tcp_address = tcp_address

    def line(self, line, target, other, family, is_client):
        line = line.format(local=guest.address(self.rdma_host, family), remote=guest.address(other.rdma_host, family))
        index = self.gid_index[family]
        if line.startswith("ib_"):
            line += f" -d {self.device} -x {index}"
        elif line.startswith("ibv_"):
            line += f" -d {self.device} -g {index}"
        else:
            return line
        if is_client:
            if target == "rdma":
                line += " " + guest.address(other.rdma_host)
            else:
                line += " " + (other.tcp_address or guest.address(other.tcp_host))
        return line


class RociProgram:
    """A program with the Rocinante device. It runs in a separate session, so that it is killed if this program ends
    early."""

    def __init__(self, options, line):
        self.output = tempfile.TemporaryFile(dir=options.folder)
        self.process = subprocess.Popen([options.bin / "roci-run", "--stats", "--config", options.config, *line.split()],
                                        stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)
        atexit.register(self.kill)

    def wait(self, limit):
        """Returns (status, output). The status is None if the program has not ended in time."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            return None, self.text()
        return self.process.returncode, self.text()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # Kills roci-run and the program.
            self.process.wait()

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
            self.kill()
        return status, text

    def kill(self):
        self.peer.run(f"killall -9 {self.name}")


class Bench:
    """Both sides; starts programs on them."""

    def __init__(self, options, peer, network):
        self.options, self.peer, self.network = options, peer, network
        roci_tcp, rxe_tcp = (guest.CONTROL_HOST, guest.CONTROL) if options.vlan else (None, None)
        self.roci = Side("roci0", guest.DEVICE, guest.HOST, {4: 1, 6: 2}, roci_tcp)
        self.rxe = Side("rxe0", guest.GUEST, guest.GUEST, {family: peer.gid_index(family) for family in (4, 6)}, rxe_tcp)

    def set_netem(self):
        """Returns why tc refuses the rules, or an empty string."""
        if not self.options.netem:
            return ""
        status, text = self.peer.run(f"tc qdisc add dev eth0 root netem {self.options.netem}")
        return "" if status == 0 else text.strip() or "no answer of the guest"

    def restart_guest(self):
        self.peer.restart()
        refused = self.set_netem()
        if refused:
            raise RuntimeError(f"netem after a restart of the guest: {refused}")

    def roles(self, roci_serves):
        """Returns server and client."""
        return (self.roci, self.rxe) if roci_serves else (self.rxe, self.roci)

    def start(self, side, line):
        return RociProgram(self.options, line) if side is self.roci else GuestProgram(self.peer, line)


def number(pattern, text):
    found = pattern.search(text)
    return int(found[1].replace(",", "")) if found else 0


def run_pair(bench, case, family, roci_serves):
    """Returns (problem, output of the Rocinante side, repetitions, starts of the client before the server listened). Two
    kinds of pairs are repeated:
    - perftest 4.5 with -R connects when the server has answered by TCP, which may be before the server listens. Its
      client then repeats the connection with an identifier that it has destroyed (rdma_cm_client_connection), and ends
      by SIGSEGV with any librdmacm.
    - A client that does not wait for its completions (mckey): Linux discards the requests that its work queue has not
      executed when the queue pair is destroyed. Rocinante sends them."""
    for repetitions in range(MOST_REPETITIONS + 1):
        problem, text, early = run_pair_once(bench, case, family, roci_serves)
        was_early = " -R" in case.client and REJECTED_EARLY in problem
        if not problem or not (was_early or (roci_serves and not case.waits)):
            break
    return problem, text, repetitions, early


def run_pair_once(bench, case, family, roci_serves):
    """Returns (problem, output of the Rocinante side, starts of the client before the server listened). The problem is empty if
    both programs have exited with 0."""
    server, client = bench.roles(roci_serves)
    first = bench.start(server, server.line(case.server, case.target, client, family, False))
    line = client.line(case.client, case.target, server, family, True)
    deadline = time.monotonic() + LIMIT
    time.sleep(0.5)
    early = 0
    while True:
        # The server rejects connections until it listens.
        status, text = bench.start(client, line).wait(max(deadline - time.monotonic(), 1))
        is_complete = status == 0 and (not case.expect or re.search(case.expect, text))
        # Exit by a signal does not count.
        was_rejected = status is not None and status < 128 and NOT_LISTENING.search(text)
        was_rejected = was_rejected and not is_complete and REJECTED_EARLY not in text
        if not was_rejected or time.monotonic() > deadline - LIMIT + LISTENS_WITHIN:
            break
        early += 1
        time.sleep(0.3)
    server_status, server_text = first.wait(10 if status == 0 and case.waits else 1)
    roci_text = server_text if roci_serves else text
    outputs = f"client: exit status {status}\n{text[-1500:]}\nserver: exit status {server_status}\n{server_text[-1500:]}"
    if status != 0 or server_status != 0:
        return outputs, roci_text, early
    if not is_complete:
        return f"not in the client's output: {case.expect}\n{outputs}", roci_text, early
    return "", roci_text, early


class Results:
    def __init__(self):
        self.failed, self.count, self.begin = [], 0, time.monotonic()

    def add(self, name, problem, started, note=""):
        self.count += 1
        print(f"{'FAILED' if problem else 'ok':<7} {name} ({time.monotonic() - started:.1f} s){note}", flush=True)
        if problem:
            self.failed.append(name)
            print(problem, flush=True)

    def close(self, conditions):
        print(f"{conditions}: {self.count - len(self.failed)} of {self.count} passed ({time.monotonic() - self.begin:.0f} s)" +
              "".join(f"\n  failed: {name}" for name in self.failed))
        return 1 if self.failed or self.count == 0 else 0


def run_case(bench, results, name, run):
    """Adds the result of run(), which returns (problem, note). If the guest's kernel panics, the case has failed, and
    the guest is started again for the next one."""
    started = time.monotonic()
    try:
        problem, note = run()
    except OSError as error:  # The guest does not accept a connection.
        problem, note = f"connection to the guest: {error}; the end of its console:\n{bench.peer.log()[-3000:]}", ""
    crash = bench.peer.crash()
    if crash:
        problem = f"the guest's kernel panicked:\n{crash[:6000]}"
        bench.restart_guest()
    results.add(name, problem, started, note)


def run_all(options, bench, results):
    for case in cases():
        if not case.is_chosen(options):
            continue
        for family, roci_serves, _ in itertools.product(case.families, (True, False), range(options.times)):
            def run(case=case, family=family, roci_serves=roci_serves):
                before = sum(bench.network.counts.values())
                bench.network.set_faults(case.all_faults(options))
                problem, text, repetitions, early = run_pair(bench, case, family, roci_serves)
                bench.network.close()
                if case.faults and not problem and sum(bench.network.counts.values()) == before:
                    problem = f"the relay has injected no fault: {case.faults}"
                sent, resent = number(SENT, text), number(RESENT, text)
                note = f", {resent} of {sent} packets sent again" if resent else ""
                note += f", client started {early + 1} times" if early else ""
                return problem, note + (f", repeated {repetitions} times" if repetitions else "")

            run_case(bench, results, f"{case.name}, IPv{family}, {'server' if roci_serves else 'client'}", run)
    bench.network.set_faults(options.faults)
    for check, roles in connections.CHECKS:
        if options.only and not any(re.search(pattern, check.__name__) for pattern in options.only):
            continue
        for roci_serves in roles:
            run_case(bench, results, f"{check.__name__}, {'server' if roci_serves else 'client'}",
                     lambda check=check, roci_serves=roci_serves: (check(bench, roci_serves), ""))


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    session.add_arguments(parser)
    parser.add_argument("--path-mtu", type=int, choices=(1024, 4096), default=1024, help="1024")
    parser.add_argument("--vlan", type=int, default=0, help="VLAN of both devices, 1 to 4094; 0, the default: untagged")
    parser.add_argument("--faults", default="", metavar="FAULTS", help="faults of a relay between the two (relay.py), like loss=0.01,seed=7; "
                        "only cases that complete on a path with loss")
    parser.add_argument("--netem", default="", metavar="RULES", help="of tc-netem, for packets that the guest sends, like 'delay 2ms loss 1%%'")
    parser.add_argument("--share", action="store_true", help="only the cases of CI")
    parser.add_argument("--times", type=int, default=1, help="runs of each case")
    parser.add_argument("--only", nargs="+", metavar="PATTERN", help="cases whose name has one of the regular expressions")
    parser.add_argument("--list", action="store_true", help="print the cases")
    return parser, parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Exits normally, so that the programs are killed.
    parser, options = read_arguments()
    if options.list:
        print("\n".join(case.name for case in cases() if case.is_chosen(options)))
        return 0
    try:
        relay.Faults(options.faults)
    except relay.BadFaults as bad:
        parser.error(str(bad))
    results = Results()
    with session.session(options, 1500 if options.path_mtu == 1024 else 4200, options.vlan) as (peer, network):
        bench = Bench(options, peer, network)
        refused = bench.set_netem()
        if refused:
            parser.error(f"--netem: {refused}")
        run_all(options, bench, results)
        network.close()
        if options.faults and not options.only and not sum(network.counts.values()):
            results.add("relay", f"no fault was injected: {options.faults}", time.monotonic())
        conditions = [peer.kernel(), f"path MTU {options.path_mtu}"]
        conditions += [f"VLAN {options.vlan}"] if options.vlan else []
        conditions += [f"faults {options.faults}"] if options.faults else []
        conditions += ["relay: " + ", ".join(f"{kind} {count}" for kind, count in network.counts.items())] if network.counts else []
        conditions += [f"netem {options.netem}"] if options.netem else []
        return results.close(", ".join(conditions))


if __name__ == "__main__":
    sys.exit(main())
