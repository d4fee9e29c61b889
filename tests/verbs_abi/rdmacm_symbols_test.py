#!/usr/bin/env python3
"""Tests that Rocinante's librdmacm.so.1 exports the names and versions of the installed one, and that programs load
with it.

usage: rdmacm_symbols_test.py BUILT INSTALLED [unittest …]
"""
import os
import pathlib
import sys
import unittest

from symbols_test import defined, dynamic, output_of, version_nodes

OURS = INSTALLED = pathlib.Path()
PROGRAMS = ["/usr/bin/rping", "/usr/bin/ucmatose", "/usr/bin/udaddy", "/usr/bin/rdma_client", "/usr/bin/ib_write_bw"]


class Symbols(unittest.TestCase):
    def test_symbols_versions_and_soname_equal_installed_library(self):
        installed = defined(INSTALLED)
        self.assertGreater(len(installed), 60)
        self.assertEqual(sorted(defined(OURS)), sorted(installed))
        self.assertEqual(version_nodes(OURS), version_nodes(INSTALLED))
        self.assertEqual(dynamic(OURS, "SONAME"), dynamic(INSTALLED, "SONAME"))

    def test_programs_load_without_loader_warnings(self):
        for path in PROGRAMS:
            with self.subTest(path):
                loaded = output_of("ldd", "-r", path, env={**os.environ, "LD_LIBRARY_PATH": str(OURS.parent)})
                self.assertIn(f"librdmacm.so.1 => {OURS} ", loaded)
                self.assertNotRegex(loaded, "undefined|not defined|version information|not found")


if __name__ == "__main__":
    OURS, INSTALLED = (pathlib.Path(argument).absolute() for argument in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
