#!/usr/bin/env python3
"""Tests of the roci-cc command. Usage: roci_cc_test.py ROCI_CC ROCI_PERF FOLDER_OF_PLUGINS [unittest …]"""
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = PERF = PLUGINS = ""

BUILT_IN = ["dcqcn", "dctcp", "hpcc", "hpcc_receiver", "hpcc_sampled", "ldcp", "ldcp_pcc", "powertcp", "qcn",
            "static_rate", "static_window", "swift", "theta_powertcp", "timely"]
PROFILES = [("dcqcn_connectx", "dcqcn"), ("dcqcn_hpcc_sim", "dcqcn"), ("dcqcn_hpcc_sim_25g", "dcqcn"),
            ("dcqcn_paper", "dcqcn"), ("dctcp_hpcc_sim", "dctcp"), ("powertcp_sim", "powertcp"),
            ("theta_powertcp_sim", "theta_powertcp"), ("timely_hpcc_sim", "timely"), ("timely_paper", "timely")]
NO_LIMIT = 2**64 - 1


def decision(**changes):
    return {"window": NO_LIMIT, "rate": NO_LIMIT, "gap_ns": 0, "not_ect_below": 0, "timer0_ns": 0, "timer1_ns": 0,
            "sent_notice": 0, "idle_ns": 0, "requests": 0, "state": 0, "reason": 0, **changes}


def start(plugin="static_rate", flow=1, kind="start", **changes):
    """Returns the first line of a flow, which has 1 Gb/s by default."""
    line = {"type": kind, "flow": flow, "profile": "p", "plugin": plugin, "parameters": {"rate": 1e9},
            "info": {"line_rate": 10**11, "base_rtt_ns": 4200, "packet_bytes": 1048, "payload_bytes": 1000,
                     "direction": 0, "provides": 1, "seed": 2**63 + 1}}
    if kind == "start":
        line.update(now_ns=1000, decision=decision(rate=10**9))
    return {**line, **changes}


