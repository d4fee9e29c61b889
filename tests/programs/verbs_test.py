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

    def test_ibv_wr_calls_complete_each_opcode(self):
        self.check("wr")

    def test_write_with_unmapped_memory_completes_with_error(self):
        self.check("unmapped")

    def test_forked_child_gets_errors_and_one_message_for_parent_objects(self):
        text = self.check("fork")
        self.assertEqual(text.count("was forked from a process that uses the RDMA device"), 1, text)

    def test_threads_post_poll_and_create_objects_concurrently(self):
        self.check("threads")

    def test_library_threads_block_signals_of_the_process(self):
        self.check("signals")

    def test_get_cq_event_does_not_block_after_poll_reported_event(self):
        self.check("events")

    def test_busy_and_destroyed_handles_are_refused_with_errno(self):
        self.check("handles")

    def test_imported_handles_share_objects_of_the_process(self):
        self.check("imports")

    def test_windows_and_zero_based_regions_accept_arguments_that_nics_accept(self):
        self.check("windows")

    def test_null_region_has_zeros_and_holds_its_domain(self):
        self.check("null_region")

    def test_unsupported_calls_and_flags_return_eopnotsupp(self):
        self.check("unsupported")

    def test_advice_uses_addresses_and_keys_of_work_requests(self):
        self.check("advice")

    def test_receive_work_queue_reports_fatal_event_after_overflow(self):
        self.check("work_queues")

    def test_blocking_calls_continue_after_restarting_signals(self):
        self.check("interrupts")

    def test_dlopen_without_version_loads_drop_in_libraries(self):
        script = """
import ctypes
for name in ("libibverbs.so", "librdmacm.so"):
    ctypes.CDLL(name)
paths = {line.split()[-1] for line in open("/proc/self/maps", encoding="ascii") if "/lib" in line}
print(*sorted(path for path in paths if "libibverbs" in path or "librdmacm" in path))
"""
        done = self.wait(self.start("/usr/bin/python3", "-c", script))
        self.assertEqual(done.status, 0, done.text)
        self.assertRegex(done.text, r"^\S+/rocinante/libibverbs\.so\.1 \S+/rocinante/librdmacm\.so\.1\n$")

    def test_tree_of_the_device_is_listed_with_attributes(self):
        done = self.wait(self.start("ls", "-lR", "/sys/class/infiniband/", "/sys/class/infiniband/roci0/"))
        self.assertEqual(done.status, 0, done.text)
        self.assertIn("node_type", done.text)
        self.assertRegex(done.text, r"(?m)^l\S+ .* roci0 -> \.\./\.\./devices/pci\S+/infiniband/roci0$")
        self.assertRegex(done.text, r"(?m)^l\S+ .* device -> \.\./\.\./\.\./\w{4}:00:00\.0$")
        self.assertNotIn("No such file", done.text)

    def test_stats_option_reports_counters_of_both_processes(self):
        text = self.check("wr", options=["--stats"])
        processes = text.split("roci-run: verbs-check (process ")[1:]
        self.assertEqual(len(processes), 2, text)
        for process in processes:
            self.assertRegex(process, r"(?m)^  rx_frames +[1-9]")
            self.assertRegex(process, r"(?m)^  queue pair ")
            self.assertRegex(process, r"(?m)^  \d+ +RC +10\.77\.0\.\d+/\d+ ")

    def test_roci_top_reports_device_of_running_process(self):
        port = free_port()
        server = self.start("ib_write_bw", "-d", "roci0", "-p", port)
        self.wait_for_server(server, port)
        hosts = [(process["program"], host["name"]) for process in self.look() for host in process["hosts"]]
        self.assertIn(("ib_write_bw", "roci0"), hosts)


if __name__ == "__main__":
    unittest.main(verbosity=2)
