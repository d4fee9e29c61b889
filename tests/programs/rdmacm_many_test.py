"""Very many connections of one program of librdmacm with another one, twice: as fast as they come, and nothing is left."""

import re
import sys
import time
import unittest

from programs import LIMIT, Programs

Programs.run_program = sys.argv.pop(1)
MANY = sys.argv.pop(1)
CONNECTIONS = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].isdigit() else "1000"
SERVER = "10.77.0.1"  # of the first process that has a device
# Of the resident memory of the second round and those behind it: what the allocator leaves unused here and there.
GROWTH_KIB = 2048 + int(CONNECTIONS) // 2


class ManyConnections(Programs):
    def rounds(self, text):
        return [{"before": int(before), "after": int(after), "files": int(files)}
                for before, after, files in re.findall(r"^round .*, (\d+) KiB before, (\d+) after, (\d+) files$", text,
                                                       re.MULTILINE)]

    def check(self, text):
        first, second, third = self.rounds(text)
        self.assertLessEqual(third["after"], first["after"] + GROWTH_KIB, text)
        self.assertEqual(first["files"], third["files"], text)
        self.assertIn("all gone", text)

    def wait_for(self, process, words):
        deadline = time.monotonic() + LIMIT
        while words not in self.text_of(process):
            if process.poll() is not None or time.monotonic() > deadline:
                self.fail(f"{' '.join(process.args)} does not say '{words}':\n{self.text_of(process)}")
            time.sleep(0.05)

    def test_are_made_used_and_ended_three_times_and_leave_nothing(self):
        options = ("-c", CONNECTIONS, "-r", "3", "-w", "3")
        server = self.start(MANY, *options)
        self.wait_for_place(server)
        client = self.start(MANY, *options, SERVER)
        for process in (client, server):
            self.wait_for(process, "all gone")
        hosts = [host for process in self.look() for host in process["hosts"]]
        for process in (client, server):
            end = self.wait(process)
            self.assertEqual(end.status, 0, end.text)
            print(end.text)
            self.check(end.text)
        self.assertEqual(len(hosts), 2, "the processes were there to be looked at")
        self.assertEqual([host["queue_pairs"] for host in hosts], [[], []])


if __name__ == "__main__":
    unittest.main(verbosity=2)
