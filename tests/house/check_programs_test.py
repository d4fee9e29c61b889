#!/usr/bin/env python3
"""Tests that check_programs.py can fail: each test breaks a correct list of programs, or its page."""

import pathlib
import tempfile
import unittest

import check_programs
import yaml

ENTRIES = [
    {"program": "UCX", "version": "1.13", "distribution": "Debian 12", "commands": ["ucx_perftest"], "services": "`rc_v`",
     "verdict": "test", "tests": ["programs_ucx", "tests/fresh/portable.sh"]},
    {"program": "hpcc", "version": "1.5", "distribution": "Debian 13", "verdict": "by hand", "note": "passed"},
    {"program": "raw", "version": "", "distribution": "", "verdict": "does not run", "note": "not implemented"},
]


class CheckPrograms(unittest.TestCase):
    def complaints(self, *changes, page=None):
        """Returns the findings for the entries with these changes: (index, key, new value or None)."""
        entries = [dict(entry) for entry in ENTRIES]
        for index, key, value in changes:
            entries[index].pop(key, None)
            if value is not None:
                entries[index][key] = value
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("docs/programs.yaml", "docs/programs.md", "tests/programs/ucx_test.py", "tests/fresh/portable.sh"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).touch()
            (root / "docs/programs.yaml").write_text(yaml.safe_dump({"programs": entries}))
            (root / "docs/programs.md").write_text(page or check_programs.page(ENTRIES))
            return list(check_programs.check(root))

    def test_accepts_correct_list_and_page(self):
        self.assertEqual(self.complaints(), [])
        page = check_programs.page(ENTRIES)
        self.assertIn("| UCX: `ucx_perftest` | 1.13 | `rc_v` | `programs_ucx`, `tests/fresh/portable.sh` |  |\n", page)
        self.assertIn("| hpcc | 1.5 (Debian 13) |  | passed |\n", page)

    def test_reports_page_that_differs(self):
        for change in ((0, "version", "1.14"), (0, "services", None), (2, "note", "not possible")):
            self.assertEqual(self.complaints(change), [
                "docs/programs.md: differs from docs/programs.yaml; 'tests/house/check_programs.py --write' rewrites it"])
        self.assertEqual(len(self.complaints(page="# Programs\n")), 1)

    def test_reports_wrong_entries(self):
        for index, key, value, message in (
                (0, "tests", ["programs_nfs"], "UCX: there is no test 'programs_nfs'"),
                (0, "tests", None, "UCX: 'tests' is required for the verdict 'test', and allowed for no other one"),
                (1, "tests", ["programs_ucx"], "hpcc: 'tests' is required for the verdict 'test', and allowed for no other one"),
                (1, "note", None, "hpcc: 'note' is required for the verdict 'by hand'"),
                (1, "version", 1.5, "hpcc: 'version' is not a text without '|'"),
                (1, "note", "a | b", "hpcc: 'note' is not a text without '|'"),
                (0, "commands", "ucx_info", "UCX: 'commands' is not a list of texts without '|'"),
                (2, "distribution", None, "raw: 'distribution' is missing"),
                (2, "verdict", "perhaps", "raw: verdict 'perhaps'; allowed are test, by hand, does not run"),
                (2, "colour", "red", "raw: unknown key 'colour'; allowed are ")):
            found = self.complaints((index, key, value))
            self.assertEqual(len(found), 1, found)
            self.assertTrue(found[0].startswith("docs/programs.yaml: " + message), found)

    def test_reports_missing_page(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("docs/programs.md: is missing", list(check_programs.check(folder)))


if __name__ == "__main__":
    unittest.main()
