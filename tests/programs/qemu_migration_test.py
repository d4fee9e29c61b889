"""Live migration of a QEMU guest over RDMA (`migrate` to `rdma:ADDRESS:PORT`) between two processes of a network.

The guest has firmware of its own instead of SeaBIOS: a program in protected mode that increments a word of each page of
a memory range, without end. QEMU emulates the processor (TCG)."""

import contextlib
import json
import random
import socket
import struct
import sys
import time
import unittest

from programs import LIMIT, Faulty, Programs, free_port, kill

Programs.run_program = sys.argv.pop(1)
MIB = 1 << 20
PAGE = 4096
RAM = 64 * MIB
ROUNDS = MIB                   # address of the guest's counter of rounds
DIRTY = 2 * MIB                # start of the range that the guest writes
PATTERN, PATTERN_SIZE = 24 * MIB, 24 * MIB  # random data, which only the source loads
FAILURE_LIMIT = 20             # seconds from the exit of the destination to the end of the migration
FIRMWARE_BASE = 0xFFFF0000     # the last 64 KiB below 4 GiB, where an x86 processor starts


def firmware(dirty_size):
    """64 KiB of x86 code and data. It enters protected mode and increments the first word of each page of the range at
    DIRTY, and after each round the word at ROUNDS."""
    descriptors = struct.pack("<QQQ", 0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF)  # none, flat code, flat data
    gdt, gdt_pointer, entry = 0x100, 0x120, 0x40
    real_mode = (b"\xfa"                                                     # cli
                 + b"\x66\x2e\x0f\x01\x16" + struct.pack("<H", gdt_pointer)  # lgdt cs:[gdt_pointer]
                 + b"\x0f\x20\xc0\x0c\x01\x0f\x22\xc0"                       # set bit PE of cr0
                 + b"\x66\xea" + struct.pack("<IH", FIRMWARE_BASE + entry, 8))  # far jump to the code segment
    body = (b"\xff\x07"                                      # inc dword [edi]
            + b"\x81\xc7" + struct.pack("<I", PAGE)          # add edi, PAGE
            + b"\x81\xff" + struct.pack("<I", DIRTY + dirty_size))  # cmp edi, end
    round_ = (b"\xbf" + struct.pack("<I", DIRTY)             # mov edi, DIRTY
              + body + b"\x72" + struct.pack("<b", -len(body) - 2)  # jb body
              + b"\xff\x05" + struct.pack("<I", ROUNDS))     # inc dword [ROUNDS]
    protected_mode = (b"\x66\xb8\x10\x00\x8e\xd8"            # ds = data segment
                      + round_ + b"\xeb" + struct.pack("<b", -len(round_) - 2))  # jmp round
    image = bytearray(b"\xf4" * (64 << 10))  # hlt
    for offset, part in ((0, real_mode), (entry, protected_mode), (gdt, descriptors),
                         (gdt_pointer, struct.pack("<HI", len(descriptors) - 1, FIRMWARE_BASE + gdt)),
                         (0xFFF0, b"\xe9" + struct.pack("<H", 0x10000 - 0xFFF3))):  # reset vector: jmp 0
        image[offset:offset + len(part)] = part
    return bytes(image)


