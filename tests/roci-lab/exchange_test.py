"""Tests of the exchange of experiments with HPCC's ns-3 simulator: import, export, result files, comparison."""

import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LAB = pathlib.Path(sys.argv.pop(1)).resolve()
REFERENCE = pathlib.Path(__file__).resolve().parent / "reference"
TIMEOUT = 240


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Exchange(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def lab(self, *arguments, status=0):
        done = subprocess.run([LAB, *arguments], cwd=self.path, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def run_imported(self, run, duration):
        out, _ = self.lab("import", REFERENCE / "parameters" / f"{run}.txt")
        self.assertEqual(out, f"scenario: {run}.yaml\n")
        # The flows that start within the duration, so that the test is short.
        flows = self.path / f"{run}.flows.list"
        lines = [line for line in flows.read_text().splitlines() if line.startswith("#") or int(line.split()[3]) < duration]
        flows.write_text("\n".join(lines) + "\n")
        text = (self.path / f"{run}.yaml").read_text()
        (self.path / f"{run}.yaml").write_text("\n".join(
            f"duration: {duration}ns" if line.startswith("duration:") else line for line in text.splitlines()) + "\n")
        self.lab("run", f"{run}.yaml", "--quiet", "--ns3-results", "--out", "first")
        return self.path / f"{run}.yaml"

    def test_imported_and_exported_scenarios_give_same_results(self):
        for run, duration in {"s2_dcqcn": 1_000_000, "s3_30_hp": 400_000}.items():
            scenario = self.run_imported(run, duration)
            self.lab("export", scenario.name, "files")
            (self.path / "again").mkdir()
            self.lab("import", f"files/{run}.txt", "-o", f"again/{run}.yaml")
            self.lab("run", f"again/{run}.yaml", "--quiet", "--ns3-results", "--out", "second")
            for name in ("summary.json", "fct.txt", "qlen.txt", "pfc.txt"):
                self.assertEqual(sha256(self.path / "first" / name), sha256(self.path / "second" / name), (run, name))
            # A second export changes nothing.
            self.lab("export", f"again/{run}.yaml", "more")
            for file in (self.path / "files").iterdir():
                self.assertEqual(file.read_text(), (self.path / "more" / file.name).read_text(), file.name)
            for folder in ("first", "second", "files", "again", "more"):
                shutil.rmtree(self.path / folder)

    def test_pause_frames_are_recorded(self):
        self.run_imported("s2c_dcqcn", 1_000_000)
        events = [line.split() for line in (self.path / "first" / "pfc.txt").read_text().splitlines()]
        self.assertTrue(events)
        # The switch pauses hosts on their only interface, and ends each pause.
        for event in events:
            self.assertEqual((event[2], event[3]), ("0", "1"), event)
            self.assertLess(int(event[1]), 17)
        self.assertEqual(sum(event[4] == "1" for event in events) > 0, True)
        self.assertEqual({event[4] for event in events}, {"0", "1"})
        times = [int(event[0]) for event in events]
        self.assertEqual(times, sorted(times))
        self.assertGreaterEqual(times[0], 2_099_000_000)

    def test_compare_accepts_completion_times_of_another_simulator(self):
        self.run_imported("s2_dctcp", 1_000_000)
        csv = REFERENCE / "fct" / "s2_dctcp.csv"
        out, _ = self.lab("compare", "first", csv, "first/fct.txt")
        self.assertIn("completion times of another simulator; minimum durations of run 's2_dctcp'", out)
        row = next(line for line in out.splitlines() if line.startswith("flows          all"))
        values = [float(word) for word in row.split()[2:]]
        self.assertEqual(len(values), 9, row)
        self.assertEqual(values[0:3], values[6:9], "the file that the run has written")
        self.assertNotEqual(values[0:3], values[3:6])
        page = (self.path / "compare.html").read_text()
        self.assertIn("s2_dctcp.csv", page)
        out, _ = self.lab("compare", csv)
        self.assertIn("minimum durations of the file", out)
        (self.path / "bad.txt").write_text("1 2 3\n")
        _, error = self.lab("compare", "first", "bad.txt", status=1)
        self.assertEqual(error, "roci-lab: bad.txt:1: 3 words; sender, receiver, two ports, bytes, start, duration and "
                         "minimum duration are required\n")

    def test_import_reports_untranslated_keys_and_errors(self):
        _, error = self.lab("import", REFERENCE / "parameters" / "s2_hp.txt", "-o", "x.yaml")
        self.assertIn("roci-lab: INT_MULTI: not translated: telemetry of the lab has exact values\n", error)
        text = (REFERENCE / "parameters" / "s2_hp.txt").read_text()
        (self.path / "c.txt").write_text(text.replace("CC_MODE 3", "CC_MODE 10"))
        out, error = self.lab("import", "c.txt", "--base", REFERENCE, status=2)
        self.assertEqual(out, "")
        self.assertTrue(error.startswith("roci-lab: c.txt:"), error)
        self.assertIn(": CC_MODE: 10 is not supported", error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertFalse((self.path / "c.yaml").exists())

    def test_export_reports_what_cannot_be_expressed(self):
        scenario = pathlib.Path(__file__).resolve().parents[2] / "config/lab/incast.yaml"
        _, error = self.lab("export", scenario, "x", status=2)
        self.assertIn("has 3 runs; select one with --only", error)
        _, error = self.lab("export", scenario, "x", "--only", "dcqcn", status=2)
        self.assertIn("unlimited flows cannot be exported; set a size", error)
        self.assertFalse((self.path / "x").exists())


if __name__ == "__main__":
    unittest.main()
