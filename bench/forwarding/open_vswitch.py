#!/usr/bin/env python3
"""Runs Open vSwitch with DPDK between the memif ports `in` and `out` of the current folder, until SIGTERM or SIGINT.
Database, sockets and logs are in that folder. The interface of the bridge is in its own network namespace. Installed and
running instances of Open vSwitch are not affected.
"""

import argparse
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
START_LIMIT = 20  # seconds for the daemons to start
FLOWS = {
    # Fixed rules from port to port: the best case.
    "output": ("in_port=in,actions=output:out", "in_port=out,actions=output:in"),
    # A learning bridge.
    "normal": ("actions=NORMAL",),
}
# --legacy-mem: without it Open vSwitch adds --in-memory, which DPDK rejects together with --no-huge.
EAL = "--no-huge --no-shconf --no-pci --no-telemetry --legacy-mem -m 512"


class Failed(Exception):
    """An error message."""


def find(programs, name):
    """Returns the path of a program of the unpacked packages."""
    for folder in ("usr/bin", "usr/sbin", "usr/lib/openvswitch-switch-dpdk"):
        path = programs / folder / name
        if path.exists():
            return str(path)
    raise Failed(f"there is no {name} in {programs}")


class Daemons:
    """The started daemons, which are ended together with this process."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, **{f"OVS_{name}": str(folder) for name in ("RUNDIR", "DBDIR", "LOGDIR", "SYSCONFDIR")}}
        self.started = []

    def start(self, words, log):
        libc = ctypes.CDLL(None, use_errno=True)
        with open(self.folder / log, "wb") as out:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
                                     env=self.environment,
                                     preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        self.started.append((child, log))
        return child

    def run(self, words, limit=START_LIMIT):
        try:
            done = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, env=self.environment,
                                  timeout=limit, check=False)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{pathlib.Path(words[0]).name} did not end within {limit} s{self.complaint()}") from late
        if done.returncode != 0:
            raise Failed(f"{pathlib.Path(words[0]).name} failed: {(done.stderr or done.stdout).strip()}{self.complaint()}")
        return done.stdout

    def complaint(self):
        """Returns the last error in the daemons' logs."""
        lines = [line for _, log in self.started for line in (self.folder / log).read_text(errors="replace").splitlines()
                 if "|ERR|" in line or "|EMER|" in line]
        return f"; Open vSwitch: {lines[-1]}" if lines else ""

    def wait_for(self, path, child):
        deadline = time.monotonic() + START_LIMIT
        while not (self.folder / path).exists():
            if child.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{child.args[0]} did not create {path}{self.complaint()}")
            time.sleep(0.02)

    def end(self):
        for child, _ in reversed(self.started):
            child.kill()
            child.wait()


def memif(number, socket, folder):
    # The buffer size that Open vSwitch uses at an MTU of 1500.
    return f"net_memif{number},role=server,id=0,socket={folder / socket},socket-abstract=no,bsize=1920"


def serve(options, daemons):
    folder = daemons.folder
    def program(name):
        return find(options.programs, name)
    schema = options.programs / "usr/share/openvswitch/vswitch.ovsschema"
    database = f"unix:{folder}/db.sock"
    set_up = [program("ovs-vsctl"), f"--db={database}", f"--timeout={START_LIMIT}"]
    daemons.run([program("ovsdb-tool"), "create", "conf.db", str(schema)])
    server = daemons.start([program("ovsdb-server"), "conf.db", f"--remote=punix:{folder}/db.sock", "--no-chdir"], "db.log")
    daemons.wait_for("db.sock", server)
    daemons.run([*set_up, "--no-wait", "init", "--", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
                 f"other_config:dpdk-extra={EAL}", f"other_config:pmd-cpu-mask={1 << options.core:#x}"])
    # The bridge's interface is in its own network namespace, which requires root or a user namespace.
    alone = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    daemons.start([*alone, "taskset", "-c", str(options.other_core), program("ovs-vswitchd-dpdk"), database, "--no-chdir",
                   "--unixctl", str(folder / "control"), "-vconsole:warn"], "vswitchd.log")
    daemons.run([*set_up, "add-br", "bridge", "--", "set", "bridge", "bridge", "datapath_type=netdev", "fail_mode=secure",
                 *(word for number, port in enumerate(("in", "out")) for word in
                   ("--", "add-port", "bridge", port, "--", "set", "Interface", port, "type=dpdk", f"ofport_request={number + 1}",
                    f"options:dpdk-devargs={memif(number, port, folder)}"))])
    said = daemons.run([*set_up, "--bare", "--columns=name,error", "list", "Interface"])
    if "rror" in said:
        raise Failed(f"Open vSwitch cannot open a port: {' '.join(said.split())}{daemons.complaint()}")
    for flow in FLOWS[options.flows]:
        daemons.run([program("ovs-ofctl"), "add-flow", f"unix:{folder}/bridge.mgmt", flow])
    print("ready", flush=True)
    signal.pause()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=pathlib.Path, required=True, help="folder with the unpacked Debian packages")
    options.add_argument("--flows", choices=FLOWS, required=True)
    options.add_argument("--core", type=int, required=True, help="CPU of the forwarding thread")
    options.add_argument("--other-core", type=int, required=True, help="CPU of all other threads")
    options = options.parse_args()
    daemons = Daemons(pathlib.Path.cwd())
    def stop(*_):
        raise SystemExit(0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        serve(options, daemons)
    except (Failed, OSError) as problem:
        print(f"open_vswitch.py: {problem}", file=sys.stderr)
        return 1
    finally:
        daemons.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
