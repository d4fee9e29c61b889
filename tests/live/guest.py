"""Emulated guest with soft-RoCE, and the network between it and the Rocinante device."""

import http.client
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

BRIDGE, TAP = "br0", "tap0"
PORT, BRIDGE_PORT = "veth0", "veth1"  # Made by tests/tools/netns.sh: port of the Rocinante device, and its other end.
RELAY_PORTS = ("wire0", "wire1")  # Ports of the relay and of the bridge.
PREFIX, PREFIX6 = "10.77.0", "fd00:77:"
# Untagged addresses of the guest and of the bridge, if the devices have a VLAN.
CONTROL, CONTROL_HOST = "10.78.0.1", "10.78.0.254"
# Host numbers of the guest, of the Rocinante device, and of the bridge (TCP of perftest).
GUEST, DEVICE, HOST = 1, 100, 254
MAC = "52:54:00:00:00:01"
BOOT_LIMIT = 90  # Seconds; allows for other load on the machine.


def address(host, family=4):
    return f"{PREFIX}.{host}" if family == 4 else f"{PREFIX6}:{host:x}"


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


class Network:
    """A bridge between the guest's tap and the veth pair, with an address for the TCP connections of programs. With
    faults, a relay is between the veth pair and the bridge. With a VLAN, the packets of both devices are tagged, and
    TCP packets are untagged."""

    def __init__(self, mtu, vlan=0):
        self.relay = None
        self.counts = {}  # Number of injected faults, by kind.
        mtu += 4  # Leaves space for a VLAN tag.
        run("ip", "link", "add", BRIDGE, "mtu", mtu, "type", "bridge", "stp_state", 0, "forward_delay", 0, "mcast_snooping", 0)
        run("ip", "tuntap", "add", TAP, "mode", "tap")
        run("ip", "link", "add", RELAY_PORTS[0], "mtu", mtu, "type", "veth", "peer", "name", RELAY_PORTS[1], "mtu", mtu)
        for name in (TAP, BRIDGE_PORT, RELAY_PORTS[1]):
            run("ip", "link", "set", name, "mtu", mtu, "master", BRIDGE, "up")
        run("ip", "link", "set", BRIDGE, "up")
        if vlan:  # Only the RDMA devices are in the VLAN.
            run("ip", "addr", "add", f"{CONTROL_HOST}/24", "dev", BRIDGE)
            return
        run("ip", "addr", "add", f"{address(HOST)}/24", "dev", BRIDGE)
        run("ip", "addr", "add", f"{address(HOST, 6)}/64", "dev", BRIDGE, "nodad")

    def set_faults(self, faults):
        """Sets the faults of later packets between the device and the guest (relay.py); empty: no faults."""
        self.close()
        if not faults:
            return
        run("ip", "link", "set", BRIDGE_PORT, "nomaster")
        run("ip", "link", "set", RELAY_PORTS[0], "up")
        program = [sys.executable, pathlib.Path(__file__).with_name("relay.py"), BRIDGE_PORT, RELAY_PORTS[0], faults]
        self.relay = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        if self.relay.stdout.readline().strip() != "relay: ready":
            self.relay = None
            raise RuntimeError("the relay has not started")

    def close(self):
        """Ends the relay. Its counts are added to those of earlier relays."""
        if self.relay is None:
            return
        self.relay.terminate()
        for item in self.relay.stdout.read().strip().removeprefix("relay: ").split(", "):
            kind, _, count = item.partition(" ")
            self.counts[kind] = self.counts.get(kind, 0) + int(count)
        self.relay.wait()
        self.relay = None
        run("ip", "link", "set", RELAY_PORTS[0], "down")
        run("ip", "link", "set", BRIDGE_PORT, "master", BRIDGE)


