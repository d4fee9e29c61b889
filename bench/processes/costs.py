#!/usr/bin/env python3
"""Resource usage of programs in a network of roci-run without a switch: start time, memory, and CPU time while blocked.

    costs.py BIN start     time until ibv_devinfo has opened the device, for the first process in the network and the next
    costs.py BIN memory N  resident memory of a process that exchanges messages with N others
    costs.py BIN blocked   CPU time, in percent of a core, and wake-ups of a process that is blocked in ibv_get_cq_event

Prints lines of a name and a number."""

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1]).resolve()


def roci_run(*command, **options):
    return subprocess.Popen([str(BIN / "roci-run"), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def until(process, text):
    for line in process.stdout:
        if text in line:
            return
    raise SystemExit(f"costs: '{text}' did not appear in the output of {process.args}")


def end(process):
    process.send_signal(signal.SIGTERM)
    process.wait()
    process.stdout.close()


def opened(environment):
    """Returns the milliseconds until a program has opened the device."""
    begin = time.monotonic()
    process = roci_run("ibv_devinfo", env=environment)
    process.communicate()
    if process.returncode != 0:
        raise SystemExit("costs: ibv_devinfo failed")
    return (time.monotonic() - begin) * 1000


def start():
    first, following = [], []
    for _ in range(7):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "ROCI_RUNTIME": folder}
            first.append(opened(environment))
            holder = roci_run("ibv_asyncwatch", env=environment)
            until(holder, "async event")
            following.append(opened(environment))
            end(holder)
    print(f"first_start_ms {statistics.median(first):.1f}")
    print(f"next_start_ms {statistics.median(following):.1f}")


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("costs: the process has ended")


def children(pid):
    return [int(text) for text in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def memory(peers):
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ROCI_RUNTIME": folder}
        center = roci_run(str(BIN / "process-star"), "center", str(peers), folder, env=environment)
        others = [roci_run(str(BIN / "process-star"), "peer", str(number), folder, env=environment) for number in range(peers)]
        until(center, "all have exchanged messages")
        print(f"resident_mib {resident_mib(center.pid):.1f}")
        for process in (*others, center):
            end(process)


def processor_time(pid):
    """Returns the CPU seconds and the voluntary context switches of all threads."""
    seconds = switches = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
        switches += next(int(line.split()[1]) for line in (task / "status").read_text().splitlines()
                         if line.startswith("voluntary_ctxt_switches"))
    return seconds, switches


def blocked():
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ROCI_RUNTIME": folder}
        center = roci_run(str(BIN / "process-star"), "center", "1", folder, env=environment)
        peer = roci_run(str(BIN / "process-star"), "peer", "0", folder, env=environment)
        until(center, "all have exchanged messages")
        time.sleep(1)
        seconds, switches = processor_time(center.pid)
        time.sleep(5)
        later, switches_later = processor_time(center.pid)
        print(f"blocked_percent {(later - seconds) / 5 * 100:.4f}")
        print(f"wake_ups_per_second {(switches_later - switches) / 5:.1f}")
        for process in (peer, center):
            end(process)


if __name__ == "__main__":
    {"start": start, "memory": lambda: memory(int(sys.argv[3])), "blocked": blocked}[sys.argv[2]]()
