"""Test of roci-lab: memory of a host without traffic, including its part of the switches."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAB = pathlib.Path(sys.argv.pop(1)).resolve()
KIB_PER_IDLE_HOST = 128
SCENARIO = """
name: idle
duration: 10us
topology:
  {kind: leaf_spine, leaves: LEAVES, spines: 1, hosts_per_leaf: 8, link: {rate: 100Gbps}, fabric: {rate: 400Gbps}}
hosts: {congestion_control: {profile: dcqcn}}
traffic: [{from: h0, to: h8, size: 1KB}]
"""


class Memory(unittest.TestCase):
    def resident_kib(self, leaves):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "idle.yaml").write_text(SCENARIO.replace("LEAVES", str(leaves)))
            child = subprocess.Popen([LAB, "run", "idle.yaml", "--threads", "1", "--quiet"], cwd=folder,
                                     stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(child.returncode, 0)
            return used.ru_maxrss

    def test_idle_hosts_have_little_memory(self):
        few, many = 8, 72
        kib = (self.resident_kib(many) - self.resident_kib(few)) / (8 * (many - few))
        self.assertLess(kib, KIB_PER_IDLE_HOST)


if __name__ == "__main__":
    unittest.main()