class Command:
    """A command line that runs in the guest."""

    def __init__(self, guest, line, limit):
        self.guest, self.line, self.limit = guest, line, limit
        self.connection = http.client.HTTPConnection(guest.control, 80, timeout=limit)
        self.text, self.status = "", None
        self.connection.request("POST", "/cgi-bin/run", line.encode())
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            received = self.connection.getresponse().read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self.text = f"{type(error).__name__}: {error}"
            return
        self.text, _, status = received.rpartition("\nstatus ")
        self.status = int(status) if status.strip().isdigit() else None

    def wait(self, limit=None):
        """Returns (status, output). The status is None if the command timed out, or the guest has exited."""
        deadline = time.monotonic() + (limit or self.limit)
        while self.thread.is_alive() and time.monotonic() < deadline and not self.guest.crash():
            self.thread.join(min(1, max(0, deadline - time.monotonic())))
        return self.status, self.text


class Guest:
    """An emulated machine with the device rxe0."""

    def __init__(self, kernel, initramfs, folder, mtu=1500, vlan=0):
        self.console = pathlib.Path(folder) / "console.log"
        self.control = CONTROL if vlan else address(GUEST)
        addresses = [f"{address(GUEST)}/24", f"{address(GUEST, 6)}/64"]
        parameters = (f"console=ttyS0 quiet panic=-1 mitigations=off nokaslr cryptomgr.notests random.trust_cpu=on "
                      f"guest.addresses={','.join(addresses)} guest.mtu={mtu} guest.vlan={vlan} guest.control={CONTROL}/24")
        # Without offloads, frames on the tap are as on a cable: complete checksums, no frames above the MTU, any VLAN.
        offloads = "csum=off,guest_csum=off,gso=off," + ",".join(
            f"{side}_{what}=off" for side in ("guest", "host") for what in ("tso4", "tso6", "ecn", "ufo"))
        # Without cx16: QEMU before 8.0 computes the flags of cmpxchg16b from an operation that may not be the last one. The
        # kernel uses this instruction in kmalloc(); an interrupt after it saved invalid flags, and the kernel panicked.
        self.command = [
            "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", "tcg", "-machine", "q35", "-cpu", "max,-cx16", "-m", "512", "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-kernel", kernel, "-initrd", initramfs, "-append", parameters,
            "-serial", f"file:{self.console}", "-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net,mac={MAC},host_mtu={mtu + 4},ctrl_vlan=off,{offloads}"]
        self.process = None
        self.boot()

    def boot(self):
        self.console.unlink(missing_ok=True)
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + BOOT_LIMIT
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError(f"the guest has not started: {self.process.stderr.read()}{self.log()[-1500:]}")
            time.sleep(0.1)

    def log(self):
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def crash(self):
        """Returns the console from the first error of the kernel on if the kernel has ended by a panic, otherwise an
        empty string."""
        log = self.log()
        if "Kernel panic" not in log:
            return ""
        first = re.search(r"^.*(BUG: |Oops|general protection|Unable to handle|stack segment|invalid opcode|Kernel panic)", log, re.MULTILINE)
        return log[first.start():]

    def restart(self):
        self.close()
        self.boot()

    def is_ready(self):
        if "guest: ready" not in self.log():
            return False
        try:
            connection = http.client.HTTPConnection(self.control, 80, timeout=1)
            connection.connect()
            connection.close()
            return True
        except OSError:
            return False

    def kernel(self):
        return self.log().rpartition("guest: ready, ")[2].split("\n")[0].strip()

    def start(self, line, limit=120):
        return Command(self, line, limit)

    def run(self, line, limit=120):
        return Command(self, line, limit).wait()

    def gid_index(self, family):
        """Returns the index of the guest's address in the GID table of rxe0."""
        gid = socket.inet_pton(socket.AF_INET6, address(GUEST, 6) if family == 6 else f"::ffff:{address(GUEST)}").hex()
        _, text = self.run("cd /sys/class/infiniband/rxe0/ports/1/gids && grep . * 2>/dev/null")
        for line in text.splitlines():
            index, _, value = line.partition(":")
            if value.replace(":", "") == gid:
                return int(index)
        raise RuntimeError(f"rxe0 has no GID of {gid}: {text}")

    def close(self):
        self.process.kill()
        self.process.wait()
