"""Ceph (a monitor, three OSDs, `rados` and `rbd` as clients) whose messengers all use RDMA. Ceph exchanges the numbers of
its queue pairs over TCP on the loopback interface and sends everything else in RDMA SENDs."""

import hashlib
import json
import random
import subprocess
import sys
import time
import unittest
import uuid

from programs import LIMIT, Programs, free_port, kill, require_programs

Programs.run_program = sys.argv.pop(1)
MIB = 1 << 20
OSDS = 3
CONFIGURATION = """[global]
fsid = {fsid}
mon_host = {monitor}
public_network = 127.0.0.0/8
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_type = async+rdma
ms_async_rdma_device_name = roci0
run_dir = {folder}
admin_socket = {folder}/$name.$pid.asok
pid_file =
log_file =
log_to_stderr = true
err_to_stderr = true
mon_data = {folder}/mon
mon_data_avail_crit = 1
mon_data_avail_warn = 1
osd_data = {folder}/osd$id
osd_objectstore = bluestore
bluestore_block_size = 4294967296
osd_memory_target = 939524096
osd_pool_default_size = 3
osd_pool_default_min_size = 2
osd_pool_default_pg_autoscale_mode = off
# All OSDs are on one host: it holds all replicas, and an OSD is down if two others on this host report it.
osd_crush_chooseleaf_type = 0
mon_osd_reporter_subtree_level = osd
osd_heartbeat_interval = 1
osd_heartbeat_grace = 10
# A scrub does not wait for an idle machine.
osd_scrub_load_threshold = 1000
osd_max_scrubs = 8
"""


