"""What the tests of an installation share: the build is installed once, into a folder that goes with the process."""
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

# Set by run_tests.py.
CMAKE = BUILD = SOURCE = None
PROGRAMS = []


def run(*command, **how):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240, check=False, **how)


def clean_environment(**more):
    """Not what this build was made with: somebody else's machine has no ccache, presets or flags of ours."""
    ours = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")
    return {key: value for key, value in os.environ.items() if key not in ours} | {"LC_ALL": "C.UTF-8"} | more


@functools.cache
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="roci-install-"))
    atexit.register(shutil.rmtree, path)
    return path


@functools.cache
def installation():
    return run(CMAKE, "--install", BUILD, "--prefix", folder() / "rocinante")


class Installed(unittest.TestCase):
    def setUp(self):
        self.assertEqual(installation().returncode, 0, installation().stdout)
        self.prefix = folder() / "rocinante"

    def new_folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=folder()))

    def pipe(self, *command, **how):
        """What a command prints; it must succeed."""
        done = run(*command, **how)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout
