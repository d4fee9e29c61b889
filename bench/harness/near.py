"""`--near`: uses only runs during which the two cores were close to each other. A hypervisor may migrate virtual
CPUs, and two-core results depend on the round-trip time of a cache line between the cores."""

import time

from harness.programs import core_round_trip
from harness.run import Failed, run

MOST = 150  # default limit for the round trip of a cache line, ns
PAUSE = 1  # seconds between two checks
PATIENCE = 180  # seconds for one run


class Near:
    """Repeats commands until the cores are close before and after the run."""

    def __init__(self, most, place, run_once=run):
        """`place` contains the program that measures the distance; the commands may be those of another revision."""
        self.most = most
        self.thrown_away = 0
        self._place = place
        self._run_once = run_once
        self._probe = core_round_trip()

    def distance(self):
        return self._probe.take(self._run_once(self._probe.command, self._place))

    def run(self, command, place):
        deadline = time.monotonic() + PATIENCE
        while True:
            distance = self.distance()
            if distance <= self.most:
                output = self._run_once(command, place)
                distance = self.distance()
                if distance <= self.most:
                    return output
                self.thrown_away += 1
            if time.monotonic() > deadline:
                raise Failed(f"a cache line took {distance:.0f} ns to the other core and back, and at most {self.most} are "
                             f"allowed; the cores did not stay nearer during a run in {PATIENCE} s")
            time.sleep(PAUSE)

    def sentence(self, thrown_away):
        runs = "1 other run was" if thrown_away == 1 else f"{thrown_away} other runs were"
        return (f"Before and after each run the round trip of a cache line between the cores was at most {self.most} ns; "
                f"{runs} discarded.")
