#!/usr/bin/env python3
"""Kills and stops processes of pairs at random instants, and checks what the other process of the pair reports.

    tests/programs/killed.py build/release/bin --times 10000
    tests/programs/killed.py build/release/bin --times 100 --seed 7 --hold

A pair of killed-check processes (killed_check.c) exchanges RDMA WRITEs, SENDs and READs in a network of its own. Each time, one
process of the two is killed (SIGKILL), also while it starts, connects or is stopped; or stopped (SIGSTOP) for less than its peer's
time-outs; or stopped until its peer's requests have failed. A process that was killed is replaced by a new one.

Expected of the other process:
- after a kill: the oldest outstanding request of each queue pair ends with IBV_WC_RETRY_EXC_ERR and the others with
  IBV_WC_WR_FLUSH_ERR; an rdma_cm connection that was established ends with RDMA_CM_EVENT_DISCONNECTED; both within 100 ms (--bound)
- after a short stop: all requests of both processes complete without an error
- during a long stop: as after a kill, by the time-outs (4 of 67 ms)

At the end no process has the network's shared memory, no slot is locked, and the runtime folder has documented files only.

`./roci test --ci` runs it for 30 times with a constant seed. Exit status 1 when anything differs."""

import argparse
import collections
import contextlib
import fcntl
import os
import pathlib
import random
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

RETRY_EXC_ERR = 12  # enum ibv_wc_status
QUEUE_PAIRS = ("WRITE", "SEND", "READ", "rdma_cm")
LIMIT = 60  # seconds until an expected report is a failure
HANDSHAKE_LIMIT = 20
SHORT = 0.2  # seconds: the longest short stop, shorter than the retries of 0.27 s
NET = "killed"
CONFIG = f"net: {{name: {NET}, connection_manager: {{response_timeout: 67ms, retries: 3}}}}\n"
# docs/roci-run.md, Network folder; a network without a switch
FILES = ("net.yaml", ".net.yaml", "join.lock", "slots", "crash-notices")


class Due(Exception):
    """Raised at the time at which a process is to be killed or stopped."""


class Failure(Exception):
    """A process did not behave as expected."""


