"""Behavior of verbs in programs with several processes and threads: tests/programs/verbs_check.c."""

import sys
import unittest

from programs import Programs, free_port

Programs.run_program = sys.argv.pop(1)
CHECK = sys.argv.pop(1)


class Verbs(Programs):
    def check(self, name, options=()):
        done = self.wait(self.start(CHECK, name, options=options))
        self.assertEqual(done.status, 0, done.text)
        self.assertIn(f"{name}: as it should be", done.text)
        return done.text

    def test_a_request_of_each_opcode_by_the_calls_that_build_one(self):
        self.check("wr")

    def test_memory_that_is_unmapped_is_an_error_of_the_request(self):
        self.check("unmapped")

    def test_a_child_that_uses_what_its_parent_opened_is_told_so(self):
        text = self.check("fork")
        self.assertEqual(text.count("was forked from a process that uses the RDMA device"), 1, text)

    def test_threads_call_what_they_like(self):
        self.check("threads")

    def test_a_signal_for_the_process_is_the_programs(self):
        self.check("signals")

    def test_who_was_told_of_an_event_by_poll_does_not_wait_for_it(self):
        self.check("events")

    def test_statistics_say_what_both_processes_did(self):
        text = self.check("wr", options=["--stats"])
        processes = text.split("roci-run: verbs-check (process ")[1:]
        self.assertEqual(len(processes), 2, text)
        for process in processes:
            self.assertRegex(process, r"(?m)^  rx_frames +[1-9]")
            self.assertRegex(process, r"(?m)^  queue pair ")
            self.assertRegex(process, r"(?m)^  \d+ +RC +10\.77\.0\.\d+/\d+ ")

    def test_roci_top_sees_the_device_of_a_process(self):
        port = free_port()
        server = self.start("ib_write_bw", "-d", "roci0", "-p", port)
        self.wait_for_server(server, port)
        hosts = [(process["program"], host["name"]) for process in self.look() for host in process["hosts"]]
        self.assertIn(("ib_write_bw", "roci0"), hosts)


if __name__ == "__main__":
    unittest.main(verbosity=2)
