"""Tests of the roci-lab command: results that do not depend on the way of execution, error messages, and exit codes."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

LAB = pathlib.Path(sys.argv.pop(1)).resolve()
MPIRUN = sys.argv.pop(1)
TIMEOUT = 120
TWO_RANKS = [MPIRUN, "--oversubscribe", "-n", "2", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]

# Two runs with everything that is random: destinations, arrival times, marks, losses.
SCENARIO = """
name: small
about: a small network
duration: 300us
drain: 20ms
topology:
  {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 3, link: {rate: 25Gbps}, fabric: {rate: 50Gbps}}
switches: {classes: [{class: 0, mark: {kmin: 5us, kmax: 30us, pmax: 0.5}}]}
traffic:
  - {name: web, pattern: random, from: all, to: all, size: 20KB, arrivals: poisson, load: 0.5}
  - {name: long, from: [h0, h1], to: h5, size: unlimited}
faults: [{between: [leaf0, spine1], loss: 0.001}]
variants:
  - {name: dcqcn, set: {hosts.congestion_control: {profile: dcqcn}}}
  - {name: dctcp, set: {hosts.congestion_control: {profile: dctcp}}}
windows: [{name: late, from: 200us}]
expect:
  - {claim: both carry something, that: dctcp.traffic.long.goodput_bps > 0 * dcqcn.traffic.long.goodput_bps}
  - {claim: the window is there, that: dctcp.windows.late.traffic.long.goodput_bps > 1Gbps}
