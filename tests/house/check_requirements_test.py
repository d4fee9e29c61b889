#!/usr/bin/env python3
"""Breaks each rule of check_requirements.py in a correct page and expects that the check reports it."""

import pathlib
import tempfile
import unittest

import check_requirements

HEAD = "| No. | Section | Requirement | Status | File | Test |\n|---|---|---|---|---|---|\n"
GOOD = "| L1 | §1 | Marks. | implemented | `cc/a.cpp` | `cc:Mark.marks`, `config/lab/a.yaml` (both) |\n"
UNTESTED = "| L2 | §1 | Drops. | implemented, untested | `cc/a.cpp`, `cc/b.cpp` | no test |\n"
DIFFERS = "| L3 | §2 | Paces. | differs: once per round trip | `cc/a.cpp` | `cc:Mark.paces` |\n"
MISSING = "| Q1 | §1 | Colors. | not implemented: no colors; workaround: marks | – | – |\n"
SUMMARY = ("| Document | Numbers | implemented | implemented, untested | differs | not implemented |\n"
           "|---|---|--:|--:|--:|--:|\n"
           "| [Marks](#marks) | L1 to L3 | 1 | 1 | 1 | 0 |\n"
           "| Colors | Q1 to Q1 | 0 | 0 | 0 | 1 |\n"
           "| All | 4 | 1 | 1 | 1 | 1 |\n")
CORRECT = {
    "docs/requirements.md": f"# Title\n\n{SUMMARY}\n## Marks\n\n{HEAD}{GOOD}{UNTESTED}{DIFFERS}\n## Colors\n\n{HEAD}{MISSING}",
    "cc/a.cpp": "",
    "cc/b.cpp": "",
    "config/lab/a.yaml": "name: a\nexpect:\n  - {claim: it marks, that: a.marks > 1}\n",
    "config/lab/silent.yaml": "name: silent\n",
    "tests/cc/mark_test.cpp": "TEST(Mark, marks) {}\nTEST_F(Mark,\n       paces) {}\n",
}


class CheckRequirements(unittest.TestCase):
    def complaints(self, *changes):
        """Returns the complaints about the correct page with these (old, new) replacements, without the name of the
        page."""
        text = CORRECT["docs/requirements.md"]
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {**CORRECT, "docs/requirements.md": text}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content)
            lines = list(check_requirements.check(folder))
        prefix = "docs/requirements.md: "
        for line in lines:
            self.assertTrue(line.startswith(prefix), line)
        return [line.removeprefix(prefix) for line in lines]

    def test_accepts_correct_page(self):
        self.assertEqual(self.complaints(), [])

    def test_reports_missing_number(self):
        self.assertEqual(self.complaints((UNTESTED, ""), ("| L1 to L3 | 1 | 1 |", "| L1 to L3 | 1 | 0 |"),
                                         ("| 4 | 1 | 1 |", "| 4 | 1 | 0 |")), ["L2: no row"])

    def test_reports_double_number(self):
        self.assertEqual(self.complaints((GOOD, GOOD * 2), ("| L1 to L3 | 1 |", "| L1 to L3 | 2 |"),
                                         ("| 4 | 1 |", "| 4 | 2 |")), ["L1: 2 rows; allowed is one"])

    def test_reports_number_beyond_the_summary(self):
        for wrong in ("L4", "L0", "L03", "X1"):
            lines = self.complaints(("| L3 |", f"| {wrong} |"))
            self.assertIn(f"{wrong}: not a number of the summary", lines)
            self.assertIn("L3: no row", lines)

    def test_reports_unknown_status(self):
        for wrong in ("partial", "Implemented", ""):
            lines = self.complaints(("| implemented |", f"| {wrong} |")) if wrong != "partial" else self.complaints(
                ("Paces. | differs:", "Paces. | partial:"))
            self.assertTrue(any(f"status '{wrong}' is unknown" in line for line in lines), wrong)

    def test_reports_difference_or_absence_without_reason(self):
        for old, new in [(": once per round trip", ""), (": once per round trip", ": "),
                         (": no colors; workaround: marks", "")]:
            lines = self.complaints((old, new))
            self.assertEqual(len(lines), 1)
            self.assertRegex(lines[0], r"^(L3: 'differs'|Q1: 'not implemented') without a reason$")

    def test_reports_file_that_does_not_exist(self):
        self.assertEqual(self.complaints(("`cc/b.cpp`", "`cc/gone.cpp`")), ["L2: file cc/gone.cpp does not exist"])
        self.assertEqual(self.complaints(("`cc/b.cpp`", "`cc`")), ["L2: file cc does not exist"])

    def test_reports_row_without_file(self):
        self.assertEqual(self.complaints(("`cc/a.cpp`, `cc/b.cpp`", "–")), ["L2: no file"])
        self.assertEqual(self.complaints(("| – | – |", "|  | – |")), ["Q1: no file"])

    def test_reports_test_that_does_not_exist(self):
        for old, new in [("Mark.marks", "Mark.gone"), ("cc:Mark.paces", "wire:Mark.paces"), ("cc:Mark.paces", "Mark.paces"),
                         ("config/lab/a.yaml", "config/lab/gone.yaml"), ("config/lab/a.yaml", "config/lab/silent.yaml"),
                         ("config/lab/a.yaml", "cc/a.cpp")]:
            lines = self.complaints((old, new))
            self.assertEqual(len(lines), 1, new)
            self.assertRegex(lines[0], r"^L[13]: test \S+ does not exist$")

    def test_reports_implemented_without_test(self):
        for cell in ("no test", "–", "", "Mark.marks"):
            lines = self.complaints(("`cc:Mark.marks`, `config/lab/a.yaml` (both)", cell))
            self.assertEqual(lines, ["L1: 'implemented' without a test; the status without one is 'implemented, untested'"])

    def test_reports_untested_with_test(self):
        for cell in ("`cc:Mark.marks`", "–"):
            self.assertEqual(self.complaints(("no test", cell)),
                             ["L2: 'implemented, untested' with a test; allowed is 'no test'"])

    def test_reports_wrong_number_of_cells(self):
        lines = self.complaints(("| §2 | Paces. |", "| Paces. |"))
        self.assertIn("L3: 5 cells; allowed are 6", lines)

    def test_reports_all_problems_of_a_row_in_one_line(self):
        self.assertEqual(self.complaints(("differs: once per round trip | `cc/a.cpp`", "differs | `cc/gone.cpp`")),
                         ["L3: 'differs' without a reason; file cc/gone.cpp does not exist"])

    def test_reports_summary_counts_that_differ(self):
        self.assertEqual(self.complaints(("| L1 to L3 | 1 | 1 |", "| L1 to L3 | 2 | 1 |")),
                         ["summary: L has the counts [2, 1, 1, 0]; the rows have [1, 1, 1, 0]"])
        self.assertEqual(self.complaints(("| 4 | 1 | 1 | 1 | 1 |", "| 4 | 1 | 1 | 1 | 0 |")),
                         ["summary: total has the counts [1, 1, 1, 0]; the rows have [1, 1, 1, 1]"])
        self.assertEqual(self.complaints(("| All | 4 |", "| All | 5 |")),
                         ["summary: the total is 5 requirements; the documents have 4"])

    def test_reports_missing_rows_of_the_summary(self):
        self.assertEqual(self.complaints(("| All | 4 | 1 | 1 | 1 | 1 |\n", "")), ["summary: no row for total"])
        lines = self.complaints(("| Colors | Q1 to Q1 | 0 | 0 | 0 | 1 |\n", ""))
        self.assertIn("summary: no row for Q", lines)
        self.assertIn("Q1: not a number of the summary", lines)
        self.assertIn("L1: not a number of the summary", self.complaints((SUMMARY, "")))

    def test_reports_page_without_rows(self):
        lines = self.complaints((GOOD, ""), (UNTESTED, ""), (DIFFERS, ""), (MISSING, ""))
        self.assertIn("no row of a requirement", lines)


if __name__ == "__main__":
    unittest.main()
