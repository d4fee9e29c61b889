"""The same programs with frame loss, duplication and reordering, with congestion control, and after a peer was killed.
"""

import re
import signal
import sys
import unittest

from programs import Faulty, Programs, free_port
from ucx_programs import DATAGRAMS, MPI, RELIABLE, UCX_PERFTEST, MpiJobs, UcxTransfers

Programs.run_program = sys.argv.pop(1)
MpiJobs.mpi_check = sys.argv.pop(1)
ALGORITHMS = ("ldcp", "dcqcn", "hpcc")


class Faults(Faulty):
    def test_perftest_completes_rc_operations(self):
        for tool in ("ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat"):
            with self.subTest(tool):
                self.pair(tool, "-d", "roci0", "-n", "100", "-s", "8" if tool == "ib_atomic_bw" else "16384")

    def test_rc_pingpong_receives_valid_data(self):
        # If the last acknowledgment is lost, the peer may have exited already. So one of the processes must succeed, and
        # the other one may fail only because no acknowledgment arrives.
        port = free_port()
        command = ("ibv_rc_pingpong", "-n", "200", "-g", "1", "-c", "-p", port)
        server = self.start(*command)
        self.wait_for_server(server, port)
        ends = [self.wait(process) for process in (self.start(*command, "127.0.0.1"), server)]
        self.assertIn(0, [end.status for end in ends], "\n".join(end.text for end in ends))
        for end in ends:
            self.assertNotIn("invalid data", end.text)
            if end.status != 0:
                self.assertIn("transport retry counter exceeded", end.text)


class UcxOverRc(UcxTransfers, Faulty):
    environment_more = RELIABLE


class UcxOverUd(UcxTransfers, Faulty):
    environment_more = DATAGRAMS


class MpiOverRc(MpiJobs, Faulty):
    environment_more = {**MPI, **RELIABLE}

    def test_queue_pairs_transfer_data_with_dcqcn_hpcc_and_ldcp(self):
        for name in ALGORITHMS:
            with self.subTest(name):
                job = self.check(2, options=("--cc", name, "--stats"))
                self.assertGreaterEqual(len(controlled_by(name, job.text)), 2, job.text)


class MpiOverUd(MpiJobs, Faulty):
    environment_more = {**MPI, **DATAGRAMS}


def controlled_by(name, text):
    """Queue pairs in the --stats output that this algorithm controlled and that transferred data."""
    return re.findall(rf"^  \d+(?:/READs)? +\w+ +\S+/\d+ +(?:\d*[1-9][\d.]*|[\d.]*[1-9]) .* {name} ", text, re.MULTILINE)


class CongestionControl(Programs):
    def test_queue_pairs_transfer_data_with_dcqcn_hpcc_and_ldcp(self):
        for name in ALGORITHMS:
            with self.subTest(name):
                _, client = self.pair("ib_write_bw", "-d", "roci0", "-n", "200", "-q", "2",
                                      options=("--cc", name, "--stats"))
                self.assertEqual(len(controlled_by(name, client.text)), 2, client.text)


class KilledServer(Programs):
    def end_of_client(self, *command, limit, program=None):
        """Returns the client's output after its server was killed during a transfer."""
        port = free_port()
        command = (*command, "-p", port)
        server = self.start(*command)
        self.wait_for_server(server, port)
        client = self.start(*command, "127.0.0.1")
        self.wait_for_traffic(2, program or command[0])
        self.assertIsNone(client.poll(), self.text_of(client))
        server.send_signal(signal.SIGKILL)
        end = self.wait(client, limit)
        self.assertNotEqual(end.status, 0)
        return end.text

    def test_client_fails_in_bounded_time(self):
        for tool in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
            with self.subTest(tool):
                # 8 times 67 ms, and a margin for a busy machine
                text = self.end_of_client(tool, "-d", "roci0", "-D", "60", limit=30)
                self.assertRegex(text, "Failed status 12|transport retry counter exceeded")


class UcxKilledServer(KilledServer):
    """UCX chooses its own timeout. With messages (tag_bw) UCX may wait for credits of its peer without an outstanding
    request that could fail, as with any RDMA device. A put needs no credits."""

    environment_more = RELIABLE

    def test_client_fails_in_bounded_time(self):
        text = self.end_of_client(*UCX_PERFTEST, "-t", "ucp_put_bw", "-s", "4096", "-n", "1000000000", limit=60,
                                  program="ucx_perftest")
        self.assertRegex(text, "transport retry counter exceeded|Endpoint timeout|Connection reset")


if __name__ == "__main__":
    unittest.main(verbosity=2)
