"""Test of bench/lab/cost.py: the cost of a simulation is the resources used, and a run that simulated nothing is
rejected."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

COST = pathlib.Path(__file__).resolve().parents[2] / "bench/lab/cost.py"
MIB_A_HOST = 2
BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"


class Cost(unittest.TestCase):
    def cost(self, program, *options):
        """Runs cost.py on a Python program with the argument HOSTS/2. Returns exit status, output lines by name, and
        stderr."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, COST, *options, sys.executable, "-c", program, "HOSTS/2"],
                                  capture_output=True, text=True, timeout=60, check=False, cwd=folder)
        lines = {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}
        return done.returncode, lines, done.stderr

    def refused(self, program, why, *options):
        status, lines, said = self.cost(program, *options)
        self.assertEqual((status, lines), (1, {}))
        self.assertIn(why, said)

    def test_computes_rate_from_cpu_time(self):
        status, figures, _ = self.cost(BUSY + "time.sleep(0.7)\nprint('packet_hops 3000')")
        self.assertEqual(status, 0)
        self.assertEqual(figures["packet_hops"], 3000)
        self.assertGreaterEqual(figures["cpu_seconds"], 0.3)
        self.assertGreaterEqual(figures["seconds"] - figures["cpu_seconds"], 0.5)
        self.assertAlmostEqual(figures["hops_per_cpu_second"] * figures["cpu_seconds"], 3000, delta=30)

    def test_reads_packet_hops_and_seconds_from_lab_results(self):
        said = "import json, os\nos.mkdir('out')\njson.dump({'packet_hops': 8, 'seconds': 2.0}, open('out/run.json', 'w'))"
        status, figures, _ = self.cost(said, "--results", "out")
        self.assertEqual((status, figures["packet_hops"], figures["hops_per_second"]), (0, 8, 4))

    def test_computes_memory_per_host_from_two_network_sizes(self):
        hosts = f"import sys\nx = b'x' * (int(sys.argv[1]) * {2 * MIB_A_HOST << 20})\nprint('packet_hops 1')"
        status, figures, _ = self.cost(hosts, "--hosts", "10,20,40")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(figures), ["kib_per_host_20", "kib_per_host_40", "resident_kib_10", "resident_kib_20",
                                           "resident_kib_40"])
        for hosts in (20, 40):
            self.assertAlmostEqual(figures[f"kib_per_host_{hosts}"], MIB_A_HOST * 1024, delta=100)

    def test_rejects_failed_empty_or_lossy_simulation(self):
        self.refused("print('done')", "no line 'packet_hops NUMBER'")
        self.refused("print('packet_hops 0')", "no packet was forwarded")
        self.refused("print('packet_hops 7\\ndropped 3')", "3 packets were dropped")
        self.refused("print('packet_hops 7'); raise SystemExit(3)", "ended with 3")
        self.refused("print('packet_hops 7')", "out/run.json", "--results", "out")


if __name__ == "__main__":
    unittest.main()
