"""Many simultaneous connections between two programs of librdmacm, in several rounds. Expects that no memory or file
remains."""

import re
import sys
import unittest

from programs import Programs

Programs.run_program = sys.argv.pop(1)
MANY = sys.argv.pop(1)
CONNECTIONS = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].isdigit() else "1000"
# Growth limit over two rounds. Allocated memory: a tenth of the smallest object per connection. Resident memory may
# also grow by frame buffers that are used for the first time, because queues were longer than before.
USED_KIB = 16 + 2 * int(CONNECTIONS) // 100
RESIDENT_KIB = 2048 + int(CONNECTIONS)


class ManyConnections(Programs):
    def rounds(self, text):
        return [{"resident": int(resident), "used": int(used), "files": int(files)}
                for resident, used, files in re.findall(r"^round .*, (\d+) after, (\d+) KiB in use, (\d+) files$", text,
                                                        re.MULTILINE)]

    def check(self, text):
        _, second, third, fourth = self.rounds(text)
        self.assertLessEqual(fourth["used"], second["used"] + USED_KIB, text)
        self.assertLessEqual(fourth["resident"], second["resident"] + RESIDENT_KIB, text)
        self.assertEqual(third["files"], fourth["files"], text)
        self.assertIn("all gone", text)

    def test_release_memory_files_and_queue_pairs_after_disconnect(self):
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
