"""rdma-core's own tests (pyverbs), which the Debian package python3-pyverbs contains as documentation. Tests of single vendors'
providers are not run. No test may fail, and each skipped test must have a reason of the table SKIPS."""

import collections
import gzip
import pathlib
import re
import sys
import unittest

from programs import Programs

Programs.run_program = sys.argv.pop(1)
# The installed package, or its unpacked files: container images omit documentation.
PEERS = pathlib.Path(sys.argv.pop(1))
FOLDERS = (pathlib.Path("/usr/share/doc/rdma-core/tests"), PEERS / "usr/share/doc/rdma-core/tests")
SUITE = pathlib.Path(__file__).with_name("rdma_core_suite.py")
# Providers, and memory of graphics processors.
EXCLUDED = re.compile(r"test_(mlx[45]|efa|mana|cuda|hns|rxe|irdma)")

# Name of the test and reason of its skip, as regular expressions, and why that is accepted.
SKIPS = (
    ("", "dmabuf|/dev/dri", "memory of other devices: docs/drop-in.md, not implemented"),
    ("test_tag_matching", "Extended CQ is not supported|Tag matching", "tag matching: docs/verbs.md, not implemented"),
    ("flush", "[Pp]ersist", "flush to persistence: docs/verbs.md, no memory is persistent"),
    ("", "huge pages", "the machine has no huge pages"),
    ("query_gid_ex_bad_flow", "All gid indices populated", "the table has exactly the entries that are in use"),
    ("rdmacm", "doesn't have net interface", "the device of a process is not a kernel interface: docs/drop-in.md"),
)


def tests_folder():
    for folder in FOLDERS:
        if (folder / "__init__.py").is_file():
            return folder
    raise FileNotFoundError(f"no tests of rdma-core in {' or '.join(map(str, FOLDERS))}; './roci deps' unpacks them")


def unpack(source, target):
    """Copies the tests; Debian compresses larger ones."""
    target.mkdir()
    for file in sorted(source.iterdir()):
        if EXCLUDED.match(file.name):
            continue
        if file.suffix == ".gz":
            (target / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        elif file.suffix == ".py":
            (target / file.name).write_bytes(file.read_bytes())


class RdmaCore(Programs):
    def setUp(self):
        # Newer tests run the command `rdma` of iproute2 to find the interfaces of the kernel's RDMA devices. It fails if the
        # kernel has no RDMA support; this one lists none.
        commands = self.folder / "commands"
        commands.mkdir()
        (commands / "rdma").write_text("#!/bin/sh\necho '[]'\n", encoding="ascii")
        (commands / "rdma").chmod(0o755)
        self.environment["PATH"] = f"{commands}:{self.environment['PATH']}"

    def test_no_test_fails_and_each_skip_has_a_known_reason(self):
        folder = self.folder / "rdma-core"
        unpack(tests_folder(), folder)
        done = self.wait(self.start("/usr/bin/python3", SUITE, folder, "--dev", "roci0", "--port", "1", "--gid", "1"))
        self.assertEqual(done.status, 0, done.text)
        rows = [line.split("\t") for line in done.text.splitlines() if re.match(r"(ok|skip|ERROR|FAIL)\t", line)]
        totals = collections.Counter(row[0] for row in rows)
        print(", ".join(f"{result} {count}" for result, count in sorted(totals.items())), file=sys.stderr)
        self.assertEqual([row for row in rows if row[0] in ("ERROR", "FAIL")], [])
        unexplained = [row for row in rows if row[0] == "skip" and not any(
            re.search(name, row[1]) and re.search(reason, row[2]) for name, reason, _ in SKIPS)]
        self.assertEqual(unexplained, [])
        self.assertGreater(totals["ok"], 135)


class RdmaCoreWithSwitch(RdmaCore):
    """The queue pairs of these tests are in one process: their frames must not reach the switch, which would not return
    them."""

    net_options = ("--loss", "0")


if __name__ == "__main__":
    unittest.main(verbosity=2)