"""
# SHA-256 of the summaries of SCENARIO, the same in every build and on every machine. A change in the behavior of
# hosts or switches changes them; update the values then.
SUMMARIES = {
    "dcqcn": "6853a7ca32722d21b68227aa42adc244d0d0f2c1145ff107e998b484648dd41a",
    "dctcp": "1e1c330665c982f2d8ae0d9da35c2f9fd42b50d182dd269ad8a2d7cae62688d9",
}


def hashes(folder):
    return {path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*/summary.json")}


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


class RociLab(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.file("small.yaml", SCENARIO)

    def file(self, name, text):
        (self.path / name).write_text(text)

    def lab(self, *arguments, before=(), status=0):
        # Open MPI leaks memory, which LeakSanitizer would report.
        environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"} if before else os.environ
        done = subprocess.run([*before, LAB, *arguments], cwd=self.path, env=environment, capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def test_summaries_do_not_depend_on_build_threads_or_jobs(self):
        for out, how in {"a": ["--threads", "1"], "b": ["--threads", "3"], "c": ["--jobs", "2"]}.items():
            self.lab("run", "small.yaml", "--out", out, *how)
            self.assertEqual(hashes(self.path / out), SUMMARIES, how)

    @unittest.skipUnless(MPIRUN, "this build has no MPI")
    def test_mpi_ranks_share_runs_and_first_rank_has_all_results(self):
        one, _ = self.lab("run", "small.yaml", "--out", "one", "--seeds", "3")
        two, _ = self.lab("run", "small.yaml", "--out", "two", "--seeds", "3", before=TWO_RANKS)
        self.assertEqual(len(hashes(self.path / "one")), 6)
        self.assertEqual(hashes(self.path / "one"), hashes(self.path / "two"))
        # The tables are the same, except for the speed of the runs.
        told = [[line[:100] for line in text.splitlines() if line.startswith(("dc", "holds"))] for text in (one, two)]
        self.assertEqual(*told)
        self.assertEqual(len([line for line in told[0] if line.startswith("holds")]), 2)
        _, error = self.lab("run", "missing.yaml", before=TWO_RANKS, status=2)
        self.assertEqual(error.count("missing.yaml"), 1, error)

    def test_seeds_have_means_with_intervals(self):
        out, _ = self.lab("run", "small.yaml", "--out", "x", "--seeds", "3")
        self.assertRegex(out, r"\nmean, 95 % confidence +traffic +goodput +Jain +queue p50 +p99\n")
        self.assertRegex(out, r"\ndctcp +\S+ +[0-9.]+ [MG]bit/s ± [0-9.]+ [KMG]?bit/s ")
        self.assertRegex(out, r"\nholds   both carry something: .* against .* \(3 seeds\)")
        claims = json.loads((self.path / "x" / "claims.json").read_text())
        self.assertEqual([claim["holds"] for claim in claims], [True, True])
        self.assertIn("(3 seeds)", claims[0]["found"])

    def test_confidence_must_be_a_probability(self):
        self.file("small.yaml", SCENARIO.replace("> 1Gbps}", "> 1Gbps, confidence: 95}"))
        _, error = self.lab("run", "small.yaml", "--out", "x", status=2)
        self.assertRegex(error, r"small.yaml:\d+: expect.*confidence: .*0.5.*0.99")

    def test_failed_expectation_returns_1(self):
        self.file("small.yaml", SCENARIO.replace("> 1Gbps", "> 100Gbps"))
        out, _ = self.lab("run", "small.yaml", "--out", "x", status=1)
        self.assertIn("\nholds   both carry something: ", out)
        self.assertIn("\nFAILS   the window is there: ", out)
        page = (self.path / "x" / "report.html").read_text()
        self.assertIn('"claim":"the window is there"', page)

    def test_claim_marked_as_failing_may_fail_but_not_hold(self):
        mark = ", fails: the link has 25 Gb/s}"
        self.file("small.yaml", SCENARIO.replace("> 1Gbps}", "> 100Gbps" + mark))
        out, _ = self.lab("run", "small.yaml", "--out", "x")
        self.assertRegex(out, "\nfails   the window is there: .* against .*; fails \\(known\\): the link has 25 Gb/s\n")
        self.assertIn('"fails":"the link has 25 Gb/s"', (self.path / "x" / "report.html").read_text())
        out, _ = self.lab("explain", "small.yaml")
        self.assertIn("fails (known): the link has 25 Gb/s\n", out)

        self.file("small.yaml", SCENARIO.replace("> 1Gbps}", "> 1Gbps" + mark))
        out, _ = self.lab("run", "small.yaml", "--out", "y", status=1)
        self.assertRegex(out, "\nHOLDS   the window is there: .*; remove the mark 'fails'\n")

        self.file("small.yaml", SCENARIO.replace("late.traffic.long.goodput_bps > 1Gbps}", "late.no_value > 1Gbps" + mark))
        out, _ = self.lab("run", "small.yaml", "--out", "z", status=1)
        self.assertIn("\nFAILS   the window is there: ", out)

    def one_run(self, traffic, more=""):
        self.file("one.yaml", "name: one\nduration: 100us\ntopology: {kind: star, hosts: 3, link: {rate: 100Gbps}}\n"
                  f"traffic: [{traffic}]\n{more}")

    def test_failed_messages_are_reported_and_return_1(self):
        self.one_run("{name: t, from: others, to: h0, size: 1KB}",
                     "drain: 10s\nfaults: [{between: [h1, s0], down: true}]\n")
        out, error = self.lab("run", "one.yaml", "--out", "x", "--quiet", status=1)
        self.assertRegex(error, "^roci-lab: one: 1 of 2 flows failed; the first error: h1: a message failed with status 12\n$")
        self.assertIn("\none  ", out)

    def test_claim_about_flows_that_have_not_ended_fails(self):
        self.one_run("{name: t, from: others, to: h0, size: 10MB}, {name: u, from: h0, to: [h1, h2], size: 1KB}",
                     "expect: [{claim: fast, that: run.traffic.t.completion_ns.most < 2ms},"
                     " {claim: short, that: run.traffic.u.completion_ns.most < 2ms}]\n")
        out, _ = self.lab("run", "one.yaml", "--out", "x", status=1)
        self.assertIn("FAILS   fast: the summary has no 'run.traffic.t.completion_ns.most' (run: 0 of 2 flows ended)\n", out)
        self.assertRegex(out, "holds   short: .* against 2 ms\n")

    def test_runs_must_have_folders_of_their_own(self):
        for names, sentence in {
            ("a b", "a_b"): "runs 'a b' and 'a_b' have the same results folder 'a_b'; rename one of them",
            ("a", ".."): "run '..': the name cannot be that of a results folder; rename the run",
            ("report.html", "b"): "run 'report.html': the name cannot be that of a results folder; rename the run",
        }.items():
            self.one_run("{from: others, to: h0, size: 1KB}", f"variants: [{{name: {names[0]}}}, {{name: '{names[1]}'}}]\n")
            out, error = self.lab("run", "one.yaml", status=2)
            self.assertEqual((out, error), ("", f"roci-lab: one.yaml: {sentence}\n"))

    def test_output_folder_has_results_of_one_command(self):
        self.one_run("{from: others, to: h0, size: 1KB}", "variants: [{name: a}, {name: b}]\n")
        self.lab("run", "one.yaml", "--out", "x")
        (self.path / "x" / "b" / "notes").write_text("")
        self.lab("run", "one.yaml", "--out", "x", "--only", "a")
        self.assertEqual(sorted(path.name for path in (self.path / "x").iterdir()),
                         ["b", "claims.json", "report.html", "results.h5", "run.json", "summary.json"])
        self.assertEqual([path.name for path in (self.path / "x" / "b").iterdir()], ["notes"])
        self.lab("run", "one.yaml", "--out", "x")
        self.assertFalse((self.path / "x" / "summary.json").exists())
        before = hashes(self.path / "x")
        _, error = self.lab("run", "small.yaml", "--out", "x", status=2)
        self.assertRegex(error, "^roci-lab: 'x/[ab]' has results of another scenario file; select another folder with --out\n$")
        self.assertEqual(hashes(self.path / "x"), before)

    def test_output_folder_is_checked_before_the_runs(self):
        out, error = self.lab("run", "small.yaml", "--out", "small.yaml/x", status=2)
        self.assertEqual((out, error), ("", "roci-lab: 'small.yaml/x' cannot be created: Not a directory\n"))

    def test_full_disk_gives_one_sentence_and_no_partial_file(self):
        self.one_run("{pattern: random, to: all, size: 100B, arrivals: poisson, load: 0.5}", "sample: 100ns\n")
        code = ("import resource, signal, subprocess, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
                "resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384)); "
                "sys.exit(subprocess.run(sys.argv[1:], restore_signals=False).returncode)")
        done = subprocess.run([sys.executable, "-c", code, LAB, "run", "one.yaml", "--out", "x", "--quiet"], cwd=self.path,
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (1, "roci-lab: 'x/results.h5' cannot be written: File too large\n"))
        self.assertFalse((self.path / "x" / "results.h5").exists())

    def test_names_of_many_ports_are_stored(self):
        hosts = [f"{number:0200}" for number in range(400)]
        links = ", ".join(f"{{between: [{host}, s0]}}" for host in hosts)
        self.file("one.yaml", "name: one\nduration: 20us\nsample: 1us\ntopology: {kind: graph, link: {rate: 100Gbps}, "
                  f"switches: [s0], hosts: [{', '.join(hosts)}], links: [{links}]}}\n"
                  f"traffic: [{{from: {hosts[0]}, to: {hosts[1]}, size: 1KB}}]\n")
        self.lab("run", "one.yaml", "--out", "x")
        self.lab("compare", "x")

    def test_names_that_are_not_utf8_do_not_end_the_run(self):
        self.one_run("{from: others, to: h0, size: 1KB}")
        name = os.fsdecode(b"\xff.yaml")
        (self.path / "one.yaml").rename(self.path / name)
        self.lab("run", name, "--out", "x")
        self.assertEqual(json.loads((self.path / "x" / "run.json").read_text())["file"], "\ufffd.yaml")

    def test_skips_expectations_of_runs_not_executed(self):
        out, _ = self.lab("run", "small.yaml", "--out", "x", "--only", "dctcp")
        self.assertNotIn("both carry", out)
        self.assertIn("holds   the window is there", out)
        self.assertIn("expectations of runs that were not executed: 1", out)

    def test_reports_invalid_scenario_in_one_line(self):
        where = "roci-lab: small.yaml:"
        for change, sentence in {
            ("claim: both", "clam: both"): "18: expect[0]: the required key 'claim' is missing",
            ("dctcp.windows", "dctpc.windows"): "19: expect[1].that: unknown run 'dctpc'; available are 'dcqcn', 'dctcp'",
            ("> 1Gbps", "1Gbps"): "19: expect[1].that: one of <, <=, >, >=, surrounded by spaces, is required",
            ("> 1Gbps}", "> 1Gbps, fails: ''}"): "19: expect[1].fails: a reason is required",
            ("> 1Gbps}", "> 1Gbps, fail: it}"): "19: expect[1].fail is an unknown key",
            ("rate: 25Gbps", "rate: 0"): "7: topology.link.rate: ",
            ("load: 0.5", "load: 0.5, laod: 1"): "10: traffic[0].laod is an unknown key",
        }.items():
            self.file("small.yaml", SCENARIO.replace(*change))
            out, error = self.lab("run", "small.yaml", status=2)
            self.assertEqual(out, "")
            self.assertTrue(error.startswith(where + sentence), error)
            self.assertEqual(error.count("\n"), 1, error)
        self.file("small.yaml", SCENARIO)
        _, error = self.lab("run", "small.yaml", "--only", "tcp", status=2)
        self.assertEqual(error, "roci-lab: --only: unknown run 'tcp'; available are: dcqcn, dctcp\n")

    def test_expectation_on_missing_value_fails(self):
        self.file("small.yaml", SCENARIO.replace("windows.late.traffic.long", "windows.late.traffic.lon"))
        out, _ = self.lab("run", "small.yaml", "--out", "x", status=1)
        self.assertIn("FAILS   the window is there: the summary has no 'dctcp.windows.late.traffic.lon'", out)

    def test_real_time_gives_same_summaries_and_run_json_records_mode(self):
        for mode in ("--real", "--virtual"):
            self.lab("run", "small.yaml", "--out", mode[2:], mode)
        self.assertEqual(hashes(self.path / "real"), hashes(self.path / "virtual"))
        run = json.loads((self.path / "real" / "dctcp" / "run.json").read_text())
        self.assertEqual(run["mode"], "real")
        self.assertEqual(run["command"], "roci-lab run small.yaml --only 'dctcp' --real")
        self.assertEqual(run["ports"], [])
        self.assertLessEqual(run["late"]["mean_ns"], run["late"]["most_ns"])
        run = json.loads((self.path / "virtual" / "dctcp" / "run.json").read_text())
        self.assertEqual(run["mode"], "virtual")
        self.assertNotIn("late", run)

    def test_real_time_rejects_parallel_runs(self):
        _, error = self.lab("run", "small.yaml", "--real", "--jobs", "2", status=2)
        self.assertEqual(error, "roci-lab: --real executes one run at a time; 2 jobs would delay each other\n")
        if MPIRUN:
            out, error = self.lab("run", "small.yaml", "--real", before=TWO_RANKS, status=2)
            self.assertEqual(error.count("roci-lab: --real requires one process; 2 would delay each other\n"), 1, error)
        self.assertEqual([path.name for path in self.path.iterdir()], ["small.yaml"])

    def test_real_ports_are_validated_before_any_run(self):
        ports = 'ports: [{between: [h0, leaf0], devices: ["net_null0", "net_null1"]}]\n'
        self.file("small.yaml", SCENARIO + ports)
        self.lab("run", "small.yaml", "--out", "x")
        out, error = self.lab("run", "small.yaml", "--real", status=2)
        self.assertEqual(out, "")
        self.assertEqual(error, "roci-lab: small.yaml:20: ports[0].devices: packets without payload cannot be sent "
                         "through real ports; --real requires payload: carried\n")
        out, _ = self.lab("explain", "small.yaml")
        self.assertIn("real port  h0: net_null0, and leaf0: net_null1\n", out)

    def test_interrupt_keeps_only_completed_runs(self):
        # The second run would take hours.
        self.file("small.yaml", """
