"""Processor load for tests that run together with other programs."""

import subprocess
import sys

BUSY_LOOP = "import os\nwhile os.getppid() > 1: pass"
# Like a build: one process after the other, each for a moment.
SHORT_LOOP = "import time; end = time.monotonic() + 0.7\nwhile time.monotonic() < end: pass"
SHORT_LOOPS = f"import os, subprocess, sys\nos.nice(3)\nwhile os.getppid() > 1: subprocess.run([sys.executable, '-c', {SHORT_LOOP!r}])"


class BusyLoops:
    """Processes that use all processor time that they get. `alone`: number of those in sessions of their own, and
    thus in other scheduling groups where autogroup scheduling is enabled (sched(7))."""

    def __init__(self, count, alone=0):
        self.loops = [subprocess.Popen([sys.executable, "-c", SHORT_LOOPS if i < alone else BUSY_LOOP],
                                       start_new_session=i < alone) for i in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()
