"""GoogleTest tests that a document names as `program:Suite.test`, and the sources that define them."""

import pathlib
import re

NAMED_TEST = re.compile(r"`(\w+):(\w+\.\w+)`")
DEFINITION = re.compile(r"^\s*TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)


class DefinedTests:
    """Table of the tests in tests/. The sources of a program are read at the first query for one of its tests."""

    def __init__(self, root):
        self.folder = pathlib.Path(root, "tests")
        self.of_program = {}

    def has(self, program, test):
        if program not in self.of_program:
            sources = (self.folder / program).rglob("*_test.cpp")
            self.of_program[program] = {
                ".".join(found) for source in sources for found in DEFINITION.findall(source.read_text())}
        return test in self.of_program[program]
