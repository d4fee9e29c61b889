"""Trace points of the data path: their list in the header, the page and the ELF files, and the probes of one work request
of an unmodified program under gdb.

Usage: tracing_test.py ROCI-RUN HEADER PAGE LIBIBVERBS ROCI-PERF
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from programs import LIMIT, Programs, free_port

Programs.run_program, HEADER, PAGE, LIBRARY, PERF = sys.argv[1:6]
del sys.argv[1:6]

SKIPPED = 77  # exit status
SEND_WR_ID, RECV_WR_ID = 2, 1  # of ibv_rc_pingpong
# Link-time optimization removes the functions that a program does not call.
NOT_IN_PERF = {"srq_recv_posted"}


def in_header():
    """Returns the arguments of each probe of the header: {name: [argument]}."""
    text = pathlib.Path(HEADER).read_text(encoding="utf-8")
    functions = re.findall(r"inline void (\w+)\(([^)]*)\)\s*\{\s*ROCI_PROBE\((\d), (\w+), ", text)
    probes = {}
    for name, arguments, count, probe in functions:
        probes[name] = re.findall(r"(\w+)(?:,|$)", arguments)
        if (name, int(count)) != (probe, len(probes[name])):
            raise ValueError(f"{HEADER}: {name} does not pass its arguments to the probe of the same name")
    return probes


def in_file(path):
    """Returns the numbers of arguments of the probes in the ELF notes of a file: {name: {number}}."""
    notes = subprocess.run(["readelf", "--wide", "-n", path], capture_output=True, text=True, timeout=LIMIT, check=True)
    found = {}
    for name, arguments in re.findall(r"Provider: roci\n\s+Name: (\w+)\n\s+Location: [^\n]*\n\s+Arguments:([^\n]*)",
                                      notes.stdout):
        found.setdefault(name, set()).add(len(arguments.split()))
        # gdb does not read the names that assemblers use for the low bytes of these registers.
        if re.search(r"%r\d+b", arguments):
            raise ValueError(f"{path}: {name} has an argument that gdb cannot read: {arguments}")
    return found


class Lists(unittest.TestCase):
    def test_page_has_every_probe_and_its_arguments(self):
        rows = re.findall(r"(?m)^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|", pathlib.Path(PAGE).read_text(encoding="utf-8"))
        self.assertEqual({name: re.findall(r"\w+", arguments) for name, arguments in rows}, in_header())

    def test_library_and_program_have_every_probe(self):
        header = {name: {len(arguments)} for name, arguments in in_header().items()}
        self.assertGreater(len(header), 10)
        self.assertEqual(in_file(LIBRARY), header)
        program = in_file(PERF)
        self.assertEqual(program, {name: header[name] for name in header if name in program or name not in NOT_IN_PERF})


class Follow(Programs):
    def skip(self, reason):
        if os.environ.get("ROCI_REQUIRE_ALL"):
            self.fail(f"{reason}, and ROCI_REQUIRE_ALL is set")
        self.skipTest(reason)

    def events_of(self, *command):
        """Runs a program under gdb, with a breakpoint at each probe. Returns [(name, {argument: value})] in order."""
        script = ["set pagination off", "set confirm off", "set startup-with-shell off", "catch load libibverbs", "run",
                  "delete"]
        for name, arguments in in_header().items():
            values = "".join(f", (unsigned long)$_probe_arg{i}" for i in range(len(arguments)))
            script += [f"break -probe-stap roci:{name}", "commands", "silent",
                       f"printf \"probe {name}{' %lu' * len(arguments)}\\n\"{values}", "continue", "end"]
        script += ["continue"]
        file = self.folder / "probes.gdb"
        file.write_text("\n".join(script) + "\n", encoding="utf-8")
        run = self.wait(self.start("gdb", "-nx", "-batch", "-x", file, "--args", *command))
        if re.search(r"ptrace|not permitted: could not trace", run.text, re.IGNORECASE) and "probe " not in run.text:
            self.skip("gdb may not trace processes here")
        self.assertIn("exited normally", run.text)
        return [(name, dict(zip(in_header()[name], map(int, values.split()))))
                for name, values in re.findall(r"(?m)^probe (\w+)((?: \d+)+)$", run.text)]

    def pingpong(self):
        if shutil.which("gdb") is None:
            self.skip("gdb is not installed")
        port = free_port()
        command = ("ibv_rc_pingpong", "-g", "1", "-n", "3", "-r", "4", "-s", "4096", "-m", "1024", "-p", port)
        server = self.start(*command)
        self.wait_for_server(server, port)
        events = self.events_of(*command, "127.0.0.1")
        end = self.wait(server)
        self.assertEqual(end.status, 0, end.text)
        return events

    @staticmethod
    def of(events, psn, count):
        """The events of the PSNs and of the bursts."""
        return [(name, event) for name, event in events
                if "psn" not in event or (event["psn"] - psn) % 2**24 < count]

    def test_one_request_from_post_to_completion(self):
        events = self.pingpong()
        with self.subTest("requester"):
            posted = next(i for i, (name, event) in enumerate(events)
                          if name == "send_posted" and event["wr_id"] == SEND_WR_ID)
            qpn = events[posted][1]["qpn"]
            self.assertEqual(events[posted][1], {"qpn": qpn, "wr_id": SEND_WR_ID, "opcode": 2, "length": 4096})
            started = next(event for name, event in events[posted:] if name == "request_started")
            psn = started["psn"]
            self.assertEqual(started, {"qpn": qpn, "wr_id": SEND_WR_ID, "psn": psn, "packets": 4})
            # The peer's message may have arrived in between; its PSNs are others.
            mine = self.of(events[posted:], psn, 4)
            built = [event for name, event in mine if name == "packet_built"]
            self.assertEqual(built[:4], [{"qpn": qpn, "psn": (psn + i) % 2**24, "opcode": opcode, "length": 1024}
                                         for i, opcode in enumerate((0, 1, 1, 2))])
            expected = [
                ("send_posted", {"wr_id": SEND_WR_ID}), ("request_started", {"wr_id": SEND_WR_ID}),
                ("packet_built", {"psn": psn}), ("packet_built", {"psn": (psn + 3) % 2**24}),
                ("request_sent", {"wr_id": SEND_WR_ID, "packet": 3}), ("burst_sent", {}),
                ("packet_received", {"qpn": qpn, "psn": (psn + 3) % 2**24, "opcode": 0x11}),
                ("ack_received", {"qpn": qpn, "psn": (psn + 3) % 2**24}),
                ("request_completed", {"qpn": qpn, "wr_id": SEND_WR_ID, "status": 0}),
                ("completion_written", {"qpn": qpn, "wr_id": SEND_WR_ID, "status": 0, "opcode": 0}),
                ("completion_polled", {"qpn": qpn, "wr_id": SEND_WR_ID, "status": 0, "opcode": 0})]
            self.assert_order(mine, expected)
            burst = next(event for name, event in mine if name == "burst_sent")
            self.assertGreaterEqual(burst["frames"], burst["accepted"])
        with self.subTest("responder"):
            at = next(i for i, (name, event) in enumerate(events)
                      if name == "packet_received" and event["opcode"] == 0)
            psn = events[at][1]["psn"]
            last = (psn + 3) % 2**24
            first_receive = next((name, event) for name, event in events if name == "recv_posted")
            self.assert_order([first_receive] + self.of(events[at:], psn, 4), [
                ("recv_posted", {"qpn": qpn, "wr_id": RECV_WR_ID, "length": 4096}),
                ("packet_received", {"qpn": qpn, "psn": psn, "opcode": 0}),
                ("request_executed", {"qpn": qpn, "psn": psn, "opcode": 0}),
                ("packet_received", {"qpn": qpn, "psn": last, "opcode": 2}),
                ("completion_written", {"qpn": qpn, "wr_id": RECV_WR_ID, "status": 0, "opcode": 128}),
                ("request_executed", {"qpn": qpn, "psn": last, "opcode": 2})])
            for wanted in (("ack_sent", {"qpn": qpn, "psn": last}), ("completion_polled", {"wr_id": RECV_WR_ID})):
                self.assert_order(self.of(events[at:], psn, 4), [wanted])

    def assert_order(self, events, expected):
        """The events contain the expected ones in this order."""
        left = iter(events)
        for wanted, values in expected:
            found = any(name == wanted and values.items() <= event.items() for name, event in left)
            self.assertTrue(found, f"no {wanted} {values} after the previous one in:\n" +
                            "\n".join(f"{name} {event}" for name, event in events))


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
