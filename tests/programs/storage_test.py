"""Storage over RDMA with programs of the distribution: tgtd's iSER target with libiscsi and QEMU as initiators, and
fio."""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

from programs import LIMIT, Faulty, Programs, free_port, kill

Programs.run_program = sys.argv.pop(1)
# Directory into which `./roci deps` unpacks packages that would start services if installed, and the usual
# directories.
SBIN = f"{pathlib.Path(Programs.run_program).resolve().parents[2] / 'peers/usr/sbin'}:/usr/sbin:/sbin"
MIB = 1 << 20


def tool(name):
    """Path of the program, or its name if it is missing."""
    return shutil.which(name, path=f"{os.environ['PATH']}:{SBIN}") or name


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Iser:
    """An iSER target with a file as its disk, which user-space initiators write and read."""

    NAME = "iqn.2026-11.roci:disk"
    URL = f"iser://{Programs.server}/{NAME}/1"
    INITIATOR = "iqn.2026-11.roci:initiator"
    # Debian's libiscsi 1.19.0 frees memory that it has not allocated if a request is longer than 256 KiB.
    QEMU = "json:" + json.dumps({"driver": "raw", "file": {"driver": "blkdebug", "max-transfer": 256 << 10, "image": {
        "driver": "iser", "transport": "iser", "portal": Programs.server, "target": NAME, "lun": 1, "initiator-name": INITIATOR}}})

    def setUp(self):
        self.disk = self.folder / "disk"
        self.disk.write_bytes(bytes(32 * MIB))
        self.environment = {**self.environment, "TGT_IPC_SOCKET": str(self.folder / "tgt")}
        # The iSER transport listens on a fixed port. The TCP port must not collide with other listeners.
        self.target = self.start(tool("tgtd"), "-f", "-C", 1, "--iscsi", f"portal=127.0.0.1:{free_port()}", "--iser",
                                 "pool_sz_mb=64")
        self.until(lambda: self.admin("--op", "show", "--mode", "target").returncode == 0)
        self.must_admin("--op", "new", "--mode", "target", "--tid", 1, "-T", self.NAME)
        self.must_admin("--op", "new", "--mode", "logicalunit", "--tid", 1, "--lun", 1, "-b", self.disk)
        # The target requires a permitted address and initiator name.
        self.must_admin("--op", "bind", "--mode", "target", "--tid", 1, "-I", "ALL")
        self.must_admin("--op", "bind", "--mode", "target", "--tid", 1, "-Q", self.INITIATOR)

    def until(self, done):
        deadline = time.monotonic() + LIMIT
        while not done():
            if self.target.poll() is not None or time.monotonic() > deadline:
                self.fail(f"the target does not do it: {self.text_of(self.target)}")
            time.sleep(0.05)

    def admin(self, *options):
        return subprocess.run([tool("tgtadm"), "-C", "1", "--lld", "iser", *map(str, options)], env=self.environment,
                              capture_output=True, text=True, timeout=LIMIT, check=False)

    def must_admin(self, *options):
        done = self.admin(*options)
        self.assertEqual(done.returncode, 0, f"{done.args}: {done.stderr}{self.text_of(self.target)}")

    # tgtd expects the completion of its login response before the next request of the initiator. If the
    # acknowledgment is lost, they arrive in reverse order, as with any NIC, and tgtd closes the connection.
    OUT_OF_STEP = "non-login pdu during login phase"

    def initiate(self, *command):
        for _ in range(5 if isinstance(self, Faulty) else 1):
            before = self.text_of(self.target).count(self.OUT_OF_STEP)
            done = self.wait(self.start(*command))
            if done.status == 0 or self.text_of(self.target).count(self.OUT_OF_STEP) == before:
                break
        self.assertEqual(done.status, 0, f"{command}: {done.text}\nthe target: {self.text_of(self.target)}")
        return done.text

    def file_system(self):
        """An ext4 image that contains files."""
        source, image = self.folder / "files", self.folder / "ext4"
        data = random.Random(1)
        for number in range(40):
            file = source / f"{number % 7}" / f"file{number}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.randbytes(data.randrange(MIB)))
        subprocess.run([tool("mke2fs"), "-q", "-t", "ext4", "-d", source, image, "32M"], stdout=subprocess.DEVNULL,
                       timeout=LIMIT, check=True)
        return image

    def test_initiator_reads_back_written_file_system(self):
        image, back = self.file_system(), self.folder / "back"
        self.initiate("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, self.QEMU)
        self.initiate("qemu-img", "convert", "-O", "raw", self.QEMU, back)
        self.assertEqual(digest(self.disk), digest(image), "the target's disk")
        self.assertEqual(digest(back), digest(image), "what was read back")
        checked = subprocess.run([tool("e2fsck"), "-fn", back], capture_output=True, text=True, timeout=LIMIT, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.end_target()

    def end_target(self):
        """Stops the target normally. tgtd accepts this only after all its connections have ended."""
        self.until(lambda: self.admin("--op", "delete", "--mode", "logicalunit", "--tid", 1, "--lun", 1).returncode == 0)
        self.until(lambda: self.admin("--op", "delete", "--mode", "target", "--tid", 1).returncode == 0)
        self.must_admin("--op", "delete", "--mode", "system")
        self.assertEqual(self.wait(self.target).status, 0, self.text_of(self.target))


class IserTarget(Iser, Programs):
    def test_libiscsi_reads_inquiry_and_capacity(self):
        for command, answer in (("iscsi-inq", "VIRTUAL-DISK"), ("iscsi-readcapacity16", f"Total size:{32 * MIB}")):
            with self.subTest(command):
                self.assertIn(answer, self.initiate(command, "-i", self.INITIATOR, self.URL))


class IserTargetWithFaults(Iser, Faulty):
    pass


class Fio(Programs):
    """The reading process is the server, regardless of the verb."""

    JOB = ("--ioengine=rdma", "--bs=64k", "--size=4m")  # the options after --ioengine are those of the engine
    FAILED = re.compile(r"cq completion status \d+")

    def wait(self, process, limit=LIMIT):
        """Like Programs.wait(). Kills a process that has reported a failed completion, because fio does not exit then.
        """
        deadline = time.monotonic() + limit
        while process.poll() is None and time.monotonic() < deadline:
            if self.FAILED.search(self.text_of(process)):
                kill(process)
                break
            time.sleep(0.05)
        return super().wait(process, max(1, deadline - time.monotonic()))

    def commands(self, verb):
        job = (*self.JOB, f"--port={free_port()}")
        # fio connects with an RNR retry count of 0 (engines/rdma.c). The server needs a receive request for each
        # message, because other load may keep it from posting them in time.
        depth = 64 if verb == "send" else 16
        return (("fio", "--name=server", *job, "--rw=read", f"--iodepth={depth}"),
                ("fio", "--name=client", *job, "--rw=write", "--iodepth=1", f"--verb={verb}", f"--hostname={self.server}"))

    def run_verb(self, verb):
        _, client = self.serve_once(*self.commands(verb))
        self.assertIn("io=4096KiB", client)

    def test_completes_write_read_and_send(self):
        for verb in ("write", "read", "send"):
            with self.subTest(verb):
                self.run_verb(verb)


class FioWithFaults(Fio, Faulty):
    # The server exits with 0 only when it has received the client's last message. If the acknowledgment of this message
    # is lost (injected: 1 %), the client's retries are exhausted, as with a NIC, and the client does not exit. Such a run
    # is repeated once.
    UNACKNOWLEDGED = "cq completion status 12(transport retry counter exceeded)"

    def run_verb(self, verb):
        for repeated in (False, True):
            server_command, client_command = self.commands(verb)
            server = self.start(*server_command)
            client = self.run_client(server, client_command)
            end = self.wait(server)
            self.assertEqual(end.status, 0, f"the server: {end.text}\nthe client: {client.text}")
            if repeated or self.UNACKNOWLEDGED not in client.text:
                break
        self.assertEqual(client.status, 0, f"the client: {client.text}\nthe server: {end.text}")
        self.assertIn("io=4096KiB", client.text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
