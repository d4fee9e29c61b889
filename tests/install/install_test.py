#!/usr/bin/env python3
"""Installs a build and builds the example of a plugin against it: usage: install_test.py CMAKE BUILD SOURCE [unittest …]"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE = BUILD = SOURCE = ""


def run(*command, **how):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=240, check=False, **how)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="roci-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "rocinante"
        cls.installed = run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)

    def setUp(self):
        self.assertEqual(self.installed.returncode, 0, self.installed.stdout)

    def build_example(self, compiler, source):
        """Configures and builds the example with a compiler, from a folder; returns (what ran, its shared object)."""
        build = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        # Not what this build was made with: somebody else's machine has no ccache, presets or flags of ours.
        environment = {key: value for key, value in os.environ.items() if key not in ("CC", "CFLAGS", "LDFLAGS")}
        done = run(CMAKE, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   f"-DCMAKE_C_COMPILER={compiler}", env=environment)
        if done.returncode == 0:
            done = run(CMAKE, "--build", build, env=environment)
        return done, build / "half_rate.so"

    def changed_example(self, old, new):
        """A copy of the example with something else in its C file."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "cc-plugin"
        shutil.copytree(SOURCE / "examples/cc-plugin", folder)
        text = (folder / "half_rate.c").read_text()
        self.assertIn(old, text)
        (folder / "half_rate.c").write_text(text.replace(old, new))
        return folder

    def roci_cc(self, *arguments):
        return run(self.prefix / "bin/roci-cc", *arguments)

    def test_programs_and_headers_are_there(self):
        self.assertEqual(sorted(path.name for path in (self.prefix / "bin").iterdir()),
                         ["roci-cc", "roci-pcap", "roci-perf", "roci-switch", "roci-top"])
        self.assertEqual(sorted(path.name for path in (self.prefix / "include/roci").iterdir()),
                         sorted(path.name for path in (SOURCE / "include/roci").iterdir()))

    def test_the_example_builds_and_is_sound(self):
        for compiler in ("cc", "clang"):
            if shutil.which(compiler) is None:
                continue
            with self.subTest(compiler):
                done, plugin = self.build_example(compiler, SOURCE / "examples/cc-plugin")
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertNotIn("warning", done.stdout)
                self.assertIn("half_rate: half the rate at a CNP", done.stdout)  # its build checks it
                checked = self.roci_cc("check", plugin)
                self.assertEqual((checked.returncode, checked.stdout), (
                    0, f"{plugin}: half_rate: half the rate at a CNP, and step by step up again; 4 parameters, 16 "
                       "bytes a flow\n"))
                shown = self.roci_cc("show", "half_rate", "--plugin", plugin)
                self.assertEqual(shown.returncode, 0, shown.stdout)
                self.assertRegex(shown.stdout, r"(?m)^  period +ns +50000 +1000 to 1e9 +between two cuts")
                self.assertRegex(shown.stdout, r"(?m)^needs +CNPs of the peer$")
                self.assertIn(str(plugin), shown.stdout)

    def test_one_for_another_version_of_the_interface_does_not_build_and_is_refused(self):
        source = self.changed_example(".abi = ROCI_CC_ABI", ".abi = ROCI_CC_ABI + 1")
        sentence = ("a plugin: it was made for version 2 of the plugin interface; this is version 1\n")
        done, plugin = self.build_example("cc", source)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(sentence, done.stdout)
        lines = (source / "CMakeLists.txt").read_text().splitlines()
        (source / "CMakeLists.txt").write_text("\n".join(line for line in lines if "POST_BUILD" not in line))
        done, plugin = self.build_example("cc", source)
        self.assertEqual(done.returncode, 0, done.stdout)
        refused = self.roci_cc("check", plugin)
        self.assertEqual((refused.returncode, refused.stdout),
                         (1, f"roci-cc: congestion control plugin {plugin}: {sentence}"))


if __name__ == "__main__":
    CMAKE, BUILD, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
