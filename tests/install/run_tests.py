#!/usr/bin/env python3
"""Runs tests of the installation: run_tests.py CMAKE BUILD SOURCE PROGRAM,PROGRAM… MODULE [MODULE.CLASS.TEST …]"""
import pathlib
import sys
import unittest

import installed

if __name__ == "__main__":
    installed.CMAKE = sys.argv[1]
    installed.BUILD, installed.SOURCE = map(pathlib.Path, sys.argv[2:4])
    installed.PROGRAMS = sys.argv[4].split(",")
    unittest.main(module=None, argv=[sys.argv[0], *sys.argv[5:]])
