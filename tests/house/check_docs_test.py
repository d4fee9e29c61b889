#!/usr/bin/env python3
"""Tests that check_docs.py can fail: each test makes a small, correct set of documents and breaks one of them."""

import pathlib
import tempfile
import unittest

import check_docs

TRUE_DOCUMENTS = {
    "roci": "readonly PRESETS=(release asan)\nhelp_demo() {\n:\n}\ncmd_demo() { :; }\n",
    "CMakePresets.json": '{"configurePresets": [{"name": "base", "hidden": true}, {"name": "asan"}, {"name": "release"}]}',
    "README.md": "Run `./roci demo`; see [the map](docs/architecture.md#what-is-where), [there](https://example.org).\n"
                 "```\n[no link](in/code)\n```\n<img src=\"docs/picture.svg\">\n",
    "docs/picture.svg": "<svg/>",
    "docs/architecture.md": "## What is where\n`lib/wire/` is bytes; [home](../README.md)\n",
    "lib/wire/icrc/icrc.hpp": "",
}


class CheckDocs(unittest.TestCase):
    def complaints(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**TRUE_DOCUMENTS, **changes}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(check_docs.check(folder))

    def test_accepts_correct_documents(self):
        self.assertEqual(self.complaints({}), [])

    def test_reports_dead_link(self):
        for link in ("[x](gone.md)", "![x](gone.png)", '<img src="gone.svg">', "[x](docs/architecture.md#gone)",
                     "[x](../outside.md)"):
            self.assertEqual(len(self.complaints({"docs/more.md": "ok\n", "MORE.md": link})), 1, link)

    def test_reports_subcommand_missing_from_readme(self):
        script = TRUE_DOCUMENTS["roci"] + "help_lint() {\n:\n}\ncmd_lint() { :; }\n"
        self.assertEqual(self.complaints({"roci": script}), ["README.md: './roci lint' is not mentioned"])

    def test_reports_subcommand_without_help(self):
        script = TRUE_DOCUMENTS["roci"].replace("help_demo", "help_other")
        self.assertEqual(self.complaints({"roci": script}), ["roci: 'demo' has no --help"])

    def test_reports_unknown_subcommand_in_readme(self):
        readme = TRUE_DOCUMENTS["README.md"] + "`./roci fly`\n"
        self.assertEqual(self.complaints({"README.md": readme}), ["README.md: there is no './roci fly'"])

    def test_reports_preset_missing_from_script(self):
        script = TRUE_DOCUMENTS["roci"].replace("release asan", "release")
        self.assertEqual(len(self.complaints({"roci": script})), 1)

    def test_reports_folder_without_description(self):
        self.assertEqual(self.complaints({"lib/port/port.hpp": ""}),
                         ["docs/architecture.md: `lib/port/` is not described"])

    def test_reports_unknown_program_test(self):
        pages = {"docs/programs.md": "`programs_ucx`, `programs_nfs`\n", "tests/programs/ucx_test.py": ""}
        self.assertEqual(self.complaints(pages), ["docs/programs.md: there is no test programs_nfs"])

    def test_reports_missing_page(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn("README.md: is missing", list(check_docs.check(folder)))


if __name__ == "__main__":
    unittest.main()