class Program:
    """A killed-check process under roci-run."""

    def __init__(self, command, environment, folder):
        self.errors = tempfile.TemporaryFile(dir=folder)
        self.process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.pid = self.process.pid
        self.pidfd = os.pidfd_open(self.pid)
        self.output = self.process.stdout.fileno()
        self.text = b""
        self.address = None
        self.forget()

    def forget(self):
        """Resets the state for a new connection."""
        self.reports = collections.defaultdict(list)
        self.begun = self.going = self.active = False
        self.traffic = self.waiting = None

    def send(self, command):
        try:
            self.process.stdin.write(f"{command}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError as broken:
            raise Failure(f"exited unexpectedly: {self.describe()}") from broken

    def receive(self):
        read = os.read(self.output, 65536)
        *lines, self.text = (self.text + read).split(b"\n")
        for line in lines:
            word, *values = line.decode().split()
            if word == "ready":
                self.address = values[0]
            else:
                self.reports[word].append(values)
        return bool(read)

    def stop(self):
        """Stops the process. Returns when all threads have stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self):
        os.kill(self.pid, signal.SIGCONT)

    def error_text(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip()

    def describe(self):
        reports = ", ".join(f"{word} {' '.join(values)}".strip() for word, all_of in self.reports.items() for values in all_of)
        state = "running" if self.process.poll() is None else f"exit status {self.process.returncode}"
        return (f"process {self.pid} ({state}, address {self.address}, {'active' if self.active else 'passive'}, "
                f"{self.traffic}): {reports or 'no reports'}; {self.error_text() or 'no errors printed'}")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()
        os.close(self.pidfd)


def memory_of(pid):
    """Inodes of networks' shared memory that a process has open or mapped."""
    found = set()
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:rocinante"):
                    found.add(os.stat(f"/proc/{pid}/fd/{fd}").st_ino)
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            if "/memfd:rocinante" in line:
                found.add(int(line.split()[4]))
    return found


def is_locked(file):
    """Whether another process has an fcntl lock on the file, like the owner of a slot."""
    with open(file, "rb+") as opened:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        return struct.unpack("hhqqi4x", fcntl.fcntl(opened, fcntl.F_GETLK, lock))[0] != fcntl.F_UNLCK


class Delays(threading.Thread):
    """Measures the delay of a thread that sleeps for 5 ms. Other load adds this delay to all measured times."""

    PERIOD = 0.005

    def __init__(self):
        super().__init__(daemon=True)
        self.longest = 0.0  # seconds, since the last reset
        self.all = []
        self.start()

    def run(self):
        while True:
            begin = time.monotonic()
            time.sleep(self.PERIOD)
            delay = time.monotonic() - begin - self.PERIOD
            self.longest = max(self.longest, delay)
            self.all.append(delay)


class Results:
    def __init__(self):
        self.actions = collections.Counter()
        self.outcomes = collections.Counter()
        self.times = collections.defaultdict(list)  # ms
        self.late = []
        self.failures = []

    def add_time(self, what, nanoseconds):
        self.times[what].append(nanoseconds / 1e6)

    def table(self):
        lines = [f"{'action':<40} {'times':>7}"]
        lines += [f"{what:<40} {count:>7}" for what, count in sorted(self.actions.items())]
        lines += ["", f"{'outcome':<76} {'times':>7}"]
        lines += [f"{what:<76} {count:>7}" for what, count in sorted(self.outcomes.items())]
        lines += ["", f"{'time, ms':<60} {'count':>7} {'median':>8} {'p99':>8} {'max':>8}"]
        for what, times in sorted(self.times.items()):
            ordered = sorted(times)
            p99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
            lines.append(f"{what:<60} {len(times):>7} {statistics.median(times):>8.1f} {p99:>8.1f} {ordered[-1]:>8.1f}")
        return "\n".join(lines)


class Pair:
    """Two processes and their network."""

    def __init__(self, run, check, seed, folder, bound, hold=False):
        self.bound = bound  # ms from a kill to the reports of the peer process
        self.random = random.Random(seed)
        self.results = Results()
        self.delays = Delays()
        self.folder = pathlib.Path(folder)
        self.runtime = self.folder / "r"
        self.runtime.mkdir(mode=0o700)
        config = self.folder / "net.yaml"
        config.write_text(CONFIG, encoding="utf-8")
        self.command = [str(run), "--config", str(config), str(check)]
        self.environment = {**os.environ, "ROCI_RUNTIME": str(self.runtime), "RUNTIME_DIRECTORY": str(self.folder)}
        for name in ("ROCI_NET", "ROCI_CONFIG", "ROCI_CC", "ROCI_STATS", "LD_PRELOAD", "LD_LIBRARY_PATH"):
            self.environment.pop(name, None)
        self.hold = hold
        self.programs = [None, None]
        self.due = None     # time.monotonic() of the next action
        self.due_after_go = None  # seconds; the action happens while the processes connect
        # Inodes of the network's shared memory: current, and of earlier networks.
        self.memory, self.memory_before = set(), set()
        self.history = collections.deque(maxlen=5)
        self.number = 0  # number of the action
        self.stopped = 0  # seconds, of the last short stop
        self.exit_time = 0  # of the last process that was killed
        self.with_cm = True

    # ---- Waiting

    def wait(self, condition, what, limit=LIMIT):
        """Waits until the condition holds. Raises Due if the time of the action comes first."""
        deadline = time.monotonic() + limit
        while not condition():
            now = time.monotonic()
            if self.due is not None and now >= self.due:
                self.due = None
                raise Due
            if now >= deadline:
                raise Failure(f"not after {limit} s: {what}")
            end = deadline if self.due is None else min(deadline, self.due)
            self.pump(end - now)

    def pump(self, seconds):
        running = [program for program in self.programs if program is not None]
        ready, _, _ = select.select([p.output for p in running], [], [], max(seconds, 0))
        for program in running:
            if program.output in ready and not program.receive():
                program.process.wait()
                raise Failure("exited unexpectedly")

    def sleep(self, seconds):
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            self.pump(rest)

    def wait_for(self, word, limit=LIMIT):
        self.wait(lambda: all(program.reports[word] for program in self.programs), f"'{word}' of both", limit)

    # ---- Connecting

    def is_established(self):
        return all(p is not None and p.going and (not self.with_cm or p.reports["established"]) for p in self.programs)

    def establish(self):
        """Starts missing processes, connects the two and starts the traffic. Continues where Due interrupted it."""
        for index, program in enumerate(self.programs):
            if program is None:
                self.programs[index] = Program(self.command, self.environment, self.folder)
        both = self.programs
        self.wait(lambda: all(program.address for program in both), "'ready' of both")
        for program in both:
            self.memory |= memory_of(program.pid)
        if not any(program.begun for program in both):
            self.with_cm = self.random.random() < 0.8
            self.random.choice(both).active = True
            for program in both:
                program.traffic = self.random.choices(("full", "light", "still"), (6, 2, 2))[0]
        for program in both:
            if program.begun:
                continue
            program.waiting = self.random.choice(("poll", "wait"))
            program.send(f"begin {program.traffic} {program.waiting} {int(self.with_cm)} {self.random.getrandbits(60)}")
            program.begun = True
        self.wait_for("place")
        if not any(program.reports["peer sent"] for program in both):
            for program, other in (both, reversed(both)):
                program.send(f"peer {other.reports['place'][0][0]}")
                program.reports["peer sent"].append([])
        self.wait_for("connected")
        if self.due_after_go is not None and not any(program.going for program in both):
            self.due = time.monotonic() + self.due_after_go
        # The passive process first, so that it is ready for the request of its peer.
        for program in sorted(both, key=lambda program: program.active):
            if program.going:
                continue
            other = both[1 - both.index(program)]
            program.send(f"go {other.address}" if self.with_cm and program.active else "go")
            program.going = True
        self.wait_for("going")
        if self.with_cm:
            self.wait(lambda: self.is_established() or any(p.reports["refused"] for p in both), "'established' of both")
            if not self.is_established():
                raise Failure("a connection was refused")

    def end(self, programs):
        for program in programs:
            if program.begun:
                program.send("end")
        for program in programs:
            if program.begun:
                self.wait(lambda program=program: program.reports["ended"], "'ended'")
            program.forget()

    def close(self):
        for index, program in enumerate(self.programs):
            if program is not None:
                program.close()
            self.programs[index] = None

    # ---- Checks of reports

    def runs(self, program):
        """Queue pairs that have requests."""
        if not program.going:
            return set()
        return {0, 1, 2, 3} if program.reports["established"] else {0, 1, 2}

    def has_failed(self, program):
        """Whether all queue pairs of the process have reported an error."""
        return {int(values[0]) for values in program.reports["failed"]} >= self.runs(program)

    def check_failures(self, program):
        """Checks the statuses. Returns the time of the last completion with an error."""
        for index, status, failed, flushed, _, _ in (map(int, values) for values in program.reports["failed"]):
            if status != RETRY_EXC_ERR:
                raise Failure(f"queue pair {index} ended with status {status}, not {RETRY_EXC_ERR}")
            if flushed != failed - 1:
                raise Failure(f"queue pair {index}: {failed} requests ended, {flushed} of them flushed")
        return max(int(values[5]) for values in program.reports["failed"])

    def check_no_failure(self):
        for program in self.programs:
            for word in ("failed", "disconnected", "refused"):
                if program is not None and program.reports[word]:
                    raise Failure(f"'{word}' though no process was killed, after a stop of {self.stopped * 1000:.0f} ms")

    # ---- Actions

    def kill(self, victim, other):
        self.results.actions["kill"] += 1
        state = self.state_of(other)
        self.delays.longest = 0.0
        begin = time.monotonic_ns()
        victim.process.kill()
        select.select([victim.pidfd], [], [])
        self.exit_time = time.monotonic_ns() - begin
        self.results.add_time("kill: exit of the process", self.exit_time)
        self.remove(victim)
        if other.going:
            self.after_kill(other, begin, state)
        else:
            self.results.outcomes["kill before the traffic: no requests outstanding"] += 1
        self.end([other])

    def kill_both(self):
        """Kills both processes. The network ends, and the next process creates it again."""
        self.results.actions["kill of both"] += 1
        for program in self.programs:
            program.process.kill()
        for program in list(self.programs):
            self.remove(program)
        if left := self.holders_of_memory():
            raise Failure("; ".join(left))
        self.memory_before |= self.memory
        self.memory = set()

    def remove(self, program):
        program.close()
        self.programs[self.programs.index(program)] = None

    def state_of(self, program):
        if not program.going:
            return "before the traffic"
        if self.with_cm and not program.reports["established"]:
            return "while connecting"
        return "in traffic"

    def after_kill(self, other, begin, state):
        if self.with_cm:
            self.wait_for_end_of_connection(other, begin, state)
        if other.traffic == "still":
            posted = time.monotonic_ns()
            other.send("check 1")
            self.wait(lambda: self.has_failed(other), "an error of requests that were posted after the kill")
            self.results.add_time("post: error of requests posted after a kill", self.check_failures(other) - posted)
            self.results.outcomes[f"kill {state}: RETRY_EXC_ERR of requests posted later"] += 1
            return
        self.wait(lambda: self.has_failed(other), "an error of each queue pair")
        end = self.check_failures(other)
        self.add_latency(f"all requests ended, {other.traffic} traffic", end - begin,
                         f"{other.waiting}; " + ", ".join(f"{QUEUE_PAIRS[int(values[0])]} {(int(values[5]) - begin) / 1e6:.1f} ms"
                                                          for values in other.reports["failed"]))
        self.results.outcomes[f"kill {state}: RETRY_EXC_ERR, others WR_FLUSH_ERR"] += 1

    def add_latency(self, what, nanoseconds, detail):
        """Records the time from a kill to a report. On a busy machine the exit of the killed process takes time, too.
        """
        after_exit = nanoseconds - self.exit_time
        self.results.add_time(f"kill: {what}", nanoseconds)
        self.results.add_time(f"exit: {what}", after_exit)
        if nanoseconds > self.bound * 1e6:
            self.results.late.append(f"time {self.number}: {what}: {nanoseconds / 1e6:.1f} ms after the kill, "
                                     f"{after_exit / 1e6:.1f} ms after the exit, this process delayed by "
                                     f"{self.delays.longest * 1000:.1f} ms ({detail})")

    def wait_for_end_of_connection(self, other, begin, state):
        def ended():
            return other.reports["disconnected"] or other.reports["refused"]

        was_established = bool(other.reports["established"])
        if not was_established and not other.active and not other.reports["request"]:
            # The request may still be in shared memory. It is processed before the exit is reported.
            if other.traffic != "still":
                self.wait(lambda: ended() or len(other.reports["failed"]) >= 3, "an error of each queue pair")
            if not ended() and not other.reports["request"]:
                self.results.outcomes[f"kill {state}: no connection was requested"] += 1
                return
        self.wait(ended, "an event of the connection", LIMIT if was_established else HANDSHAKE_LIMIT)
        if other.reports["refused"]:
            event = other.reports["refused"][0]
            if other.reports["established"]:
                raise Failure(f"an established connection ends with {event}")
            self.results.outcomes[f"kill {state}: {event[0]} {event[1]}"] += 1
            self.results.add_time(f"kill: {event[0]}", int(event[-1]) - begin)
            return
        at = int(other.reports["disconnected"][0][0])
        if not other.reports["established"]:
            raise Failure("a connection that was not established is disconnected")
        self.add_latency("RDMA_CM_EVENT_DISCONNECTED", at - begin, other.waiting)
        self.results.outcomes[f"kill {state}: RDMA_CM_EVENT_DISCONNECTED"] += 1

    def stop_shortly(self, victim):
        self.results.actions["stop, short"] += 1
        begin = time.monotonic()
        victim.stop()
        self.sleep(self.random.uniform(0, 0.15))
        victim.resume()
        self.stopped = time.monotonic() - begin
        self.results.add_time("short stop: duration", self.stopped * 1e9)
        self.establish()
        begin = time.monotonic_ns()
        for program in self.programs:
            program.reports["continues"].clear()
            program.send("check 8")
        self.wait(lambda: all(p.reports["continues"] or p.reports["failed"] for p in self.programs), "'continues' of both")
        if self.stopped > SHORT:
            # This script was not scheduled, so the stop was as long as the timeouts.
            self.results.outcomes["stop that was prolonged by other load: not checked"] += 1
            return self.end(self.programs)
        self.check_no_failure()
        self.results.add_time("short stop: 8 requests of each queue pair", time.monotonic_ns() - begin)
        self.results.outcomes["short stop: continues"] += 1

    def stop_for_long(self, victim, other):
        self.results.actions["stop, long"] += 1
        if not self.is_established():
            self.establish()
        victim.stop()
        begin = time.monotonic_ns()
        if other.traffic == "still":
            other.send("check 1")
        self.wait(lambda: self.has_failed(other), "an error of each queue pair")
        self.check_failures(other)
        for values in other.reports["failed"]:
            self.results.add_time(f"long stop: first error, {QUEUE_PAIRS[int(values[0])]}, {other.traffic} traffic",
                                  int(values[4]) - begin)
        if other.reports["disconnected"]:
            raise Failure("disconnected by a process that is stopped")
        self.end([other])
        self.sleep(self.random.uniform(0, 0.05))
        victim.resume()
        if self.with_cm:
            self.wait(lambda: victim.reports["disconnected"], "'disconnected' of the process that was stopped")
        if victim.traffic != "still":
            self.wait(lambda: self.has_failed(victim), "an error of each queue pair of the process that was stopped")
            self.check_failures(victim)
        self.results.outcomes["long stop: RETRY_EXC_ERR, others WR_FLUSH_ERR"] += 1
        self.end([victim])

    # ---- Rounds

    def act(self):
        index = self.random.randrange(2)
        action = self.random.choices(("kill", "stopped kill", "kill of both", "short stop", "long stop"),
                                     (53, 10, 3, 27, 7))[0]
        moment = self.random.choices(("start", "connecting", "traffic"), (2, 2, 6))[0]
        if moment == "start" and None in self.programs:
            self.due = time.monotonic() + self.random.uniform(0, 0.5)
        self.due_after_go = self.random.uniform(0, 0.006) if moment == "connecting" else None
        with contextlib.suppress(Due):
            self.establish()
            if self.due is None:
                self.due = time.monotonic() + self.random.uniform(0, 0.06)
            self.wait(lambda: False, "the instant")
        self.due = self.due_after_go = None
        victim, other = self.programs[index], self.programs[1 - index]
        self.history.append(f"{action} of {victim.pid} ({victim.address}) {self.state_of(victim)}, {victim.traffic}; other "
                            f"{other.pid} ({other.address}), {other.traffic}, {other.waiting}, {'with' if self.with_cm else 'without'} "
                            "rdma_cm")
        if action == "stopped kill":
            victim.stop()
            self.sleep(self.random.uniform(0, 0.1))
        if action.endswith("kill"):
            self.kill(victim, other)
        elif action == "kill of both":
            self.kill_both()
        elif action == "short stop":
            self.stop_shortly(victim)
        else:
            self.stop_for_long(victim, other)

    def round(self):
        """One kill or stop. Returns False after an unexpected result; then both processes are replaced."""
        self.number += 1
        try:
            self.act()
            return True
        except Failure as failure:
            self.due = self.due_after_go = None
            lines = [f"time {self.number}: {failure}"]
            lines += [f"    before: {entry}" for entry in self.history]
            lines += [f"    {program.describe()}" for program in self.programs if program is not None]
            self.results.failures.append("\n".join(lines))
            print(self.results.failures[-1], flush=True)
            if self.hold:
                input("processes are kept; Enter continues ")
            self.close()
            return False

    def quit(self):
        """Ends both processes normally."""
        for index, program in enumerate(self.programs):
            if program is None:
                continue
            program.send("quit")
            if program.process.wait(LIMIT) != 0:
                raise Failure(f"exit status {program.process.returncode} after 'quit'")
            program.close()
            self.programs[index] = None

    # ---- Remaining resources

    def holders_of_memory(self):
        inodes = self.memory | self.memory_before
        return [f"process {pid} has the network's shared memory" for pid in filter(str.isdigit, os.listdir("/proc"))
                if memory_of(pid) & inodes]

    def left_behind(self):
        """Sentences about undocumented files, memory and locks that remain after all processes have exited."""
        found = self.holders_of_memory()
        for path in self.runtime.iterdir():
            if path.name != NET and not path.name.startswith(".paths-"):
                found.append(f"the runtime folder has {path.name}")
        for path in (self.runtime / NET).iterdir():
            if path.name not in FILES:
                found.append(f"the network's folder has {path.name}")
        for path in (self.runtime / NET / "slots").iterdir():
            if is_locked(path):
                found.append(f"slot {path.name} is locked")
        return found

    def count_files(self, *parts):
        folder = self.folder.joinpath(*parts)
        return len(os.listdir(folder)) if folder.is_dir() else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, help="folder with roci-run and killed-check")
    parser.add_argument("--times", type=int, default=200, help="number of kills and stops (200)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="seed of all random numbers")
    parser.add_argument("--bound", type=float, default=100, help="longest time in ms from a kill to the reports of the other process (100)")
    parser.add_argument("--hold", action="store_true", help="wait for Enter after a failure, before the processes are stopped")
    parser.add_argument("--check", type=pathlib.Path, help="path of killed-check, if it is not in the folder")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this number of seconds")
    options = parser.parse_args()
    run = options.bin.resolve() / "roci-run"
    check = (options.check or options.bin / "killed-check").resolve()
    print(f"seed {options.seed}", flush=True)
    shm = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory(prefix="killed-") as folder:
        pair = Pair(run, check, options.seed, folder, options.bound, options.hold)
        begin = shown = time.monotonic()
        done = 0
        while done < options.times and time.monotonic() - begin < options.seconds:
            done += 1
            pair.round()
            if time.monotonic() - shown < 10:
                continue
            shown = time.monotonic()
            print(f"{done} of {options.times}, {(shown - begin) / done:.2f} s each, {len(pair.results.failures)} failures, "
                  f"{len(pair.results.late)} later than {options.bound} ms", flush=True)
        pair.establish()
        pair.quit()
        for delay in pair.delays.all:
            pair.results.add_time("this process: delay of a sleep of 5 ms", delay * 1e9)
        left = pair.left_behind() + [f"/dev/shm has {name}" for name in set(os.listdir("/dev/shm")) - shm]
        print(f"\n{done} times in {time.monotonic() - begin:.0f} s, seed {options.seed}\n\n{pair.results.table()}\n")
        print(f"files with crash notifications: {pair.count_files('r', NET, 'crash-notices')}; run-time directories of DPDK: "
              f"{pair.count_files('dpdk')}; segments of shared memory, one after another: "
              f"{len(pair.memory | pair.memory_before)}")
        for sentence in (*pair.results.late, *left):
            print(sentence)
        print(f"{len(pair.results.failures)} failures, {len(pair.results.late)} reports later than {options.bound} ms, "
              f"{len(left)} things left behind")
    return 1 if pair.results.failures or pair.results.late or left else 0


if __name__ == "__main__":
    sys.exit(main())