def event(now, flow=1, **changes):
    return {"type": "event", "flow": flow, "event": {"now_ns": now, "kinds": 1, "acked": now, "next": now},
            "decision": decision(rate=10**9, **changes)}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="roci-cc-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, *arguments, data=None, cwd=None):
        done = subprocess.run([PROGRAM, *arguments], input=data, capture_output=True, text=True, timeout=120,
                              check=False, cwd=cwd)
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments, **how):
        status, out, err = self.run_program(*arguments, **how)
        self.assertEqual((status, err), (0, ""), arguments)
        return out

    def trace(self, *lines):
        path = os.path.join(self.folder, "trace.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for line in ({"type": "trace", "version": 1}, *lines):
                file.write(json.dumps(line) + "\n")
        return path


class Usage(Case):
    def test_help_of_each_command_fits_into_105_columns(self):
        self.assertIn("replay", self.good("--help"))
        for command in ("", "list", "show", "check", "replay", "csv"):
            out = self.good(*([command] if command else []), "--help")
            self.assertLessEqual(max(map(len, out.splitlines())), 105, command)
            self.assertEqual("Exit status" in out, command != "", command)

    def test_invalid_usage_returns_2(self):
        for arguments in ([], ["show"], ["check"], ["replay"], ["list", "--json"], ["fly"]):
            status, out, err = self.run_program(*arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertRegex(err, r"\Aroci-cc: [^\n]+\n\Z")

    def test_output_that_cannot_be_written_returns_2(self):
        for arguments in (["list"], ["show", "dcqcn"], ["--help"], ["--version"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                                      check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertRegex(done.stderr, r"\Aroci-cc: standard output cannot be written(: No space left on device)?\n\Z")
        # Programs without output do not need it.
        self.assertEqual(subprocess.run(["/bin/sh", "-c", '"$0" check /nowhere.so >&-', PROGRAM], stderr=subprocess.PIPE,
                                        check=False).returncode, 1)


class Descriptions(Case):
    def test_list_contains_every_algorithm(self):
        out = self.good("list")
        self.assertEqual(re.findall(r"^([a-z_]+) ", out, flags=re.MULTILINE), BUILT_IN)
        self.assertLessEqual(max(map(len, out.splitlines())), 100)
        self.assertIn("requires CNPs of the peer", out)

    def test_list_contains_plugin_from_file(self):
        out = self.good("list", "--plugin", os.path.join(PLUGINS, "odd.so"))
        self.assertRegex(out, r"(?m)^odd +rate +0 +a part of the line$")

    def test_show_prints_every_section_of_each_algorithm(self):
        for name in BUILT_IN:
            out = self.good("show", name)
            self.assertTrue(out.startswith(name + ": "), out)
            for title in ("source", "code", "requires", "decides", "flow state", "parameters", "states", "reasons of changes"):
                self.assertRegex(out, rf"(?m)^{title}\b", name)
            self.assertLessEqual(max(map(len, out.splitlines())), 100, name)
            self.assertFalse(re.search(r" $", out, flags=re.MULTILINE), name)

    def test_show_prints_numbers_in_short_form(self):
        out = self.good("show", "dcqcn")
        self.assertRegex(out, r"(?m)^  rpg_time_reset +ns +300e3 +1000 to 10e9 +interval between increases by time")
        self.assertRegex(out, r"(?m)^  dce_tcp_g +1019 +0 to 1023 ")
        self.assertRegex(self.good("show", "hpcc"), r"(?m)^  eta +0\.95 +0\.1 to 1 ")

    def test_show_prints_all_values_of_a_built_in_profile(self):
        out = self.good("show", "dcqcn_paper")
        self.assertRegex(out, r"(?m)^dcqcn_paper: built-in profile of dcqcn$")
        self.assertRegex(out, r"(?m)^  rpg_byte_reset +bytes +10e6 +0 +bytes sent between increases")
        self.assertRegex(out, r"(?m)^  rpg_gd +11 +a cut subtracts")
        self.assertRegex(self.good("show", "dcqcn"), r"(?m)^  dcqcn_paper +dcqcn +Zhu et al\., SIGCOMM 2015, for 40 Gb/s")

    def test_show_accepts_alias_and_explains_proprietary_name(self):
        self.assertEqual(self.good("show", "HPCC++"), self.good("show", "hpcc"))
        status, out, err = self.run_program("show", "hc3")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("HC3 is a proprietary algorithm of HiSilicon hardware", err)

    def test_show_rejects_unknown_algorithm_and_lists_available(self):
        status, out, err = self.run_program("show", "reno")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err, "roci-cc: unknown congestion control algorithm 'reno'; available are " +
                         ", ".join(BUILT_IN) + "\n")

    def test_markdown_output_contains_tables(self):
        out = self.good("list", "--markdown")
        algorithms, profiles = out.split("\n\n")
        self.assertEqual(re.findall(r"^\| `([a-z_]+)` \|", algorithms, flags=re.MULTILINE), BUILT_IN)
        self.assertEqual(re.findall(r"^\| `(\w+)` \| (\w+) \|", profiles, flags=re.MULTILINE), PROFILES)
        out = self.good("show", "odd", "--plugin", os.path.join(PLUGINS, "odd.so"), "--markdown")
        self.assertIn("| Parameter | Unit | Default | Range | Meaning |\n|---|---|---|---|---|\n", out)
        self.assertIn("| `part` |  | 1 | 0 to 1 | of the line \\| its rate |\n", out)
        self.assertIn("| `fixed` | the limit stays as it is |\n", out)
        for name in BUILT_IN:
            for line in self.good("show", name, "--markdown").splitlines():
                if line.startswith("|"):
                    self.assertIn(len(re.findall(r"(?<!\\)\|", line)), (3, 4, 6), line)


class Checks(Case):
    def test_describes_valid_plugin(self):
        path = os.path.join(PLUGINS, "odd.so")
        self.assertEqual(self.good("check", path), path + ": odd: a part of the line; 1 parameter, 0 bytes per flow\n")

    def test_resolves_bare_name_in_current_folder(self):
        self.assertIn("odd.so: odd: ", self.good("check", "odd.so", cwd=PLUGINS))

    def test_reports_plugin_error_in_one_line(self):
        for name, why in {
                "odd_abi": "plugin: built for version 99 of the plugin interface; required is version 1",
                "odd_entry": "does not export roci_cc_plugins()",
                "odd_name": "plugin: the name is invalid; allowed are lower-case letters, digits and '_'",
                "odd_twice": "the plugin name 'dcqcn' is already in use",
                "odd_standard": "plugin 'odd': the default value of parameter 'part' is out of range"}.items():
            path = os.path.join(PLUGINS, name + ".so")
            status, out, err = self.run_program("check", path)
            self.assertEqual((status, out), (1, ""), name)
            self.assertEqual(err, f"roci-cc: congestion control plugin {path}: {why}\n")
            self.assertEqual(self.run_program("list", "--plugin", path), (2, "", err))

    def test_reports_rejected_default_values(self):
        path = os.path.join(PLUGINS, "odd_check.so")
        self.assertEqual(self.run_program("check", path), (
            1, "", f"roci-cc: {path}: plugin 'odd' rejects its default values: nothing pleases it\n"))

    def test_rejects_missing_file_and_invalid_shared_object(self):
        path = os.path.join(self.folder, "x.so")
        status, _, err = self.run_program("check", path)
        self.assertEqual(status, 1)
        self.assertIn("No such file", err)
        with open(path, "w", encoding="utf-8") as file:
            file.write("hello\n")
        status, _, err = self.run_program("check", path)
        self.assertEqual((status, err.count("\n")), (1, 1))
        self.assertTrue(err.startswith(f"roci-cc: congestion control plugin {path}: "), err)


class Traces(Case):
    def test_replay_returns_0_if_all_decisions_match(self):
        path = self.trace(start(), event(2000), event(3000))
        self.assertEqual(self.good("replay", path),
                         "1 flow, 2 events: all decisions match the trace\n")
        with open(path, encoding="utf-8") as file:
            self.assertIn("1 flow, 2 events", self.good("replay", "-", data=file.read()))

    def test_replay_returns_1_and_reports_first_difference(self):
        path = self.trace(start(), event(2000), event(3000, window=9000), event(4000, gap_ns=1))
        status, out, err = self.run_program("replay", path)
        self.assertEqual((status, err), (1, ""))
        self.assertEqual(out, "1 flow, 3 events: 2 decisions differ\nfirst difference: flow 1 (static_rate), "
                              "event 2: window is 9000 in the trace and no limit now\n")

    def test_replay_counts_events_without_start_record(self):
        other = start(flow=2, kind="flow")
        path = self.trace(start(), other, event(2000), event(2000, flow=2))
        self.assertEqual(self.good("replay", path),
                         "1 flow, 1 event: all decisions match the trace\n"
                         "1 event could not be replayed: the start records of their flows were overwritten\n")
        for lines, why in ([start(), other, event(2000, flow=2)],
                           "the start records of the flows of its 1 event were overwritten"), ([start()], "it has no events"):
            path = self.trace(*lines)
            self.assertEqual(self.run_program("replay", path),
                             (2, "", f"roci-cc: {path}: nothing can be replayed: {why}\n"))

    def test_replay_matches_trace_recorded_by_roci_perf(self):
        path = os.path.join(self.folder, "recorded.jsonl")
        for options in ["dcqcn"], ["timely", "--cc-cores", "1"], ["static_window", "--cc-base-rtt", "50us"]:
            done = subprocess.run([PERF, "write", "bw", "--loopback", "-s", "65536", "-n", "100", "--cc-trace", path,
                                   "--cc", *options], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(self.good("replay", path),
                             r"^2 flows, [1-9][0-9]* events: all decisions match the trace\n$")

    def test_replay_matches_last_events_of_long_run(self):
        path = os.path.join(self.folder, "long.jsonl")
        done = subprocess.run([PERF, "write", "bw", "--loopback", "-s", "65536", "-n", "1000", "--cc-trace", path,
                               "--cc-trace-events", "100", "--cc", "timely"],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read().count('"type":"start"'), 1, "that of the server, who was told nothing")
        # One or two of the 100 records are states, 51 records apart. The older state may be the oldest record.
        told = re.fullmatch(r"2 flows, (\d+) events: all decisions match the trace\n"
                            r"(?:([1-9]\d*) events? could not be replayed: "
                            r"the start records of their flows were overwritten\n)?",
                            self.good("replay", path))
        self.assertIsNotNone(told)
        again, without = (int(count or 0) for count in told.groups())
        self.assertIn(again + without, (98, 99))
        self.assertGreaterEqual(again, 49)

    def test_replay_matches_trace_of_plugin_from_file(self):
        path = os.path.join(self.folder, "plugin.jsonl")
        plugin = os.path.join(PLUGINS, "odd.so")
        done = subprocess.run([PERF, "write", "bw", "--loopback", "-s", "65536", "-n", "100", "--cc-trace", path,
                               "--cc", "odd", "--cc-plugin", plugin],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" all decisions match the trace\n", self.good("replay", path, "--plugin", plugin))

    def test_replay_requires_plugin_file_of_trace(self):
        path = self.trace(start("odd", parameters={"part": 0.01}), event(2000))
        self.assertEqual(self.run_program("replay", path)[0], 2)
        self.assertIn("1 flow, 1 event: all", self.good("replay", path, "--plugin", os.path.join(PLUGINS, "odd.so")))

    def test_reports_unreadable_trace_in_one_line(self):
        gone = os.path.join(self.folder, "gone.jsonl")
        for command in ("replay", "csv"):
            self.assertEqual(self.run_program(command, gone), (2, "", f"roci-cc: {gone}: No such file or directory\n"))
            path = self.trace(start(), event(2000), event(1999))
            self.assertEqual(self.run_program(command, path),
                             (2, "", f"roci-cc: {path}: line 4: the time of flow 1 decreases\n"))
            status, _, err = self.run_program(command, "-", data="")
            self.assertEqual(status, 2)
            self.assertTrue(err.startswith("roci-cc: standard input: empty; "), err)
            status, _, err = self.run_program(command, self.folder)
            self.assertEqual((status, err.count("\n")), (2, 1), err)

    def test_csv_prints_names_of_events_states_and_reasons(self):
        rows = list(csv.DictReader(io.StringIO(self.good("csv", self.trace(start(), event(2000))))))
        self.assertEqual([row["kinds"] for row in rows], ["start", "ack"])
        for row in rows:
            self.assertEqual((row["flow"], row["plugin"], row["profile"], row["direction"]),
                             ("1", "static_rate", "p", "requests"))
            self.assertEqual((row["window"], row["rate"], row["state"], row["reason"]),
                             ("", "1000000000", "fixed", "nothing"))
            self.assertNotIn(None, row)


if __name__ == "__main__":
    PROGRAM, PERF, PLUGINS = map(os.path.abspath, sys.argv[1:4])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
