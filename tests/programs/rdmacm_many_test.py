"""Very many connections of one program of librdmacm with another one, some times: as fast as they come, and nothing is left."""

import re
import sys
import unittest

from programs import Programs

Programs.run_program = sys.argv.pop(1)
MANY = sys.argv.pop(1)
CONNECTIONS = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].isdigit() else "1000"
GROWTH_KIB = 512 + int(CONNECTIONS) // 8  # of the resident memory, over two rounds: what the allocator leaves unused


class ManyConnections(Programs):
    def rounds(self, text):
        return [{"before": int(before), "after": int(after), "files": int(files)}
                for before, after, files in re.findall(r"^round .*, (\d+) KiB before, (\d+) after, (\d+) files$", text,
                                                       re.MULTILINE)]

    def check(self, text):
        _, second, third, fourth = self.rounds(text)
        self.assertLessEqual(fourth["after"], second["after"] + GROWTH_KIB, text)
        self.assertEqual(third["files"], fourth["files"], text)
        self.assertIn("all gone", text)

    def test_are_made_used_and_ended_and_leave_nothing(self):
        options = ("-c", CONNECTIONS, "-r", "4", "-w", "2")
        server = self.start(MANY, *options)
        self.wait_for_place(server)
        client = self.start(MANY, *options, self.server)
        for process in (client, server):
            self.wait_for_line(process, "all gone")
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
