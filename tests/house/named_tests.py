"""Tests that a document names as `program:Suite.test`, and the sources that define them: GoogleTest tests, and methods of
test cases in Python."""

import pathlib
import re

NAMED_TEST = re.compile(r"`(\w+):(\w+\.\w+)`")
# Without the program. "…" or "*" at the end names all tests that start with the text before it.
SHORT_NAMED_TEST = re.compile(r"`([A-Z]\w+\.(?:[a-z]\w*)?)([…*]?)`")
DEFINITION = re.compile(r"^\s*TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)

PYTHON_DEFINITION = re.compile(r"^class (\w+)\(|^    def (test_\w+)\(", re.MULTILINE)


def python_tests(text):
    """Names of the test methods in a source, as `Class.test_method`."""
    owner = ""
    for name, method in PYTHON_DEFINITION.findall(text):
        if method:
            yield f"{owner}.{method}"
        owner = name or owner


class DefinedTests:
    """Table of the tests in tests/. The sources of a program are read at the first query for one of its tests."""

    def __init__(self, root):
        self.folder = pathlib.Path(root, "tests")
        self.of_program = {}
        self.all = None  # of all programs; read at the first query

    def has(self, program, test):
        if program not in self.of_program:
            sources = (self.folder / program).rglob("*_test.cpp")
            self.of_program[program] = {
                ".".join(found) for source in sources for found in DEFINITION.findall(source.read_text())}
            for source in (self.folder / program).rglob("*_test.py"):
                self.of_program[program].update(python_tests(source.read_text()))
        return test in self.of_program[program]

    def any_has(self, test, is_start):
        """Whether a program has the test, or one that starts with it."""
        if self.all is None:
            self.all = {".".join(found) for source in self.folder.rglob("*_test.cpp")
                        for found in DEFINITION.findall(source.read_text())}
        return any(one.startswith(test) for one in self.all) if is_start else test in self.all