class Monitor:
    """The QMP monitor of a QEMU process."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.lines = self.socket.makefile("r", encoding="utf-8")
        json.loads(self.lines.readline())  # the greeting
        self("qmp_capabilities")

    def close(self):
        self.lines.close()
        self.socket.close()

    def __call__(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            line = self.lines.readline()
            if not line:
                raise RuntimeError(f"{command}: QEMU closed the monitor")
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']['desc']}")
            if "return" in answer:  # other lines are events
                return answer["return"]


class Migration:
    def setUp(self):
        self.pattern = self.folder / "pattern"
        self.pattern.write_bytes(random.Random(1).randbytes(PATTERN_SIZE))
        self.started = 0

    def qemu(self, dirty_size, *options):
        """Starts a paused machine. Returns its process and its monitor."""
        self.started += 1
        rom, path = self.folder / "rom", self.folder / f"{self._testMethodName[-12:]}{self.started}"
        rom.write_bytes(firmware(dirty_size))
        process = self.start("qemu-system-x86_64", "-accel", "tcg", "-machine", "pc", "-cpu", "qemu64", "-m",
                             RAM // MIB, "-nodefaults", "-display", "none", "-bios", rom, "-S", "-qmp",
                             f"unix:{path},server=on,wait=off", *options)
        deadline = time.monotonic() + LIMIT
        while True:
            with contextlib.suppress(OSError):
                monitor = Monitor(path)
                break
            if process.poll() is not None or time.monotonic() > deadline:
                self.fail(f"QEMU opens no monitor:\n{self.text_of(process)}")
            time.sleep(0.02)
        self.addCleanup(monitor.close)
        return process, monitor

    def source(self, dirty_size):
        """A running machine whose memory contains the pattern."""
        process, monitor = self.qemu(dirty_size, "-device", f"loader,file={self.pattern},addr={PATTERN:#x},force-raw=on")
        monitor("cont")
        self.until_guest_runs(monitor)
        return process, monitor

    def destination(self, dirty_size, pin_all):
        """A machine that waits for a migration. Returns its process, its monitor and its URI."""
        process, monitor = self.qemu(dirty_size, "-incoming", "defer")
        uri = f"rdma:{self.server}:{free_port()}"
        self.set_pin_all(monitor, pin_all)
        monitor("migrate-incoming", uri=uri)
        self.wait_for_place(process)
        return process, monitor, uri

    @staticmethod
    def set_pin_all(monitor, on):
        monitor("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": on}])

    def memory(self, monitor, address=0, size=RAM):
        """A range of the guest's memory, which is consistent only while the machine is stopped."""
        file = self.folder / "memory"
        monitor("pmemsave", val=address, size=size, filename=str(file))
        return file.read_bytes()

    def rounds(self, monitor):
        return struct.unpack("<I", self.memory(monitor, ROUNDS, 4))[0]

    def until_guest_runs(self, monitor):
        before, deadline = self.rounds(monitor), time.monotonic() + LIMIT
        while self.rounds(monitor) == before:
            self.assertLess(time.monotonic(), deadline, f"the guest does not run: {monitor('query-status')}")
            time.sleep(0.02)

    def wait_for_status(self, monitor, wanted, processes, limit=LIMIT):
        """Waits until the migration has ended. Returns what query-migrate reports."""
        deadline = time.monotonic() + limit
        while True:
            found = monitor("query-migrate")
            if found.get("status") in ("completed", "failed", "cancelled") or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        outputs = "\n".join(self.text_of(process) for process in processes)
        self.assertEqual(found.get("status"), wanted, f"{found}\n{outputs}")
        return found

    def migrate(self, source, destination):
        """Migrates the machine and compares the memory of both machines, which are stopped."""
        (source_process, source_monitor), (destination_process, destination_monitor, uri) = source, destination
        source_monitor("migrate", uri=uri)
        processes = (source_process, destination_process)
        found = self.wait_for_status(source_monitor, "completed", processes)
        self.wait_for_status(destination_monitor, "completed", processes)
        self.assertGreater(found["ram"]["transferred"], PATTERN_SIZE, found)
        self.assertEqual(source_monitor("query-status")["status"], "postmigrate")
        self.assertEqual(destination_monitor("query-status")["status"], "paused")
        sent, received = self.memory(source_monitor), self.memory(destination_monitor)
        self.assertEqual(received[PATTERN:PATTERN + PATTERN_SIZE], self.pattern.read_bytes(), "the pattern")
        differing = [page for page in range(0, RAM, PAGE) if sent[page:page + PAGE] != received[page:page + PAGE]]
        self.assertEqual((len(sent), len(received), differing), (RAM, RAM, []), "pages that differ")
        self.assertGreater(self.rounds(destination_monitor), 0)
        destination_monitor("cont")
        self.until_guest_runs(destination_monitor)

    def check_migration(self, pin_all):
        dirty = 4 * MIB
        destination = self.destination(dirty, pin_all)
        source = self.source(dirty)
        self.set_pin_all(source[1], pin_all)
        self.migrate(source, destination)

    def test_migrated_memory_equals_source(self):
        self.check_migration(pin_all=False)

    def test_migrated_memory_equals_source_with_all_memory_pinned(self):
        self.check_migration(pin_all=True)


class QemuMigration(Migration, Programs):
    def check_killed_destination(self, pin_all):
        dirty = 20 * MIB
        destination_process, _, uri = self.destination(dirty, pin_all)
        source_process, monitor = self.source(dirty)
        self.set_pin_all(monitor, pin_all)
        # The guest changes more memory than can be sent in this time, so that the migration does not end.
        monitor("migrate-set-parameters", **{"downtime-limit": 1, "max-bandwidth": 16 * MIB})
        monitor("migrate", uri=uri)
        deadline = time.monotonic() + LIMIT
        while monitor("query-migrate").get("ram", {}).get("transferred", 0) < 2 * MIB:
            self.assertLess(time.monotonic(), deadline, self.text_of(source_process))
            time.sleep(0.02)
        self.assertEqual(monitor("query-migrate")["status"], "active")
        kill(destination_process)
        self.wait_for_status(monitor, "failed", (source_process,), limit=FAILURE_LIMIT)
        self.assertEqual(monitor("query-status")["status"], "running")
        self.until_guest_runs(monitor)
        # A second migration of the same source, to a new process at the same address.
        monitor("migrate-set-parameters", **{"downtime-limit": 10000, "max-bandwidth": 1 << 30})
        self.migrate((source_process, monitor), self.destination(dirty, pin_all))

    def test_killed_destination_fails_migration_and_guest_continues(self):
        self.check_killed_destination(pin_all=False)

    def test_killed_destination_fails_migration_with_all_memory_pinned(self):
        self.check_killed_destination(pin_all=True)


class QemuMigrationWithFaults(Migration, Faulty):
    pass


if __name__ == "__main__":
    unittest.main(verbosity=2)
