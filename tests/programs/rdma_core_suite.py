"""Runs the tests in a folder that rdma_core_test.py has prepared, with the system's pyverbs.

usage: rdma_core_suite.py FOLDER --dev NAME --port N --gid N

Prints one line per test: result, name, and the reason of a result that is not `ok`, separated by tabs.
"""
import importlib.machinery
import sys
import unittest

FOLDER = sys.argv.pop(1)


class Lines(unittest.TestResult):
    def line(self, result, test, reason=""):
        print(result, test.id(), " ".join(str(reason).split())[:200], sep="\t", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.line("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("skip", test, reason)

    def addError(self, test, err):
        super().addError(test, err)
        self.line("ERROR", test, err[1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line("FAIL", test, err[1])


sys.path.insert(0, FOLDER)
from args_parser import parser  # noqa: E402 (of rdma-core; found by the line above)

# The tests import each other as modules of a package of this name.
tests = importlib.machinery.SourceFileLoader("tests", f"{FOLDER}/__init__.py").load_module()
parser.parse_args()
unittest.defaultTestLoader.loadTestsFromModule(tests).run(Lines())