name: stopped
duration: 100us
topology: {kind: star, hosts: 3}
traffic: [{name: t, from: others, to: h0, size: unlimited}]
variants: [{name: short}, {name: long, set: {duration: 1h}}, {name: never}]
""")
        for number, mode in ((signal.SIGINT, "--virtual"), (signal.SIGTERM, "--real")):
            out = self.path / mode[2:]
            process = subprocess.Popen([LAB, "run", "small.yaml", "--out", out, mode], cwd=self.path,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(end, process)
            first = [process.stdout.readline() for _ in range(2)][1]
            self.assertTrue(first.startswith("short "), first)
            process.send_signal(number)
            _, error = process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, 130, error)
            self.assertEqual(error, "roci-lab: stopped: 1 of 3 runs were complete; the results of the others were not "
                             "written\n")
            self.assertEqual(sorted(path.name for path in out.iterdir()), ["claims.json", "report.html", "short"])

    def test_explain_describes_scenario_without_running_it(self):
        out, _ = self.lab("explain", "small.yaml", "--only", "dctcp")
        for text in ("small: a small network", "6 hosts, 4 switches", "congestion control dctcp", "2 flows of unlimited size",
                     "late: 200 us to 300 us", "the window is there"):
            self.assertIn(text, out)
        self.assertEqual([path.name for path in self.path.iterdir()], ["small.yaml"])

    def test_explain_prints_parameters_with_their_source(self):
        profile = "profile: mine, profiles: [{name: mine, algorithm: dcqcn_paper, parameters: {rpg_threshold: 7}}]"
        self.file("mine.yaml", SCENARIO.replace("profile: dcqcn", profile))
        out, _ = self.lab("explain", "mine.yaml", "--only", "dcqcn")
        self.assertIn(" rpg_threshold 7, scenario\n", out)
        self.assertIn(" rpg_time_reset 55000 ns, profile dcqcn_paper\n", out)
        self.assertRegex(out, r" \S+ \S+( \S+)?, default\n")

    def test_explain_warns_of_a_class_that_pauses_before_it_marks(self):
        lossless = "pmax: 0.5}, lossless: {xoff: 10KB, xon: 5KB, headroom: 100KB}"
        self.file("pauses.yaml", SCENARIO.replace("pmax: 0.5}", lossless))
        out, _ = self.lab("explain", "pauses.yaml", "--only", "dctcp")
        self.assertEqual(out.count("\n  warning    switch "), 1, out)

    def test_list_prints_valid_files_and_reports_invalid_ones(self):
        self.file("worse.yaml", "name: x\n")
        out, error = self.lab("list", ".", status=1)
        self.assertRegex(out, r"small.yaml +2 +2  a small network")
        self.assertIn("worse.yaml", error)


if __name__ == "__main__":
    unittest.main()
