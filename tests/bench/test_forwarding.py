"""Test of the load generator of `./roci bench forwarding` and of its switch configurations: frames leave the switch as
configured, and a run in which the measured feature had no effect is rejected."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SWITCH, LOAD = (pathlib.Path(sys.argv.pop(1)) for _ in range(2))
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "bench/forwarding"
INT_BYTES = 32


class Forwarding(unittest.TestCase):
    """Uses `--seconds 0`: verifies the forwarded frames and measures nothing."""

    def load(self, configuration, *options):
        """Returns exit status, the output lines by name, and standard error."""
        with tempfile.TemporaryDirectory() as folder:
            text = (FOLDER / f"{configuration}.yaml").read_text()
            for name in ("in", "out"):
                self.assertIn(f"socket-abstract=yes,socket=roci-bench-{name}\"", text)
                text = text.replace(f"socket-abstract=yes,socket=roci-bench-{name}", f"socket={folder}/{name}")
            config = pathlib.Path(folder) / "switch.yaml"
            config.write_text(text.replace("idle: spin", "idle: yield"))
            switch = subprocess.Popen([SWITCH, "--config", config], stdout=subprocess.DEVNULL)
            try:
                done = subprocess.run([LOAD, f"{folder}/in", f"{folder}/out", "--size", "64", "1024", "--seconds", "0", *options],
                                      capture_output=True, text=True, timeout=120, check=False)
            finally:
                switch.terminate()
                self.assertEqual(switch.wait(60), 0)
        return done.returncode, dict(line.split() for line in done.stdout.splitlines()), done.stderr

    def lines(self, configuration, *options):
        status, lines, said = self.load(configuration, *options)
        self.assertEqual((status, said), (0, ""))
        return {name: float(value) for name, value in lines.items()}

    def test_bridge_keeps_frame_sizes_and_marks_no_frame(self):
        lines = self.lines("bridge")
        self.assertEqual([lines[f"{size}_bytes_out"] for size in (64, 1024)], [62, 1022])
        self.assertEqual([lines[f"{size}_marked_percent"] for size in (64, 1024)], [0, 0])

    def test_marking_marks_some_frames_and_telemetry_adds_one_hop(self):
        lines = self.lines("marking", "--marked")
        self.assertTrue(0 < lines["1024_marked_percent"] < 50, lines)
        self.assertEqual(lines["64_bytes_out"], lines["64_bytes_in"])
        lines = self.lines("telemetry", "--longer", str(INT_BYTES))
        self.assertEqual([lines[f"{size}_bytes_out"] - lines[f"{size}_bytes_in"] for size in (64, 1024)], [INT_BYTES] * 2)

    def test_combined_configuration_marks_frames_and_adds_hop(self):
        lines = self.lines("everything", "--marked", "--longer", str(INT_BYTES))
        self.assertGreater(lines["64_marked_percent"], 0)

    # A result of a switch whose feature had no effect would be misleading.
    def test_rejects_run_without_effect_of_measured_feature(self):
        status, _, said = self.load("bridge", "--marked")
        self.assertEqual((status, said), (1, "roci-forwarding-load: no received frame was marked\n"))
        status, _, said = self.load("marking", "--longer", str(INT_BYTES))
        self.assertEqual(status, 1)
        self.assertRegex(said, r"\Aroci-forwarding-load: a frame of 62 bytes was received with 62, [^\n]*\n\Z")

    def test_requires_either_two_sockets_or_device_core(self):
        for options in ((), ("in",), ("in", "out", "--device-core", "0")):
            done = subprocess.run([LOAD, *options], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, "roci-forwarding-load: two sockets or --device-core are required\n"))


class OpenVSwitch(unittest.TestCase):
    def test_reports_missing_ovs_program_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, FOLDER / "open_vswitch.py", "--programs", folder, "--core", "1", "--other-core", "0",
                                   "--flows", "normal"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"open_vswitch.py: there is no ovs-vsctl in {folder}\n")


if __name__ == "__main__":
    unittest.main()