class Ceph(Programs):
    """The tests share a cluster."""

    POOL, PLACEMENT_GROUPS = "data", 8

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.fsid, cls.monitor = str(uuid.uuid4()), f"[v2:127.0.0.1:{free_port()}]"
        cls.environment["CEPH_CONF"] = str(cls.folder / "ceph.conf")
        (cls.folder / "ceph.conf").write_text(
            CONFIGURATION.format(fsid=cls.fsid, monitor=cls.monitor, folder=cls.folder), encoding="utf-8")
        cls.daemons = {}
        cls.addClassCleanup(cls.stop_daemons)
        cls.start_cluster()

    @classmethod
    def start_cluster(cls):
        monitor_map = cls.folder / "monmap"
        cls.command("monmaptool", "--create", "--fsid", cls.fsid, "--addv", "a", cls.monitor, monitor_map)
        (cls.folder / "mon").mkdir()
        cls.command("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitor_map)
        cls.start_daemon("ceph-mon", "a")
        for number in range(OSDS):
            (cls.folder / f"osd{number}").mkdir()
            name = str(uuid.uuid4())
            cls.command("ceph", "osd", "new", name, number)
            cls.command("ceph-osd", "-i", number, "--mkfs", "--osd-uuid", name)
            cls.start_daemon("ceph-osd", number)
        cls.until_up(OSDS)
        cls.command("ceph", "osd", "pool", "create", cls.POOL, cls.PLACEMENT_GROUPS)
        cls.until_clean()

    @classmethod
    def start_daemon(cls, program, name):
        output = (cls.folder / f"{program}.{name}.log").open("ab")
        cls.daemons[f"{program}.{name}"] = subprocess.Popen(
            [cls.run_program, "--net", cls.net, *cls.net_options, program, "-f", "-i", str(name)], env=cls.environment,
            cwd=cls.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        output.close()

    @classmethod
    def stop_daemons(cls):
        for daemon in cls.daemons.values():
            kill(daemon)

    @classmethod
    def logs(cls):
        """The last lines of each daemon."""
        return "\n".join(f"{path.name}: {line}" for path in sorted(cls.folder.glob("*.log"))
                         for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-8:] if line)

    @classmethod
    def command(cls, *command):
        """Runs a program of Ceph in the network. Returns its standard output."""
        command = [cls.run_program, "--net", cls.net, *cls.net_options, *map(str, command)]
        try:
            ended = subprocess.run(command, env=cls.environment, cwd=cls.folder, stdin=subprocess.DEVNULL,
                                   capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}:\n{late.stdout}\n{late.stderr}\n{cls.logs()}") from None
        if ended.returncode != 0:
            raise AssertionError(f"{command}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}\n{cls.logs()}")
        return ended.stdout

    @classmethod
    def until(cls, done, what):
        deadline = time.monotonic() + LIMIT
        while not done():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {LIMIT} s\n{cls.logs()}")
            time.sleep(0.2)

    @classmethod
    def until_up(cls, number):
        cls.until(lambda: json.loads(cls.command("ceph", "osd", "stat", "-f", "json"))["num_up_osds"] == number,
                  f"{number} OSDs are up")

    @classmethod
    def placement_groups(cls):
        """Reports of all placement groups of the pool."""
        pool = next(pool["poolnum"] for pool in json.loads(cls.command("ceph", "osd", "lspools", "-f", "json"))
                    if pool["poolname"] == cls.POOL)
        names = [f"{pool}.{number:x}" for number in range(cls.PLACEMENT_GROUPS)]
        return {name: json.loads(cls.command("ceph", "tell", name, "query")) for name in names}

    @classmethod
    def until_clean(cls):
        cls.until(lambda: {group["state"] for group in cls.placement_groups().values()} == {"active+clean"},
                  "all placement groups are active+clean")

    def rados(self, *command):
        return self.command("rados", "-p", self.POOL, *command)

    def put(self, name, size):
        """Writes an object with random contents. Returns their digest."""
        file = self.folder / f"{name}.in"
        file.write_bytes(random.Random(name).randbytes(size))
        self.rados("put", name, file)
        return hashlib.sha256(file.read_bytes()).hexdigest()

    def digest_of(self, name):
        file = self.folder / f"{name}.out"
        self.rados("get", name, file)
        return hashlib.sha256(file.read_bytes()).hexdigest()

    def test_objects_are_read_as_written(self):
        written = {f"object{size}": self.put(f"object{size}", size) for size in (1, 4096, MIB + 7, 20 * MIB)}
        self.assertEqual({name: self.digest_of(name) for name in written}, written)
        packets = {process["pid"]: sum(qp["counts"]["acked_packets"] + qp["counts"]["received_packets"]
                                       for host in process["hosts"] for qp in host["queue_pairs"])
                   for process in self.look() if process["program"] == "ceph-osd"}
        self.assertEqual(len(packets), OSDS, packets)
        self.assertGreater(min(packets.values()), 20 * MIB // 4096, packets)  # each OSD has a replica

    def test_bench_reads_what_it_has_written(self):
        """`rados bench` compares what it reads."""
        for size, seconds in ((4096, 2), (4 * MIB, 3)):
            written = self.rados("bench", seconds, "write", "-b", size, "-t", 16, "--no-cleanup")
            self.assertRegex(written, r"Total writes made: +[1-9]")
            self.assertRegex(self.rados("bench", seconds, "seq", "-t", 16), r"Total reads made: +[1-9]")
            self.assertRegex(self.rados("bench", seconds, "rand", "-t", 16), r"Total reads made: +[1-9]")
            self.rados("cleanup")

    def test_image_is_exported_as_imported(self):
        image, copy = self.folder / "image", self.folder / "copy"
        image.write_bytes(random.Random(1).randbytes(24 * MIB))
        self.command("rbd", "import", "--pool", self.POOL, "--image-feature", "layering", image, "image")
        self.command("rbd", "export", "--pool", self.POOL, "image", copy)
        self.assertEqual(copy.read_bytes(), image.read_bytes())

    def test_deep_scrub_finds_equal_replicas(self):
        self.put("scrubbed", 8 * MIB)
        started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        groups = self.placement_groups()
        for name in groups:
            for due in ("deep_scrub", "scrub"):  # the next scrub is a deep one, and due now
                self.command("ceph", "tell", name, due)
        self.until(lambda: all(group["info"]["stats"]["last_deep_scrub_stamp"] >= started
                               for group in self.placement_groups().values()), "all placement groups are scrubbed")
        for name in groups:
            self.assertEqual(json.loads(self.command("rados", "list-inconsistent-obj", name))["inconsistents"], [])

    def test_killed_osd_is_replaced_and_filled_again(self):
        written = {"before": self.put("before", 4 * MIB)}
        kill(self.daemons["ceph-osd.1"])
        written["without"] = self.put("without", 8 * MIB)  # waits until the cluster knows that the OSD is down
        self.until_up(OSDS - 1)
        self.start_daemon("ceph-osd", 1)
        self.until_up(OSDS)
        self.until_clean()
        kill(self.daemons["ceph-osd.0"])  # objects are now read from the others, and from the one that was filled again
        self.assertEqual({name: self.digest_of(name) for name in written}, written)
        self.start_daemon("ceph-osd", 0)
        self.until_up(OSDS)
        self.until_clean()


if __name__ == "__main__":
    require_programs("ceph", "ceph-mon", "ceph-osd", "rados", "rbd")
    unittest.main(verbosity=2)
