"""Two processes that send to a third one at the same time, each algorithm in a network without a switch: rates, and the
fill of the receiver's rings, as roci-top reports them: senders_check.c."""

import re
import sys
import unittest

from programs import Programs

Programs.run_program = sys.argv.pop(1)
SENDERS = sys.argv.pop(1)
BYTES, DEPTH, SECONDS = 65536, 16, 2
PROGRAM = "senders-check"
SENT = re.compile(r"^sent (\d+) (\d+)$", re.MULTILINE)


class TwoSenders(Programs):
    def check(self, algorithm):
        """Returns the number of marked packets."""
        options = ("--cc", algorithm)
        receiver = self.start(SENDERS, "receive", 2, options=options)
        self.wait_for_line(receiver, "listening")
        senders = [self.start(SENDERS, "send", self.server, BYTES, DEPTH, SECONDS, options=options) for _ in range(2)]
        self.wait_for_traffic(3, PROGRAM)
        processes = self.look()
        rates = []
        for process in senders:
            ended = self.wait(process)
            self.assertEqual(ended.status, 0, ended.text)
            count, nanoseconds = map(int, SENT.search(ended.text).groups())
            rates.append(count * 8 / nanoseconds)
        ended = self.wait(receiver)
        self.assertEqual(ended.status, 0, ended.text)

        hosts = [host for process in processes if process["program"] == PROGRAM for host in process["hosts"]]
        self.assertEqual(len(hosts), 3)
        for host in hosts:
            for queue_pair in host["queue_pairs"]:
                self.assertEqual(queue_pair["algorithm"], algorithm)
        marked = sum(host["counts"]["port/marked"] for host in hosts)
        fill, peak = (max(host[f"port/ring_{name}"] for host in hosts) // 1024 for name in ("bytes", "peak_bytes"))
        print(f"{algorithm}: {rates[0]:.2f} and {rates[1]:.2f} Gb/s, {marked} packets marked, fullest ring {fill} KiB, "
              f"peak {peak} KiB of {hosts[0]['port/ring_size'] // 1024} KiB")
        self.assertGreater(min(rates), 0)
        return marked

    def test_both_transfer_data_with_dcqcn(self):
        self.assertGreater(self.check("dcqcn"), 0, "no packet was marked")

    def test_both_transfer_data_with_dctcp(self):
        self.assertGreater(self.check("dctcp"), 0, "no packet was marked")

    def test_both_transfer_data_with_ldcp(self):
        self.check("ldcp")

    def test_both_transfer_data_with_hpcc(self):
        self.check("hpcc")


if __name__ == "__main__":
    unittest.main(verbosity=2)
