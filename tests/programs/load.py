"""Processor load for tests that run together with other programs."""

import subprocess
import sys

BUSY_LOOP = "import os\nwhile os.getppid() > 1: pass"


class BusyLoops:
    """Processes that use all processor time that they get."""

    def __init__(self, count):
        self.loops = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()
