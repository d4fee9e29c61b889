"""Shared setup of the installation tests: installs the build once, into a folder that is removed when the process ends.
"""
import atexit
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

# Set by run_tests.py.
CMAKE = BUILD = SOURCE = None
PROGRAMS = []


def version():
    """Returns the version of include/roci/version.h: [major, minor, patch]."""
    text = (SOURCE / "include/roci/version.h").read_text(encoding="utf-8")
    return [re.search(rf"ROCI_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH")]


def run(*command, **how):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240, check=False, **how)


def clean_environment(**more):
    """Returns the environment without the compiler settings of this build: another machine has no ccache and no such
    flags."""
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
        """Runs a command, expects success, and returns its output."""
        done = run(*command, **how)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout
