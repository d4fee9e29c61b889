"""Gloo's allreduce_ring over its ibverbs transport, alone and together with busy loops: gloo_check.cpp."""

import os
import sys
import tempfile
import unittest

from load import BusyLoops
from programs import Programs

Programs.run_program = sys.argv.pop(1)
GLOO = sys.argv.pop(1)
RUNS = 200


class AllreduceRing:
    def check(self, ranks, *options):
        with tempfile.TemporaryDirectory(dir=self.folder) as store:
            job = [self.start(GLOO, store, rank, ranks, "--runs", RUNS, *options) for rank in range(ranks)]
            for process in job:
                end = self.wait(process)
                self.assertEqual(end.status, 0, "\n".join(map(self.text_of, job)))
                self.assertIn(f"gloo: {RUNS} runs of allreduce_ring, {ranks} ranks", end.text)
            print(end.text, end="")

    def test_two_ranks_complete_without_busy_polling(self):
        self.check(2)

    def test_two_ranks_complete_with_busy_polling(self):
        self.check(2, "--busy-poll")

    def test_three_ranks_complete_without_busy_polling(self):
        self.check(3, "--elements", 8192)


class Gloo(AllreduceRing, Programs):
    pass


class GlooWithBusyLoops(AllreduceRing, Programs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.enterClassContext(BusyLoops(os.cpu_count()))


class GlooWithSwitchAndBusyLoops(AllreduceRing, Programs):
    """Networks with a switch, together with busy loops of the same and of other sessions."""

    net_options = ("--loss", "0")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.enterClassContext(BusyLoops(2 * os.cpu_count(), alone=os.cpu_count()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
