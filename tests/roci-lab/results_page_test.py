"""Tests of results_page.py: the page of stored claims."""

import json
import pathlib
import tempfile
import unittest

import results_page

UNCLEAR = "3 against 2 (10 seeds), the difference is not significant"


def claim(found, holds=True, fails=""):
    return {"claim": "a claim", "found": found, "holds": holds, "fails": fails}


class ResultsPage(unittest.TestCase):
    def page(self, claims, **more):
        with tempfile.TemporaryDirectory() as folder:
            scenario = pathlib.Path(folder) / "incast.yaml"
            scenario.write_text("source: a paper\n")
            (pathlib.Path(folder) / "incast").mkdir()
            (pathlib.Path(folder) / "incast/page.json").write_text(json.dumps({"seeds": 10, "claims": claims, **more}))
            return results_page.page([scenario], pathlib.Path(folder))

    def test_claims_without_significant_difference_have_their_own_column(self):
        page = self.page([claim("2 against 1 (10 seeds)"), claim(UNCLEAR), claim(UNCLEAR, False, "a reason"),
                          claim("0 against 1 (10 seeds)", False)])
        self.assertIn("| File | Seeds | Claims | Hold | Hold, not significant | Fail |", page)
        self.assertIn("| [incast](#incast) | 10 | 4 | 1 | 1 | 2 |", page)

    def test_section_has_its_revision(self):
        page = self.page([claim("2 against 1")], revision="0123abcd of 2026-01-02")
        self.assertIn("Source: a paper. Seeds: 1 to 10. Revision 0123abcd of 2026-01-02.", page)
        self.assertNotIn("Sections without a revision", page)

    def test_page_explains_sections_without_revision(self):
        page = self.page([claim("2 against 1")])
        self.assertIn("Seeds: 1 to 10.\n", page)
        self.assertIn("Sections without a revision", page)

    def test_cells_omit_intervals_below_the_shown_digits(self):
        for text, shown in (("2.67 MB ± 437 KB against 4.10 MB ± 0 B (10 seeds)", "2.67 MB ± 437 KB against 4.10 MB (10 seeds)"),
                            ("13.8 Gbit/s ± 0 bit/s against 5.40 Gbit/s (10 seeds)", "13.8 Gbit/s against 5.40 Gbit/s (10 seeds)"),
                            ("0.5 ± 0 against 1 ± 1.1e-16 (10 seeds)", "0.5 against 1 (10 seeds)"),
                            ("5 us ± 0.5 us against 1 ± 0.02 (10 seeds)", "5 us ± 0.5 us against 1 ± 0.02 (10 seeds)")):
            self.assertEqual(results_page.cell(text), shown)


if __name__ == "__main__":
    unittest.main()
