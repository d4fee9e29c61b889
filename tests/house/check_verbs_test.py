#!/usr/bin/env python3
"""Tests that check_verbs.py can fail: each test makes correct pages and breaks one of them."""

import pathlib
import tempfile
import unittest

import check_verbs

HEADER = "".join(f"enum {name} {{\n\tIBV_{name.upper()},\n}};\n" for name in check_verbs.ENUMS)
HEADER += "".join(f"struct {name} {{\n\tint\t\t{name}_one;\n\tchar\t{name}_two[64];\n}};\n" for name in check_verbs.STRUCTS)
NAMES = [f"IBV_{name.upper()}" for name in check_verbs.ENUMS]
NAMES += [f"{name}_{field}" for name in check_verbs.STRUCTS for field in ("one", "two")]
TRUE_SOURCES = {
    "docs/verbs.md": "`wire:Bytes.arrive` RC_ACK " + " ".join(NAMES) + "\n| What | Test |\n|---|---|\n| a | `wire:Bytes.go` |\n",
    "docs/robustness.md": "`wire:Bytes.go`\n",
    "lib/wire/headers/opcodes.cpp": 'entry(Opcode::kRcAcknowledge, "RC_ACK", kOnly),\n',
    "tests/wire/bytes_test.cpp": "TEST(Bytes, arrive) {}\nTEST_F(Bytes,\n       go) {}\n",
}


class CheckVerbs(unittest.TestCase):
    def complaints(self, changes, header=HEADER):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**TRUE_SOURCES, **changes}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(check_verbs.check(folder, header))

    def changed(self, page, old, new):
        return {page: TRUE_SOURCES[page].replace(old, new)}

    def test_accepts_correct_pages(self):
        self.assertEqual(self.complaints({}), [])

    def test_reports_missing_test(self):
        for page in check_verbs.PAGES:
            self.assertEqual(self.complaints(self.changed(page, "Bytes.go", "Bytes.went")),
                             [f"{page}: there is no test wire:Bytes.went"])

    def test_reports_test_of_another_program(self):
        self.assertEqual(len(self.complaints(self.changed("docs/robustness.md", "wire:", "port:"))), 1)

    def test_reports_name_missing_from_page(self):
        for name in NAMES + ["RC_ACK"]:
            self.assertEqual(len(self.complaints(self.changed("docs/verbs.md", f" {name} ", " ") if name != NAMES[-1] else
                                                 self.changed("docs/verbs.md", name, "x"))), 1, name)

    def test_reports_row_without_test(self):
        self.assertEqual(self.complaints(self.changed("docs/verbs.md", "| a | `wire:Bytes.go` |", "| a | partial |")),
                         ["docs/verbs.md: no test in the row | a | partial |"])

    def test_reports_enums_and_structs_missing_from_header(self):
        self.assertEqual(len(self.complaints({}, header="")), len(check_verbs.ENUMS) + len(check_verbs.STRUCTS))


if __name__ == "__main__":
    unittest.main()
